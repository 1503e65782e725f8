"""Trees of files as a source: what is new, changed, moved and gone, and what is never taken for being gone (A1, A9)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support_files import FileProject
from tests.stored_rows import query_columns

FILES: dict[str, str | bytes] = {
    "a.txt": "apples are red and good to eat",
    "b.html": "<title>Pears</title><p>pears are green and sweet",
    "c/d.txt": "plums are blue, and grow on trees",
    "c/e/f.txt": "cherries are dark red, and small",
}


@pytest.fixture
def files(tmp_path: Path) -> FileProject:
    project = FileProject(tmp_path)
    project.fill(FILES)
    return project


def table_sizes(files: FileProject) -> dict[str, int]:
    names = ("urls", "documents", "sitemaps")
    return {name: query_columns(files.folder, f"SELECT count(*) AS n FROM {name}")[0]["n"] for name in names}


@pytest.mark.matrix
def test_files_when_crawled_then_all_are_found_and_a_second_run_reads_none(files: FileProject) -> None:
    first = files.crawl()
    sizes = table_sizes(files)
    second = files.crawl()

    assert (first["new"], first["indexed"]) == (4, 4)
    assert files.found() == files.indexed() == sorted(FILES)
    assert files.found("sweet") == ["b.html"]
    assert (second["fetched"], second["indexed"], second["discovered"], second["deleted"]) == (0, 0, 0, 0)
    assert table_sizes(files) == sizes


@pytest.mark.matrix
def test_files_when_some_are_new_changed_and_gone_then_these_alone_are_read(files: FileProject) -> None:
    files.fill({f"more/{number}.txt": f"this is file number {number} of many others" for number in range(60)})
    files.crawl()
    files.fill({"new.txt": "a new file about quinces", "a.txt": "apples are yellow now"})
    (files.root / "c" / "d.txt").unlink()
    counts = files.crawl()

    # What is gone was looked for once more.
    assert (counts["new"], counts["changed"], counts["deleted"], counts["fetched"]) == (1, 1, 1, 3)
    assert files.found("quinces OR yellow") == ["a.txt", "new.txt"]
    assert "c/d.txt" not in files.indexed()
    assert files.rows()["c/d.txt"][0] == 967


def test_file_when_it_changes_in_the_same_moment_with_equal_size_or_an_old_date_then_is_read_again(
    files: FileProject,
) -> None:
    path = files.root / "a.txt"
    facts = path.stat()
    files.crawl(settled=False)
    path.write_text("apples are blu and good to eat")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    files.crawl(settled=False)
    assert files.found("blu") == ["a.txt"]

    files.crawl()
    path.write_text("apples are odd and good to eat")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    files.crawl()
    assert files.found("odd") == ["a.txt"]
    os.utime(path, (2_300_000_000, 2_300_000_000))
    assert files.crawl()["fetched"] == 1
    assert files.crawl()["fetched"] == 0


def test_folder_when_it_is_renamed_then_all_are_found_by_their_new_paths(files: FileProject) -> None:
    files.fill({f"old/{number}.txt": f"this is file number {number} of a folder" for number in range(40)})
    files.crawl()
    (files.root / "old").rename(files.root / "new")
    files.crawl()

    assert [name for name in files.indexed() if "old" in name] == []
    assert len([name for name in files.indexed() if name.startswith("new/")]) == 40


def lose_root(files: FileProject) -> None:
    files.root.rename(files.root.with_name("elsewhere"))


def empty_root(files: FileProject) -> None:
    lose_root(files)
    files.root.mkdir()


def replace_root(files: FileProject) -> None:
    lose_root(files)
    files.root.write_text("a file")


@pytest.mark.parametrize("lose", [lose_root, empty_root, replace_root], ids=lambda lose: lose.__name__)
def test_root_when_it_is_not_there_then_nothing_leaves_and_the_next_run_is_whole(files: FileProject, lose: Any) -> None:
    files.crawl()
    lose(files)
    counts = files.crawl(code=3, settled=False)
    status = files.command("status", "files")
    after_loss = files.indexed()
    if files.root.exists():
        files.root.unlink() if files.root.is_file() else files.root.rmdir()
    files.root.with_name("elsewhere").rename(files.root)
    again = files.crawl()

    assert (counts["deleted"], counts["discovered"]) == (0, 0)
    assert after_loss == sorted(FILES)
    assert str(files.root) in status
    assert "could not be listed" in status
    assert (again["deleted"], again["fetched"]) == (0, 0)
    assert "could not be listed" not in files.command("status", "files")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_root_when_it_is_unmounted_then_nothing_leaves(files: FileProject) -> None:
    kept = files.root.with_name("kept")
    files.root.rename(kept)
    files.root.mkdir()
    (files.root / "notice.txt").write_text("nothing is mounted here")
    if subprocess.run(["mount", "--bind", kept, files.root], check=False, capture_output=True).returncode:
        pytest.skip("mounts are forbidden here")
    subprocess.run(["umount", files.root], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", files.root], check=True)
    try:
        files.fill(FILES)
        files.crawl()
    finally:
        subprocess.run(["umount", files.root], check=True)
    counts = files.crawl(code=3)
    # Then all are due.
    files.edit(attributes={"header:Last-Modified": "changed"})
    edited = files.crawl(code=3)

    assert (counts["deleted"], counts["new"]) == (edited["deleted"], edited["new"]) == (0, 0)
    assert files.indexed() == sorted(FILES)
    assert "is it mounted?" in files.command("status", "files")


@pytest.mark.parametrize("lose", [lose_root, empty_root, replace_root], ids=lambda lose: lose.__name__)
def test_root_when_it_is_lost_before_a_second_look_then_nothing_leaves(files: FileProject, lose: Any) -> None:
    files.crawl()
    (files.root / "a.txt").unlink()
    (files.root / "c" / "d.txt").unlink()
    files.fill({"new.txt": "a new file about quinces"})
    files.crawl(code=-signal.SIGKILL, SEARCHCRAWL_FAILPOINT="listing.mid")
    lose(files)
    files.crawl(code=3, settled=False)
    after_loss = files.indexed()
    if files.root.exists():
        files.root.unlink() if files.root.is_file() else files.root.rmdir()
    files.root.with_name("elsewhere").rename(files.root)
    files.crawl()

    assert after_loss == sorted(FILES)
    assert files.indexed() == sorted({*FILES, "new.txt"} - {"a.txt", "c/d.txt"})


def test_folder_when_it_cannot_be_read_then_it_alone_is_a_failure(files: FileProject) -> None:
    files.fill({f"g/{number}/x.txt": f"this is file number {number}" for number in range(20)})
    files.crawl()
    files.fill({"g/7/.searchignore": b"x" * 20_000, "g/8/y.txt": "a new file about quinces"})
    (files.root / "g" / "7" / "x.txt").unlink()
    (files.root / "g" / "9" / "x.txt").unlink()
    counts = files.crawl(code=3)

    assert (counts["deleted"], counts["new"]) == (1, 1)
    assert "g/7/x.txt" in files.indexed()
    assert "g/9/x.txt" not in files.indexed()
    assert f"{files.identify('g/7')}/ could not be listed" in files.command("status", "files")


def test_files_when_most_are_gone_then_the_limits_hold_them(files: FileProject) -> None:
    files.fill({f"g/{number}.txt": f"this is file number {number} of many" for number in range(60)})
    files.crawl()
    shutil.rmtree(files.root / "g")
    counts = files.crawl(code=9)
    held = len(files.indexed())
    files.command("quarantine", "list", "files")
    files.command("quarantine", "approve", "files")

    assert (counts["deleted"], held) == (0, 64)
    assert files.indexed() == sorted(FILES)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "failpoint", ["links.committed", "listing.mid", "listing.end", "row.updated:2", "batch.sealed"]
)
def test_crawl_when_it_is_killed_then_the_next_one_ends_as_an_undisturbed_one(
    files: FileProject, failpoint: str
) -> None:
    files.fill({f"g/{number}.txt": f"this is file number {number} of many" for number in range(30)})
    files.crawl()
    files.fill({"g/5.txt": "apples again", "new.txt": "a new file about quinces"})
    (files.root / "g" / "6.txt").unlink()
    (files.root / "c" / "d.txt").unlink()
    files.crawl(code=-signal.SIGKILL, SEARCHCRAWL_FAILPOINT=failpoint)
    files.crawl()

    expected = {*FILES, "new.txt", *(f"g/{number}.txt" for number in range(30))} - {"g/6.txt", "c/d.txt"}
    assert files.indexed() == sorted(expected)
    assert files.found("quinces") == ["new.txt"]
    assert "g/5.txt" in files.found("apples")
    files.command("verify", "files")


def test_folder_when_a_crawl_that_misses_it_is_killed_then_the_next_one_finds_all_that_was_below_it(
    files: FileProject,
) -> None:
    files.fill({f"g/{'h/' * depth}x.txt": f"this is a file at depth {depth}" for depth in range(3)})
    files.crawl()
    shutil.rmtree(files.root / "g")
    files.crawl(code=-signal.SIGKILL, SEARCHCRAWL_FAILPOINT="listing.mid:2")
    files.crawl()

    assert files.indexed() == sorted(FILES)


def test_plan_when_attributes_are_edited_then_the_source_is_not_asked(files: FileProject) -> None:
    files.crawl()
    lose_root(files)
    files.edit(attributes={"header:Last-Modified": "changed"})
    planned = files.ask("plan", "files")
    files.command("apply", planned["plan"])

    assert files.indexed() == sorted(FILES)
    hits = files.ask("search", "apples", "--source", "files")["hits"]
    assert hits[0]["url"] == files.identify("a.txt")


def test_explain_when_a_file_is_asked_for_then_names_listing_version_and_rule(files: FileProject) -> None:
    files.fill(
        {
            ".hidden/x.txt": "hidden",
            "old.txt~": "",
            "old.txt": "text of a file",
            ".searchignore": "*.bak\n",
            "z.bak": "",
        }
    )
    os.mkfifo(files.root / "pipe")
    (files.root / "link.txt").symlink_to("a.txt")
    files.crawl()

    known = files.command("explain", files.identify("a.txt"))
    assert f"in {files.root.as_uri()}/" in known
    assert "lists another version of it" in known
    for name, rule in {
        "old.txt~": "file.versions: versions = false",
        "z.bak": f"{files.root}/.searchignore line 1: *.bak",
        "pipe": "file.roots: is a pipe",
        "link.txt": "file.follow_links: follow_links = false",
    }.items():
        assert files.rows()[name] == (955, rule)
        assert rule in files.command("explain", files.identify(name)), name
    assert "file.hidden: hidden = false" in files.command("explain", files.identify(".hidden/x.txt"))
    assert "in the index" in files.command("explain", str(files.root / "a.txt"))
    for folder in ("c", "c/"):
        assert "it is no document: what is in it is listed" in files.command("explain", str(files.root / folder))
    tried = files.command("test", str(files.root / "z.bak"), "--source", "files")
    assert f"left out by {files.root}/.searchignore line 1: *.bak" in tried
    listed = files.command("sources", "check", "--list")
    # Of the root, c and e; hidden and left out are a folder, a version, a copy, a pipe, a link and .searchignore.
    assert "files: 5 documents in 3 folders or tables; 6 left out by rules" in listed


def test_rules_about_names_when_they_change_then_files_leave_and_come_back(files: FileProject) -> None:
    files.fill({".h/x.txt": "hidden things are here", "b/y.txt": "visible things are here"})
    files.edit(file={"hidden": True})
    files.crawl()
    everything = files.indexed()
    files.edit()
    files.crawl()
    without = files.indexed()
    (files.root / ".searchignore").write_text("b/\n")
    files.crawl()
    ignored = files.indexed()
    (files.root / ".searchignore").unlink()
    files.edit(file={"hidden": True})
    files.crawl()

    assert everything == sorted([*FILES, ".h/x.txt", "b/y.txt"])
    assert without == sorted([*FILES, "b/y.txt"])
    assert ignored == sorted(FILES)
    assert files.indexed() == everything


def test_ages_when_they_are_limited_then_known_files_stay(files: FileProject) -> None:
    files.fill({"old.txt": "an old file that is known"})
    files.crawl()
    os.utime(files.root / "old.txt", (1_000_000_000, 1_000_000_000))
    files.fill({"older.txt": "an older file that is new"})
    os.utime(files.root / "older.txt", (1_000_000_000, 1_000_000_000))
    files.edit(scope={"max_age_days": 30})
    files.crawl()
    # After an edit all are visited: one that is under way while it is listed is compared by the next run.
    files.crawl()
    quiet = files.crawl()

    assert "old.txt" in files.indexed()
    assert files.rows()["older.txt"] == (955, "scope.max_age_days: max_age_days = 30")
    assert quiet["fetched"] == 0
    (files.root / "older.txt").write_text("an older file that was changed")
    files.crawl()
    assert "older.txt" in files.indexed()


def test_bad_files_when_crawled_then_each_has_its_code_and_nothing_outside_is_read(files: FileProject) -> None:
    outside = files.root.with_name("outside")
    outside.mkdir()
    (outside / "canary.txt").write_text("canary of nobodys business")
    strange = files.fill_strange()
    for place in ("link", "c/link"):
        (files.root / place).symlink_to(outside)
    (files.root / "passwd.txt").symlink_to("/etc/passwd")
    (files.root / "self").symlink_to(".")
    os.mkfifo(files.root / "pipe.txt")
    with (files.root / "sparse.txt").open("wb") as file:
        file.truncate(10 << 30)
    files.fill(
        {"~$x.docx": "lock", "empty.txt": "", "denied.txt": "denied", "x.tmp": "temporary", ".git/config": "git"}
    )
    files.crawl()

    assert files.indexed() == sorted([*FILES, *strange, "denied.txt"])
    assert files.rows()["sparse.txt"][0] == 960
    assert files.rows()["~$x.docx"][0] == files.rows()["x.tmp"][0] == 955
    assert files.found("canary") == files.found("root:x") == []
    files.edit(file={"follow_links": True, "hidden": True})
    files.crawl()
    assert files.found("canary") == []
    assert not [name for name in files.indexed() if "passwd" in name or name.startswith(".git")]


def test_paths_when_they_are_longer_than_a_path_may_be_then_are_found(files: FileProject) -> None:
    way = [b"n" * 200] * 30
    folder = os.open(files.root, os.O_RDONLY)
    for name in way:
        os.mkdir(name, dir_fd=folder)
        inner = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    file = os.open(b"deep.txt", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
    os.write(file, b"a file far down about quinces")
    os.close(file)
    os.close(folder)
    files.crawl()

    assert files.found("quinces") == [os.fsdecode(b"/".join([*way, b"deep.txt"]))]


def test_display_when_a_prefix_is_shown_then_search_has_its_urls(files: FileProject) -> None:
    files.edit(display=[{"from": f"{files.root.as_uri()}/", "to": "https://files.example.org/share/"}])
    files.crawl()

    hits = files.ask("search", "plums", "--source", "files")["hits"]
    assert [hit["url"] for hit in hits] == ["https://files.example.org/share/c/d.txt"]


def test_values_when_they_are_mapped_then_search_has_owner_path_and_dates(files: FileProject) -> None:
    files.edit(attributes={"file:owner": "owner", "file:path": "path", "file:created": "created"})
    files.crawl()

    found = files.ask("search", "plums", "--source", "files", "--filter", f"path:{files.root}/c/d.txt")["hits"]
    assert [hit["url"] for hit in found] == [files.identify("c/d.txt")]


def test_archive_when_it_is_in_the_tree_then_its_files_are_found(files: FileProject) -> None:
    with zipfile.ZipFile(files.root / "box.zip", "w") as archive:
        archive.writestr("in/x.txt", "quinces are in the box")
        archive.writestr("../out.txt", "nothing leads out")
    files.crawl()
    assert files.found("quinces") == ["box.zip!/in/x.txt"]
    assert files.crawl()["fetched"] == 0
    with zipfile.ZipFile(files.root / "box.zip", "w") as archive:
        archive.writestr("in/y.txt", "quinces are in the other box")
        archive.writestr("in/z.txt", "medlars are in the other box")
    files.crawl()
    assert files.found("quinces OR medlars") == ["box.zip!/in/y.txt", "box.zip!/in/z.txt"]
    (files.root / "box.zip").unlink()
    files.crawl()
    assert files.found("quinces") == []


def test_links_in_pages_when_they_name_files_then_are_never_followed(files: FileProject) -> None:
    files.fill(
        {
            "page.html": '<p>links to files <a href="file:///etc/passwd">x</a> <a href="a.txt">a</a> <a href="../outside.txt">o</a>'
        }
    )
    (files.root.with_name("outside.txt")).write_text("canary of nobodys business")
    files.crawl()

    assert files.indexed() == sorted([*FILES, "page.html"])
    assert sorted(files.rows()) == sorted([*FILES, "page.html"])


def test_files_when_they_are_hidden_and_another_rule_is_edited_then_are_neither_read_nor_planned(
    files: FileProject,
) -> None:
    files.fill({".secret.txt": "hidden words", ".searchignore": "c/\n*.bak\n", "old.bak": "ignored words"})
    files.crawl()
    files.edit(scope={"exclude_names": ["b.*"]})
    planned = files.ask("plan", "files")
    counts = files.crawl()

    assert (planned["enter"], planned["leave"]) == (0, 1)
    assert (counts["new"], counts["deleted"], files.indexed()) == (0, 1, ["a.txt"])
    assert files.rows()["old.bak"][0] == files.rows()[".secret.txt"][0] == 955

    # What is hidden no longer may be ignored all the same.
    files.fill({".searchignore": "c/\n.sec*\n"})
    files.edit(file={"hidden": True}, scope={"exclude_names": ["b.*"]})
    files.crawl()
    assert files.indexed() == [".searchignore", "a.txt", "old.bak"] == files.found()
    files.crawl()
    assert files.indexed() == [".searchignore", "a.txt", "old.bak"]


def test_path_when_it_is_relative_or_its_file_is_gone_then_commands_take_it_for_a_path(files: FileProject) -> None:
    path = "../root/c/d.txt"
    files.crawl()
    again = files.ask("recrawl", "files", "--url", path)
    (files.root / "c" / "d.txt").unlink()
    files.crawl()
    gone = files.command("explain", path)
    forgotten = files.ask("forget", "../root/a.txt")

    assert again["to_fetch"] == 1
    assert "removed: 967" in gone
    assert "lists it again" in gone
    assert (forgotten["documents"], files.indexed()) == (1, ["b.html", "c/e/f.txt"])
    assert "forget" in files.command("submit", "../root/a.txt", "--source", "files", code=2)
