"""Nothing outside a root is opened, whatever is swapped for what."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.kinds.file.local.jail import Barred, Jail, RootLost, find_nodes, is_absent

Mount = Callable[[Path], Callable[[], None]]
CANARY = b"of nobody's business"


@pytest.fixture
def root(tree: Path) -> Path:
    """A root with a file and a folder, and beside it what must not be read."""
    (tree / "root" / "a" / "b").mkdir(parents=True)
    (tree / "root" / "a" / "b" / "file").write_bytes(b"inside")
    (tree / "outside").mkdir()
    (tree / "outside" / "file").write_bytes(CANARY)
    return tree / "root"


def read(root: Path, *names: bytes, **values: Any) -> bytes:
    with closing(Jail(os.fsencode(root), **values)) as jail, jail.open_file(names) as file:
        return os.read(file.descriptor, 1000)


def test_file_when_it_is_inside_then_is_read(root: Path) -> None:
    assert read(root, b"a", b"b", b"file") == b"inside"


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize(
    ("target", "way"),
    [
        ("../outside", [b"link", b"file"]),
        ("../outside/file", [b"link"]),
        ("/etc/passwd", [b"link"]),
        ("/etc", [b"link", b"passwd"]),
        ("a/../../outside/file", [b"link"]),
        ("a/b/../../../outside/file", [b"link"]),
        ("..", [b"link", b"outside", b"file"]),
        ("/", [b"link", b"etc", b"passwd"]),
        ("{root}/../outside/file", [b"link"]),
        ("{root}x", [b"link"]),
    ],
)
def test_link_when_it_leads_out_then_is_barred(root: Path, target: str, way: list[bytes], follow: bool) -> None:
    (root / "link").symlink_to(target.format(root=root))

    with pytest.raises(Barred) as barred:
        read(root, *way, follow_links=follow)

    assert barred.value.key == "follow_links"


@pytest.mark.parametrize("way", [[b"..", b"outside", b"file"], [b"a", b"..", b"..", b"outside", b"file"]])
def test_way_when_it_goes_up_then_ends_at_the_root(root: Path, way: list[bytes]) -> None:
    with pytest.raises(Barred):
        read(root, *way)


@pytest.mark.parametrize(
    "target",
    ["a/b/file", "./a//b/file", "a/../a/b/file", "{root}/a/b/file", "other/file", "up/b/file", "self/self/a/b/file"],
)
def test_link_when_it_stays_inside_then_is_followed_only_if_asked_for(root: Path, target: str) -> None:
    (root / "other").symlink_to("a/b")
    (root / "a" / "up").symlink_to("..")
    (root / "up").symlink_to("a/b/..")
    (root / "self").symlink_to(".")
    (root / "link").symlink_to(target.format(root=root))

    assert read(root, b"link", follow_links=True) == b"inside"
    assert read(root, b"a", b"up", b"a", b"b", b"file", follow_links=True) == b"inside"
    with pytest.raises(Barred, match="is a link"):
        read(root, b"link")
    with pytest.raises(Barred, match="is a link"):
        read(root, b"other", b"file")


def test_links_when_they_lead_in_a_circle_then_end(root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")

    with pytest.raises(OSError, match="Too many levels"):
        read(root, b"one", follow_links=True)


def test_link_when_it_leads_nowhere_then_is_absent(root: Path) -> None:
    (root / "link").symlink_to("a/none")

    with pytest.raises(OSError, match="No such file") as error:
        read(root, b"link", follow_links=True)

    assert is_absent(error.value)


@pytest.mark.parametrize("way", [[b"none"], [b"a", b"none", b"file"], [b"a", b"b", b"file", b"below"]])
def test_file_when_it_is_not_there_then_is_absent(root: Path, way: list[bytes]) -> None:
    with pytest.raises(OSError, match=r"No such file|Not a directory") as error:
        read(root, *way)

    assert is_absent(error.value)


def test_things_when_they_are_no_files_then_are_barred_and_do_not_hold_anything_up(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
        for name, reason in ((b"pipe", "is a pipe"), (b"socket", "is a socket"), (b"a", "is a folder")):
            with pytest.raises(Barred, match=reason):
                read(root, name)


def test_root_when_it_is_of_the_system_then_is_barred() -> None:
    for path in (b"/proc", b"/sys", b"/dev", b"/proc/self"):
        with pytest.raises(Barred):
            Jail(path)


def test_folders_when_they_are_the_projects_own_then_are_barred(root: Path) -> None:
    own = find_nodes([root / "a", root / "nowhere"])

    with pytest.raises(Barred, match="belongs to the project"):
        read(root, b"a", b"b", b"file", barred=own)
    (root / "link").symlink_to("a/b")
    with pytest.raises(Barred, match="belongs to the project"):
        read(root, b"link", b"file", barred=own, follow_links=True)


def test_system_when_it_is_below_a_root_then_is_barred() -> None:
    with closing(Jail(b"/", cross_devices=True)) as jail:
        for way in ([b"proc", b"self", b"environ"], [b"sys", b"kernel", b"x"]):
            with pytest.raises(Barred), jail.open_file(way):
                pass


def test_mount_when_it_is_below_a_root_then_is_barred_unless_asked_for(root: Path, mount: Mount) -> None:
    mount(root / "a" / "b")
    (root / "a" / "b" / "file").write_bytes(b"mounted")
    (root / "link").symlink_to("a/b/file")

    for way, follow in (([b"a", b"b", b"file"], False), ([b"link"], True)):
        with pytest.raises(Barred) as barred:
            read(root, *way, follow_links=follow)
        assert (barred.value.key, barred.value.hides) == ("cross_devices", True)
    assert read(root, b"a", b"b", b"file", cross_devices=True) == b"mounted"


def test_root_when_it_is_replaced_then_is_seen(root: Path) -> None:
    with closing(Jail(os.fsencode(root))) as jail:
        jail.check()
        root.rename(root.with_name("old"))
        with pytest.raises(RootLost, match="is not there any more"):
            jail.check()
        root.mkdir()
        with pytest.raises(RootLost, match="is another folder by now"):
            jail.check()


def test_root_when_its_own_path_has_links_then_is_opened(root: Path) -> None:
    (root.parent / "way").symlink_to("root")

    assert read(root.parent / "way", b"a", b"b", b"file") == b"inside"
    (root / "link").symlink_to(root / "a")
    assert read(root.parent / "way", b"link", b"b", b"file", follow_links=True) == b"inside"


def test_ways_when_they_are_longer_than_a_path_may_be_then_are_opened(root: Path) -> None:
    way = [b"n" * 200] * 40
    folder = os.open(root, os.O_RDONLY)
    for name in way:
        os.mkdir(name, dir_fd=folder)
        inner = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    file = os.open(b"file", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
    os.write(file, b"deep")
    os.close(file)
    os.close(folder)

    assert read(root, *way, b"file") == b"deep"


@pytest.fixture
def swapping(root: Path) -> Iterator[None]:
    """A folder and a file are swapped for links that lead out, and back, as fast as that goes."""
    (root / "out").symlink_to(root.parent / "outside")
    (root / "to_file").symlink_to(root.parent / "outside" / "file")
    (root / "plain").write_bytes(b"inside")
    stopped = threading.Event()

    def swap() -> None:
        while not stopped.is_set():
            for one, other in (("out", "a"), ("to_file", "plain")):
                (root / one).rename(root / "spare")
                (root / other).rename(root / one)
                (root / "spare").rename(root / other)

    thread = threading.Thread(target=swap)
    thread.start()
    yield
    stopped.set()
    thread.join()


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.usefixtures("swapping")
def test_files_when_they_are_swapped_for_links_then_nothing_outside_is_read(root: Path, follow: bool) -> None:
    before, seen = count_descriptors(), set()
    for _ in range(1500):
        for way in ([b"a", b"b", b"file"], [b"a", b"file"], [b"plain"], [b"out", b"file"]):
            try:
                seen.add(read(root, *way, follow_links=follow))
            except (OSError, Barred):
                continue

    assert seen == {b"inside"}
    assert count_descriptors() == before


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
