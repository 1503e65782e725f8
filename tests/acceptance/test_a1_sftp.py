"""Folders of a real server over SFTP: the same as those of this machine, and nothing leaves because the server is away (A1, A9)."""

from __future__ import annotations

import os
import shutil
import signal
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support_files import FileProject
from tests.crawl_forks import PAUSE, Forks, Running, started
from tests.sftp_server import RunningSftp

FILES: dict[str, str | bytes] = {
    "a.txt": "apples are red and good to eat",
    "b.html": "<title>Pears</title><p>pears are green and sweet",
    "c/d.txt": "plums are blue, and grow on trees",
    "c/e/f.txt": "cherries are dark red, and small",
}
MANY = {f"g/{number}/x.txt": f"this is file number {number} of many others" for number in range(20)}


@pytest.fixture
def server(sftp: RunningSftp) -> Iterator[RunningSftp]:
    """The server, which is there again after the test."""
    yield sftp
    if sftp.process is None:
        sftp.start()


@pytest.fixture
def files(tmp_path: Path, server: RunningSftp) -> FileProject:
    access = {"key_file": str(server.key_file), "known_hosts": str(server.known_hosts), "username": server.user}
    project = FileProject(tmp_path, served=server.url(tmp_path / "root"), access=access)
    project.fill(FILES)
    return project


def test_tree_when_a_server_shows_it_then_has_the_same_hits_as_the_tree_itself(
    files: FileProject, tmp_path: Path
) -> None:
    strange = files.fill_strange()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary.txt").write_text("canary of nobodys business")
    for place in ("link", "c/link"):
        (files.root / place).symlink_to(outside)
    (files.root / "self").symlink_to(".")
    os.mkfifo(files.root / "pipe.txt")
    files.fill({"old.txt~": "", "old.txt": "text", ".searchignore": "*.bak\n", "z.bak": "", ".hidden/x.txt": "hidden"})
    files.fill({"~$x.docx": "lock", "empty.txt": "", "x.tmp": "temporary", "denied.txt": "denied"})
    with zipfile.ZipFile(files.root / "box.zip", "w") as archive:
        archive.writestr("in/x.txt", "quinces are in the box")
    files.edit(attributes={"file:owner": "owner", "file:path": "path"})
    first = files.crawl()
    second = files.crawl()

    local = FileProject(tmp_path / "local")
    local.root.rmdir()
    local.root.symlink_to(files.root)
    local.crawl()
    expected = sorted([*FILES, *strange, "old.txt", "denied.txt", "box.zip!/in/x.txt"])
    assert files.indexed() == files.found() == local.indexed() == expected
    assert first["indexed"] == len(expected)
    assert (second["fetched"], second["indexed"], second["discovered"], second["deleted"]) == (0, 0, 0, 0)
    assert files.found("canary") == files.found("hidden") == []
    assert {name: files.rows()[name] for name in ("link", "self", "pipe.txt", "old.txt~", "z.bak")} == {
        "link": (955, "file.roots: is a link"),
        "self": (955, "file.roots: is a link"),
        "pipe.txt": (955, "file.roots: is a pipe"),
        "old.txt~": (955, "file.versions: versions = false"),
        "z.bak": (955, f"{files.url}/.searchignore line 1: *.bak"),
    }
    assert "in the index" in files.command("explain", files.identify("a.txt"))
    assert "hidden = false" in files.command("explain", files.identify(".hidden/x.txt"))
    assert "apples are red" in files.command("test", files.identify("a.txt"), "--source", "files")
    hits = files.ask("search", "plums", "--source", "files", "--filter", f"path:{files.root}/c/d.txt")["hits"]
    assert [hit["url"] for hit in hits] == [files.identify("c/d.txt")]


def test_files_when_some_are_new_changed_and_gone_then_these_alone_are_read(files: FileProject) -> None:
    files.fill(MANY)
    files.crawl()
    files.fill({"new.txt": "a new file about quinces", "a.txt": "apples are yellow now"})
    (files.root / "c" / "d.txt").unlink()
    (files.root / "b.html").unlink()
    (files.root / "b.html").symlink_to("a.txt")
    counts = files.crawl()

    assert (counts["new"], counts["changed"], counts["deleted"]) == (1, 1, 2)
    # What is gone was looked for once more; what is a link by now is refused by its listing.
    assert counts["fetched"] == 3
    assert files.found("quinces OR yellow") == ["a.txt", "new.txt"]
    assert files.rows()["c/d.txt"][0] == 967
    assert sorted({*FILES, *MANY, "new.txt"} - {"c/d.txt", "b.html"}) == files.indexed()

    (files.root / "g").rename(files.root / "h")
    files.crawl()
    assert [name for name in files.indexed() if name.startswith("g/")] == []
    assert len([name for name in files.indexed() if name.startswith("h/")]) == len(MANY)
    shutil.rmtree(files.root / "h")
    held = files.crawl(code=9)
    assert (held["deleted"], len(files.indexed())) == (0, len(MANY) + 3)
    files.command("quarantine", "approve", "files")
    assert len(files.indexed()) == 3


@pytest.mark.soak
def test_file_when_it_is_dated_back_then_is_seen_by_reading_all_again(files: FileProject) -> None:
    files.edit(file={"verify_days": 1})
    files.crawl()
    for words in ("apples are odd and good to eat", "apples are blu and good to eat"):
        path = files.root / "a.txt"
        facts = path.stat()
        path.write_text(words)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        counts = files.crawl()
        assert (counts["fetched"], counts["changed"]) == (4, 1)
    assert files.found("blu") == ["a.txt"]
    files.edit()
    files.crawl()
    facts = path.stat()
    path.write_text("apples are wet and good to eat")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert files.crawl()["fetched"] == 0


def test_server_when_it_lets_nobody_in_then_nothing_leaves_and_the_reason_is_said(
    files: FileProject, server: RunningSftp
) -> None:
    files.crawl()
    late = server.make_key("late_key")
    server.certify(late, valid="-2d:-1d")
    empty = server.folder / "empty_hosts"
    empty.write_text("")
    for table, reason in (
        ({"key_file": str(server.folder / "other_key")}, "refuses the login"),
        ({"key_file": str(late)}, "refuses the login"),
        ({"key_file": str(server.folder / "log")}, "is no key that can be read"),
        ({"known_hosts": str(empty)}, "the key of the server is not in"),
    ):
        files.edit(file=table)
        assert reason in str(files.ask("sources", "check", code=4))
    counts = files.crawl(code=3, settled=False)
    assert counts["deleted"] == counts["discovered"] == 0
    assert reason in files.command("status", "files")
    assert files.indexed() == sorted(FILES)


def test_password_when_it_is_wrong_then_is_in_no_message_and_nothing_leaves(
    files: FileProject, server: RunningSftp
) -> None:
    files.crawl()
    secret = "very-secret-pass-word"
    files.written = {
        "roots": [files.url],
        "username": server.user,
        "password": secret,
        "known_hosts": str(server.known_hosts),
    }
    files.edit()
    files.crawl(code=3, settled=False)

    assert files.indexed() == sorted(FILES)
    for command in ("status", "explain"):
        assert secret not in files.command(command, files.identify("a.txt") if command == "explain" else "files")
    stored = [path for path in files.folder.rglob("*") if path.is_file() and path.name != "files.toml"]
    assert [path for path in stored if secret.encode() in path.read_bytes()] == []


@pytest.mark.few(2)
@pytest.mark.parametrize("lost", ["stopped", "moved", "emptied"])
def test_root_when_it_is_not_there_then_nothing_leaves_and_the_next_run_is_whole(
    files: FileProject, server: RunningSftp, lost: str
) -> None:
    files.crawl()
    elsewhere = files.root.with_name("elsewhere")
    if lost == "stopped":
        server.stop()
    else:
        files.root.rename(elsewhere)
        if lost == "emptied":
            files.root.mkdir()
    counts = files.crawl(code=3, settled=False)
    status, after_loss = files.command("status", "files"), files.indexed()
    if lost == "stopped":
        server.start()
    else:
        if lost == "emptied":
            files.root.rmdir()
        elsewhere.rename(files.root)
    again = files.crawl()

    assert (counts["deleted"], counts["discovered"]) == (0, 0)
    assert after_loss == sorted(FILES)
    assert f"{files.url}/ could not be listed" in status
    assert (again["deleted"], again["fetched"]) == (0, 0)


def crawl_until(files: FileProject, happens: Callable[[Running], None], *, code: int, **fetch: Any) -> int:
    """Begins a crawl, and has something happen once some files of ``h`` have a code; the exit code of the crawl."""
    files.edit(fetch={"retries": 1, **fetch})
    files.settle()
    with Forks(1) as forks, started(forks.start(files.folder, "crawl", "files", **{PAUSE: "0.01"})) as running:
        deadline = time.monotonic() + 60
        while len([name for name, row in files.rows().items() if name.startswith("h/") and row[0] == code]) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        happens(running)
        ended = running.wait()
    files.edit()
    return ended


def test_server_when_it_stops_in_the_listing_then_nothing_leaves_that_is_there(
    files: FileProject, server: RunningSftp
) -> None:
    files.fill(MANY)
    files.crawl()
    known = files.indexed()
    (files.root / "c" / "d.txt").unlink()
    files.fill({f"h/{number}/x.txt": f"this is file number {number} of the others" for number in range(40)})
    code = crawl_until(files, lambda running: server.stop(), code=200, delay_seconds=0.1)
    after_loss = files.indexed()
    server.start()
    files.crawl()

    assert code == 3
    assert {*known} - {"c/d.txt"} <= {*after_loss}
    assert len(after_loss) < len(known) + 40
    assert len(files.indexed()) == len(known) - 1 + 40


def test_server_when_it_stops_while_files_are_read_then_the_next_run_reads_the_rest(
    files: FileProject, server: RunningSftp
) -> None:
    files.crawl()
    files.fill({f"h/{number}.txt": f"this is file number {number} of the others" for number in range(60)})
    code = crawl_until(files, lambda running: server.stop(), code=200, delay_seconds=0.2)
    some = len(files.indexed())
    server.start()
    files.crawl()

    assert code == 3
    assert len(FILES) <= some < 64
    assert len(files.indexed()) == 64


@pytest.mark.few(1)
@pytest.mark.parametrize("failpoint", ["listing.mid", "listing.end", "row.updated:2"])
def test_crawl_when_it_is_killed_then_the_next_one_ends_as_an_undisturbed_one(
    files: FileProject, failpoint: str
) -> None:
    files.fill(MANY)
    files.crawl()
    files.fill({"g/5/x.txt": "apples again", "new.txt": "a new file about quinces"})
    (files.root / "g" / "6" / "x.txt").unlink()
    (files.root / "c" / "d.txt").unlink()
    files.crawl(code=-signal.SIGKILL, SEARCHCRAWL_FAILPOINT=failpoint)
    files.crawl()

    assert files.indexed() == sorted({*FILES, *MANY, "new.txt"} - {"g/6/x.txt", "c/d.txt"})
    assert files.found("quinces") == ["new.txt"]
    assert "g/5/x.txt" in files.found("apples")
    files.command("verify", "files")
