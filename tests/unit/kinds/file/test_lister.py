"""What a tree of files holds, what is left out of it and why, and what is never taken for an empty folder."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.listing.model import MOST_ENTRIES
from tests.unit.kinds.file.support_listing import FileSource, fill

Mount = Callable[[Path], Callable[[], None]]
Become = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def root(tree: Path) -> Path:
    path = tree / "root"
    path.mkdir()
    return path


@pytest.fixture
def make(tree: Path, root: Path) -> Callable[..., FileSource]:
    return lambda **values: FileSource(tree / "project", root, **values)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were just written are an hour old."""
    now_ms = clock.now_ms
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms() + 3_600_000)


Make = Callable[..., FileSource]


def test_tree_when_it_is_listed_then_each_folder_has_parts_and_an_end(make: Make, root: Path) -> None:
    fill(root, {"a.txt": "1", "b/c.txt": "2", "b/d/e.txt": "3", "f/g.txt": "4"})
    source = make()

    found = source.list()

    url = source.url
    assert found.urls == {f"{url}{name}" for name in ("a.txt", "b/c.txt", "b/d/e.txt", "f/g.txt")}
    assert found.ends.keys() == {url, f"{url}b/", f"{url}b/d/", f"{url}f/"}
    assert all(end.whole and end.code == 200 for end in found.ends.values())
    assert {child for part in found.parts for child in part.children} == {f"{url}b/", f"{url}b/d/", f"{url}f/"}
    assert {part.url: part.depth for part in found.parts} == {url: 1, f"{url}b/": 2, f"{url}b/d/": 3, f"{url}f/": 2}
    order = [part.url for part in found.parts if part.end]
    assert order.index(url) < order.index(f"{url}b/") < order.index(f"{url}b/d/")


def test_folder_when_it_has_many_files_then_comes_in_parts_and_keeps_none(make: Make, root: Path) -> None:
    for number in range(2 * MOST_ENTRIES + 10):
        (root / f"{number}").write_bytes(b"")
    source = make()
    parts = source.list().parts

    assert [len(part.entries) for part in parts] == [MOST_ENTRIES, MOST_ENTRIES, 10, 0]
    assert [part.end is None for part in parts] == [True, True, True, False]
    again = source.list()
    assert [part.entries for part in parts] != []
    assert {entry.url for part in parts for entry in part.entries} == set(again.entries)


def test_names_when_they_are_strange_then_are_all_listed_with_identities_of_their_own(make: Make, root: Path) -> None:
    names = [bytes([byte]) for byte in range(1, 256) if bytes([byte]) not in {b"/", b"."}]
    names += [
        b"%2e",
        b"%2e%2e",
        b"a\nb",
        b"n" * 255,
        b"\xff\xfe.txt",
        "a\u0308".encode(),
        "ä".encode(),
        b"Case",
        b"case",
    ]
    for name in names:
        (Path(os.fsdecode(os.fsencode(root) + b"/" + name))).write_bytes(b"x")
    source = make()

    found = source.list()

    assert found.urls == {source.identify(name) for name in names}
    assert len(found.urls) == len(set(names))
    assert found.failures == {}


@pytest.mark.usefixtures("later")
def test_token_when_anything_of_a_file_changes_then_is_another(make: Make, root: Path) -> None:
    source = make()
    path, url = root / "a", source.identify("a")
    path.write_text("one")
    tokens = [source.list().token(url)]

    def note(change: Callable[[], Any]) -> None:
        change()
        tokens.append(source.list().token(url))

    note(lambda: path.write_text("two"))
    note(lambda: os.utime(path, (0, 0)))
    note(lambda: path.write_text("three"))
    note(lambda: os.utime(path, (0, 0)))
    note(lambda: os.utime(path, (2**33, 2**33)))
    note(lambda: path.chmod(0o600))

    def replace() -> None:
        (root / "b").write_text("three")
        (root / "b").rename(path)

    note(replace)
    assert b"" not in tokens
    assert len(set(tokens)) == len(tokens)
    assert source.list().token(url) == tokens[-1]


def test_token_when_a_file_is_younger_than_two_seconds_then_is_not_known_yet(
    make: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make()
    fill(root, {"a": "1", "future": "2"})
    os.utime(root / "future", (2**32, 2**32))
    assert {entry.token for entry in source.list().entries.values()} == {b""}

    now_ms = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 2_100)
    assert b"" not in {entry.token for entry in source.list().entries.values()}


@pytest.mark.usefixtures("later")
def test_facts_when_a_link_leads_to_a_file_then_hold_the_folders_of_both(make: Make, root: Path) -> None:
    fill(root, {"a/file": "1", "b/other": "2"})
    (root / "b" / "link").symlink_to("../a/file")
    source = make(permissions="posix", follow_links=True)
    before = source.list()
    (root / "a").chmod(0o700)

    found = source.list()

    link, other = source.identify("b/link"), source.identify("b/other")
    assert found.facts(link) != before.facts(link)
    assert found.facts(other) == before.facts(other)
    assert found.token(link) == before.token(link)


@pytest.mark.usefixtures("later")
def test_facts_when_permissions_count_then_hold_those_of_the_folders_above_and_the_token_does_not(
    make: Make, root: Path
) -> None:
    fill(root, {"a/b/c": "1"})
    url = make().identify("a/b/c")
    before = make(permissions="posix").list()
    (root / "a").chmod(0o700)
    after = make(permissions="posix").list()

    assert after.facts(url) != before.facts(url) != b""
    assert after.token(url) == before.token(url)
    assert make(permissions="none").list().facts(url) == b""


@pytest.mark.usefixtures("later")
def test_token_when_the_mode_of_a_file_changes_then_is_another_as_its_bytes_may_be(make: Make, root: Path) -> None:
    fill(root, {"a": "1"})
    url, before = make().identify("a"), make().list()
    (root / "a").chmod(0o600)
    after = make().list()

    assert (after.token(url), after.facts(url)) != (before.token(url), before.facts(url))
    assert after.token(url) != before.token(url)


def test_hidden_files_when_not_asked_for_then_are_left_out_with_the_key(make: Make, root: Path) -> None:
    fill(root, {"a": "1", ".b": "2", ".c/d": "3"})
    source = make()

    found = source.list()

    assert found.urls == {source.identify("a")}
    assert found.refusals == {source.identify(name): "file.hidden: hidden = false" for name in (".b", ".c/")}
    assert make(hidden=True).list().urls == {source.identify(name) for name in ("a", ".b", ".c/d")}


def test_versions_when_not_asked_for_then_only_what_is_one_for_sure_is_left_out(make: Make, root: Path) -> None:
    versions = ["a.txt~", "a.txt.~1~", "b.~22~", "#a.txt#"]
    files = ["a.txt", "b~", "a.bak", "a.orig", "~", "##", "#c#", "c.~x~"]
    folders = ["~snapshot/x", "#snapshot/x", "@GMT-2024.01.02-03.04.05/x"]
    fill(root, dict.fromkeys([*versions, *files, *folders, "d~/x"], "1"))
    source = make()

    found = source.list()

    assert found.urls == {source.identify(name) for name in [*files, "d~/x"]}
    left_out = [*versions, "~snapshot/", "#snapshot/", "@GMT-2024.01.02-03.04.05/"]
    assert found.refusals == {source.identify(name): "file.versions: versions = false" for name in left_out}
    assert make(versions=True).list().urls == {source.identify(name) for name in [*versions, *files, *folders, "d~/x"]}


def test_searchignore_when_a_folder_has_one_then_holds_for_all_below(make: Make, root: Path) -> None:
    fill(
        root,
        {
            ".searchignore": "*.log\n/build/\n",
            "x.log": "",
            "a/x.log": "",
            "build/x": "",
            "a/build/x": "",
            "a/b/.searchignore": "!keep.log\nsecret\n",
            "a/b/keep.log": "",
            "a/b/c/keep.log": "",
            "a/b/secret/x": "",
            "a/secret/x": "",
        },
    )
    source = make()

    found = source.list()

    names = ["a/build/x", "a/b/keep.log", "a/b/c/keep.log", "a/secret/x"]
    assert found.urls == {source.identify(name) for name in names}
    above, below = f"{root}/.searchignore", f"{root}/a/b/.searchignore"
    hidden = "file.hidden: hidden = false"
    assert found.refusals == {
        source.identify("x.log"): f"{above} line 1: *.log",
        source.identify("a/x.log"): f"{above} line 1: *.log",
        source.identify("build/"): f"{above} line 2: /build/",
        source.identify("a/b/secret/"): f"{below} line 2: secret",
        source.identify(".searchignore"): hidden,
        source.identify("a/b/.searchignore"): hidden,
    }


def test_searchignore_when_it_cannot_be_read_then_its_folder_is_a_failure(make: Make, root: Path) -> None:
    fill(root, {"a/x": "1", "b/x": "2"})
    (root / "a" / ".searchignore").write_bytes(b"x" * 20_000)
    source = make()

    found = source.list()

    assert found.urls == {source.identify("b/x")}
    assert found.failures == {
        source.identify("a/"): (Code.IO_ERROR, ".searchignore: has more than 16384 bytes"),
    }


def test_searchignore_when_many_folders_have_large_ones_then_the_folder_that_is_too_much_is_a_failure(
    make: Make, root: Path
) -> None:
    fill(root, {f"{'a/' * depth}x": "1" for depth in range(6)} | {"b/x": "1"})
    for depth in range(6):
        (root / ("a/" * depth) / ".searchignore").write_bytes(b"old\n" * 4_096)
    source = make()

    found = source.list()

    assert found.urls == {source.identify(f"{'a/' * depth}x") for depth in range(4)} | {source.identify("b/x")}
    ((url, (code, error)),) = found.failures.items()
    assert (url, code) == (source.identify("a/a/a/a/"), Code.IO_ERROR)
    assert error == ".searchignore: has with those of the folders above more than 65536 bytes"


def test_scope_when_it_names_paths_then_other_folders_are_not_read(make: Make, root: Path) -> None:
    fill(root, {"a/b/c/x": "", "a/b/x": "", "a/d/x": "", "e/x": "", "x": "", ".git/x": "", "a/.git/x": ""})
    source = make(scope='include_paths = ["a/b", "x"]\nexclude_paths = ["a/b/c"]', hidden=True)

    found = source.list()

    assert {source.identify("a/b/x"), source.identify("x")} <= found.urls
    assert source.identify("a/b/c/x") not in found.entries
    assert found.refusals == {
        source.identify("a/d/"): "scope.include_paths: no include matches",
        source.identify("e/"): "scope.include_paths: no include matches",
        source.identify("a/b/c/"): "scope.exclude_paths: a/b/c",
        source.identify(".git/"): "scope.exclude_names: .git/",
        source.identify("a/.git/"): "scope.exclude_names: .git/",
    }


def test_scope_when_it_names_sizes_ages_and_depth_then_says_which_rule(make: Make, root: Path) -> None:
    fill(root, {"small": "1", "good": "12345", "large": "1" * 20, "old": "12345", "a/good": "12345", "a/b/x": "12345"})
    os.utime(root / "old", (0, 0))
    source = make(scope="min_bytes = 2\nmax_bytes = 10\nmax_age_days = 30\ndepth = 2")

    found = source.list()

    assert found.urls == {source.identify("good"), source.identify("a/good")}
    assert found.refusals == {
        source.identify("small"): "scope.min_bytes: min_bytes = 2",
        source.identify("large"): "scope.max_bytes: max_bytes = 10",
        source.identify("old"): "scope.max_age_days: max_age_days = 30",
        source.identify("a/b/"): "scope.depth: depth = 2",
    }


def test_things_when_they_are_no_files_then_are_left_out_and_not_opened(make: Make, root: Path) -> None:
    fill(root, {"a": "1", "d/x": "2"})
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("a")
    (root / "folder").symlink_to("d")
    (root / "passwd").symlink_to("/etc/passwd")
    source = make()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
        found = source.list()

    assert found.urls == {source.identify("a"), source.identify("d/x")}
    assert found.refusals == {
        source.identify("pipe"): "file.roots: is a pipe",
        source.identify("socket"): "file.roots: is a socket",
        **dict.fromkeys(map(source.identify, ("link", "folder", "passwd")), "file.follow_links: follow_links = false"),
    }


def test_links_when_followed_then_lead_within_the_root_and_each_folder_is_read_twice_at_most(
    make: Make, root: Path
) -> None:
    fill(root, {"a/x": "1", "b/y": "2"})
    (root / "file").symlink_to("a/x")
    (root / "folder").symlink_to("a")
    (root / "folder2").symlink_to("a")
    (root / "b" / "up").symlink_to("..")
    (root / "a" / "to_b").symlink_to("../b")
    (root / "self").symlink_to(".")
    (root / "none").symlink_to("nowhere")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "etc").symlink_to("/etc")
    source = make(follow_links=True)

    found = source.list()

    assert {source.identify(name) for name in ("a/x", "b/y", "file")} <= found.urls
    assert len([url for url in found.urls if url.endswith("/x")]) == 2
    assert len([url for url in found.urls if url.endswith("/y")]) == 2
    assert not [url for url in found.entries if "passwd" in url and found.entries[url].refusal is None]
    refusals = found.refusals
    for name in ("passwd", "etc"):
        assert refusals[source.identify(name)] == "file.follow_links: leads out of the root"
    for name in ("one", "two"):
        assert refusals[source.identify(name)] == "file.follow_links: leads in a circle"
    assert refusals[source.identify("self/")] == "file.follow_links: leads to a folder that it is in"
    assert refusals[source.identify("b/up/")] == "file.follow_links: leads to a folder that it is in"
    assert source.identify("none") not in found.entries
    assert found.failures == {}


def test_links_when_every_folder_links_to_all_others_then_come_to_an_end(make: Make, root: Path) -> None:
    for number in range(30):
        (root / f"{number}").mkdir()
        (root / f"{number}" / "x").write_text("")
        for other in range(30):
            (root / f"{number}" / f"to_{other}").symlink_to(f"../{other}")

    found = make(follow_links=True).list()

    assert len(found.urls) <= 60


def test_projects_own_files_when_they_are_below_a_root_then_are_never_listed(tree: Path) -> None:
    fill(tree, {"docs/a": "1", "project/var/b": "2", "project/notes": "3"})
    source = FileSource(tree / "project", tree)

    found = source.list()

    assert found.urls == {source.identify("docs/a")}
    assert found.refusals == {source.identify("project/"): "file.roots: belongs to the project, or to the system"}
    inside = FileSource(tree / "project", tree / "project" / "docs", roots=["docs"])
    fill(tree / "project" / "docs", {"x": "1"})
    assert inside.list().urls == {inside.identify("x")}
    for root in ("var", "sources", "."):
        own = FileSource(tree / "project", tree / "project" / root, roots=[root])
        assert own.list().urls == set()
        assert own.list().failures != {}


def test_root_when_it_is_not_there_then_is_a_failure(make: Make, root: Path) -> None:
    source = make()
    root.rmdir()
    assert source.list().failures == {source.url: (404, "No such file or directory")}
    root.write_text("a file")
    assert source.list().failures == {source.url: (Code.IO_ERROR, "Not a directory")}


def test_root_when_it_is_empty_and_was_not_then_is_a_failure(make: Make, root: Path) -> None:
    source = make()
    assert source.list().failures == {}
    fill(root, {"a": "1"})
    source.list()
    (root / "a").unlink()

    ((code, error),) = source.list().failures.values()

    assert code == Code.IO_ERROR
    assert error is not None
    assert error.startswith(f"{root} is empty, and was not in the last run: is it mounted?")


def test_root_when_it_lacks_its_marker_then_is_a_failure(make: Make, root: Path) -> None:
    source = make(marker=".mounted")
    fill(root, {"a": "1"})
    assert source.list().failures == {source.url: (Code.IO_ERROR, f"{root} has no .mounted in it: is it mounted?")}
    fill(root, {".mounted": ""})
    assert source.list().urls == {source.identify("a")}
    (root / "a").unlink()
    assert source.list().failures == {}


def test_root_when_it_is_no_mount_any_more_then_is_a_failure(make: Make, root: Path, mount: Mount) -> None:
    fill(root, {"notice": "not mounted"})
    source = make()
    unmount = mount(root)
    fill(root, {"a": "1"})
    assert source.list().urls == {source.identify("a")}
    unmount()

    ((_, error),) = source.list().failures.values()

    assert error is not None
    assert "was a file system of its own in the last run, and is none now" in error
    fill(root, {".here": ""})
    marked = make(marker=".here")
    marked.marks = source.marks
    assert marked.list().urls == {source.identify("notice")}


def test_mounts_when_they_are_below_a_root_then_are_read_only_if_asked_for(
    make: Make, root: Path, mount: Mount
) -> None:
    fill(root, {"a/b/x": "below", "c": "1"})
    source = make()
    unmount = mount(root / "a" / "b")
    fill(root, {"a/b/y": "mounted"})

    found = source.list()

    assert found.urls == {source.identify("c")}
    assert found.refusals == {source.identify("a/b/"): "file.cross_devices: is on another file system"}
    crossing = make(cross_devices=True)
    assert crossing.list().urls == {source.identify("c"), source.identify("a/b/y")}
    unmount()
    found = crossing.list()
    assert found.urls == {source.identify("c")}
    assert found.failures.keys() == {source.identify("a/b/")}


def test_folder_when_something_is_mounted_over_its_files_then_is_a_failure(
    make: Make, root: Path, mount: Mount
) -> None:
    fill(root, {"a/x": "1", "b/x": "2"})
    source = make()
    source.list()
    unmount = mount(root / "a")

    found = source.list()

    ((_, error),) = found.failures.values()
    assert found.failures.keys() == {source.identify("a/")}
    assert "is something mounted over it?" in (error or "")
    assert make(scope='exclude_paths = ["a/"]').list().failures == {}
    unmount()
    assert source.list().urls == {source.identify("a/x"), source.identify("b/x")}


def test_mount_when_it_was_read_and_is_not_asked_for_any_more_then_is_left_out(
    make: Make, root: Path, mount: Mount
) -> None:
    (root / "a").mkdir()
    mount(root / "a")
    fill(root, {"a/x": "1"})
    crossing, source = make(cross_devices=True), make()
    assert crossing.list().urls == {source.identify("a/x")}
    source.marks = crossing.marks

    assert source.list().refusals == {source.identify("a/"): "file.cross_devices: is on another file system"}


def test_folder_when_it_may_not_be_read_then_is_a_failure_and_the_others_are_listed(
    make: Make, root: Path, as_nobody: Become
) -> None:
    fill(root, {"a/x": "1", "b/x": "2", "c/d/x": "3"})
    (root / "a").chmod(0o000)
    (root / "c").chmod(0o444)
    source = make()
    with as_nobody():
        found = source.list()
    for name in ("a", "c"):
        (root / name).chmod(0o755)

    assert found.urls == {source.identify("b/x")}
    assert found.failures == {
        source.identify("a/"): (403, "Permission denied"),
        source.identify("c/"): (403, ".searchignore: Permission denied"),
    }
    assert found.ends[source.url].whole


def test_lister_when_it_is_to_stop_then_leaves_containers_without_an_end(make: Make, root: Path) -> None:
    fill(root, {"a": "1", "b/c": "2"})
    source = make()
    answers = iter([False, True, True, True])

    found = source.list(lambda: next(answers))

    assert found.ends == {}


def test_folder_when_it_is_gone_before_its_turn_then_nothing_is_said_of_it(make: Make, root: Path) -> None:
    fill(root, {"a/x": "1", "b/x": "2"})
    source = make()

    def remove() -> bool:
        if (root / "a" / "x").exists() and calls.append(None) is None and len(calls) > 2:
            (root / "a" / "x").unlink()
            (root / "a").rmdir()
        return False

    calls: list[None] = []
    found = source.list(remove)

    assert source.identify("a/") not in found.ends
    assert found.failures == {}


def test_paths_when_they_are_longer_than_a_path_may_be_then_are_listed(make: Make, root: Path) -> None:
    way = [b"n" * 200] * 40
    folder = os.open(root, os.O_RDONLY)
    for name in way:
        os.mkdir(name, dir_fd=folder)
        inner = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open(b"file", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    os.close(folder)
    source = make()

    found = source.list()

    assert found.urls == {source.identify(b"/".join([*way, b"file"]))}


def test_folders_when_they_are_very_deep_then_those_beyond_are_left_out(make: Make, root: Path) -> None:
    folder = os.open(root, os.O_RDONLY)
    for _ in range(1001):
        os.mkdir(b"d", dir_fd=folder)
        inner = os.open(b"d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
        os.close(os.open(b"file", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    os.close(folder)
    source = make()

    found = source.list()

    assert len(found.urls) == 1000
    assert found.refusals == {source.identify("/".join(["d"] * 1001)) + "/": "file.roots: is deeper than 1000 folders"}
    subprocess.run(["rm", "-r", root / "d"], check=True)


def test_descriptors_when_a_walk_is_over_or_left_then_are_closed(make: Make, root: Path) -> None:
    fill(root, {f"{number}/x": "1" for number in range(50)})
    source = make(permissions="posix", follow_links=True)
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    source.list()
    calls = iter(range(1000))
    source.list(lambda: next(calls) > 20)

    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
