"""Files as a reader answers for them: what they hold, what is known beside it, and when one is gone for sure."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from searchcrawl import clock
from searchcrawl.answer_headers import EVERYONE, Level, Permissions, find_permissions, list_values
from searchcrawl.kinds.file.reader import FileReader
from searchcrawl.listing.model import Read, ReadRequest, SameBody, Unread, to_version
from tests.unit.kinds.file.support_listing import FileSource, fill

Make = Callable[..., FileSource]
Mount = Callable[[Path], Callable[[], None]]
Become = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def root(tree: Path) -> Path:
    path = tree / "root"
    path.mkdir()
    return path


@pytest.fixture
def make(tree: Path, root: Path) -> Make:
    return lambda **values: FileSource(tree / "project", root, **values)


def codes(answers: list[Read | SameBody | Unread]) -> list[int]:
    return [int(answer.code) if isinstance(answer, Unread) else 200 for answer in answers]


def test_file_when_it_is_read_then_has_its_bytes_and_what_is_known_of_it(make: Make, root: Path) -> None:
    fill(root, {"a/ä.txt": b"\x00text\xff"})
    os.utime(root / "a" / "ä.txt", (1_600_000_000, 1_600_000_000))

    (answer,) = make(permissions="none").read("a/ä.txt")

    assert isinstance(answer, Read)
    assert answer.body == b"\x00text\xff"
    assert dict(answer.headers)[b"Last-Modified"] == b"Sun, 13 Sep 2020 12:26:40 GMT"
    values = dict(list_values(answer.headers))
    assert values["file:path"] == f"{root}/a/ä.txt"
    assert values["file:owner"] in {"root", str(os.geteuid())} | {values["file:owner"]} & {os.environ.get("USER", "")}
    assert values["file:created"] > "2020"
    assert find_permissions(answer.headers) is None


@pytest.mark.parametrize("seconds", [-(2**31), 2**33, 2**40])
def test_file_when_its_date_is_far_away_then_is_read(make: Make, root: Path, seconds: int) -> None:
    fill(root, {"a": "1"})
    os.utime(root / "a", (seconds, seconds))

    assert codes(make().read("a")) == [200]


def test_files_when_several_are_asked_for_then_come_in_their_order(make: Make, root: Path) -> None:
    fill(root, {"a": "1", "b/c": "2"})

    answers = make().read("b/c", "none", "a", "b/", "")

    assert codes(answers) == [200, 967, 200, 967, 967]
    assert [answer.body for answer in answers if isinstance(answer, Read)] == [b"2", b"1"]


def test_file_when_permissions_count_then_says_who_may_read_it_and_pass_the_folders(make: Make, root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    fill(root, {"a/b": "1"})
    os.chown(root / "a", 1001, 2001)
    (root / "a").chmod(0o750)
    os.chown(root / "a" / "b", 1002, 2002)
    (root / "a" / "b").chmod(0o644)

    (answer,) = make(permissions="posix").read("a/b")

    assert isinstance(answer, Read)
    found = find_permissions(answer.headers)
    assert found == Permissions(("uid:1002", "gid:2002", EVERYONE), (), (Level(("uid:1001", "gid:2001")),))


def test_file_when_it_is_larger_than_the_limit_then_is_not_read(make: Make, root: Path) -> None:
    fill(root, {"small": "1" * 10, "large": "1" * 11})
    with (root / "sparse").open("wb") as file:
        file.truncate(10 << 30)

    source = make(more="[fetch]\nmax_bytes = 10")

    assert codes(source.read("small", "large", "sparse")) == [200, 960, 960]
    assert codes(make().read("sparse")) == [960]


def test_file_when_it_is_gone_then_is_so_only_below_a_root_that_is_there(make: Make, root: Path) -> None:
    fill(root, {"a": "1", "b/c": "2"})
    source = make()
    reader = FileReader(source.source, source.project, source.marks)
    gone = [ReadRequest(source.identify("b/none"), False), ReadRequest(source.identify("none/x"), False)]
    assert codes(list(reader.read(gone))) == [967, 967]

    root.rename(root.with_name("old"))
    assert codes(list(reader.read(gone))) == [905, 905]
    root.mkdir()
    fill(root, {"other": "1"})
    assert codes(list(reader.read(gone))) == [905, 905]
    reader.close()
    # To a reader that never saw the other one it is the root.
    assert codes(source.read("b/none", is_listed=False)) == [967]


def test_file_when_its_root_is_empty_or_has_no_marker_then_is_not_gone(make: Make, root: Path) -> None:
    assert codes(make().read("a", is_listed=False)) == [905]
    fill(root, {"b": ""})
    assert codes(make().read("a", is_listed=False)) == [967]
    assert codes(make(marker=".here").read("a", "b", is_listed=False)) == [905, 905]
    fill(root, {".here": ""})
    assert codes(make(marker=".here").read("a", "b", is_listed=False)) == [967, 200]
    (root / "b").unlink()
    (root / ".here").unlink()
    root.rmdir()
    assert codes(make().read("a", is_listed=False)) == [905]


def test_file_when_something_is_mounted_over_it_then_is_not_gone(make: Make, root: Path, mount: Mount) -> None:
    fill(root, {"a/b/x": "1", "c": ""})
    source = make()
    mount(root / "a" / "b")

    (answer,) = source.read("a/b/x", is_listed=False)

    assert isinstance(answer, Unread)
    assert (int(answer.code), answer.error) == (958, "is on another file system")


def test_file_when_what_was_mounted_above_it_is_not_any_more_then_is_not_gone(
    make: Make, root: Path, mount: Mount
) -> None:
    (root / "a").mkdir()
    source = make(cross_devices=True)
    unmount = mount(root / "a")
    fill(root, {"a/b/x": "1", "y": "2"})
    source.list()
    unmount()
    fill(root, {"a/notice": "nothing is mounted here"})

    assert codes(source.read("a/b/x", "y", "z", is_listed=False)) == [905, 200, 967]
    (root / "a" / "notice").unlink()
    (root / "a").rmdir()
    assert codes(source.read("a/b/x", is_listed=False)) == [967]


def test_file_when_its_folder_may_not_be_read_then_is_not_gone(make: Make, root: Path, as_nobody: Become) -> None:
    fill(root, {"a/x": "1", "b": "2"})
    (root / "a").chmod(0o000)
    (root / "b").chmod(0o000)
    source = make()
    with as_nobody():
        answers = source.read("a/x", "b", is_listed=False)
    (root / "a").chmod(0o755)

    assert codes(answers) == [403, 403]


def test_file_when_a_rule_about_names_leaves_it_out_then_is_gone_for_a_second_look_alone(
    make: Make, root: Path
) -> None:
    fill(root, {".h/x": "1", "a.~1~": "2", "b/.searchignore": "c\n", "b/c/x": "3", "b/d": "4", "l/x": "5"})
    (root / "link").symlink_to("l")
    source = make()
    names = (".h/x", "a.~1~", "b/c/x", "link/x", "b/d")

    assert codes(source.read(*names, is_listed=False)) == [967, 967, 967, 967, 200]
    assert codes(source.read(*names)) == [200, 200, 200, 967, 200]
    follows = make(hidden=True, versions=True, follow_links=True)
    assert codes(follows.read(*names, is_listed=False)) == [200, 200, 967, 200, 200]


def test_things_when_they_are_no_files_or_lead_out_then_are_not_read(make: Make, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "etc").symlink_to("/etc")

    for source in (make(), make(follow_links=True)):
        assert codes(source.read("pipe", "passwd", "etc/passwd", "../secret", "a/../../secret")) == [967] * 5
        reader = FileReader(source.source, source.project, source.marks)
        strange = ["file:///etc/passwd", "http://a.test/", "file://nas/x", f"{source.url}%2e%2e/secret"]
        assert codes(list(reader.read([ReadRequest(url, True) for url in strange]))) == [967] * 4
        reader.close()


@contextmanager
def changing(path: Path, change: Callable[[Path], None]) -> Iterator[None]:
    stopped = threading.Event()

    def run() -> None:
        while not stopped.is_set():
            change(path)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def test_file_when_it_changes_while_it_is_read_then_is_whole_or_a_failure_that_passes(make: Make, root: Path) -> None:
    one, other = b"1" * 3_000_000, b"2" * 3_000_000

    def write(path: Path) -> None:
        for content in (one, other):
            with path.open("r+b") as file:
                file.write(content)

    fill(root, {"a": one})
    source = make()
    answers = []
    with changing(root / "a", write):
        while not any(isinstance(answer, Unread) for answer in answers) and len(answers) < 2000:
            answers += source.read("a")

    (failed,) = (answer for answer in answers if isinstance(answer, Unread))
    assert (int(failed.code), failed.transient) == (958, True)


def test_file_when_it_grows_then_is_never_read_beyond_what_it_was(make: Make, root: Path) -> None:
    def grow(path: Path) -> None:
        with path.open("ab") as file:
            file.write(b"x" * 100_000)
        if path.stat().st_size > 30_000_000:
            os.truncate(path, 0)

    fill(root, {"a": ""})
    source = make(more="[fetch]\nmax_bytes = 1000000")
    with changing(root / "a", grow):
        answers = [answer for _ in range(50) for answer in source.read("a")]

    assert {200, 958, 960} >= set(codes(answers))
    assert all(len(answer.body) <= 1_000_000 for answer in answers if isinstance(answer, Read))


def test_files_when_they_are_read_then_keep_their_time_of_access(make: Make, root: Path) -> None:
    fill(root, {"a": "1"})
    os.utime(root / "a", (1, 2_000_000_000))

    assert codes(make().read("a")) == [200]
    assert (root / "a").stat().st_atime == 1


def test_reader_when_it_is_closed_then_holds_nothing_open(make: Make, root: Path) -> None:
    fill(root, {"a": "1"})
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())

    make(permissions="posix").read("a", "none", "a/x", is_listed=False)

    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before


def test_file_when_its_body_is_known_then_only_the_rest_is_said(
    make: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(root, {"a": "1"})
    now_ms = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 10_000)
    source = make()
    version = to_version(source.list().token(source.identify("a")))
    whole, known = source.read("a"), source.read("a", version=version)
    (root / "a").write_text("2")
    changed = source.read("a", version=version)
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms)
    young = source.read("a", version=version)

    assert [type(answer) for answer in known] == [SameBody]
    assert known[0].headers == whole[0].headers
    assert [[answer.body for answer in answers] for answers in (changed, young)] == [[b"2"], [b"2"]]
