"""Opens files and folders below a root, and nothing else, whatever is swapped for what meanwhile.

Each name on the way is opened by itself, from the descriptor of the folder before it, and never through a link. Where links are
followed, what one leads to is looked for in the same way, from the root on. Descriptors are closed with what returned them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ELOOP, ENOENT, ENOTDIR
from typing import Final, NamedTuple

from searchcrawl.kinds.file.local import file_systems

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
#: As many as Linux follows on one way.
_MOST_LINKS: Final = 40
#: Folders that hold no files of people.
_SYSTEM: Final = (b"/proc", b"/sys", b"/dev")

Node = tuple[int, int]
#: Is given each folder that is passed: its descriptor, and what is known of it.
Visit = Callable[[int, os.stat_result], None]


class Barred(Exception):
    """Something is there and may not be opened; ``key`` is the key of ``[file]`` that would let it, if one does.

    ``hides`` is whether it is another file system, under which what was there before may still be.
    """

    def __init__(self, reason: str, key: str = "", *, hides: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.key = key
        self.hides = hides


class RootLost(Exception):
    """The root is not what it was; nothing can be said of what is below it."""


class Place(NamedTuple):
    """Where something is: ``name`` in the open folder ``parent``, which may be "." for the root itself."""

    parent: int
    name: bytes
    facts: os.stat_result


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A regular file, open to be read."""

    descriptor: int
    facts: os.stat_result


def node_of(facts: os.stat_result) -> Node:
    """The device and inode of something."""
    return facts.st_dev, facts.st_ino


def find_nodes(paths: Collection[os.PathLike[str] | str | bytes]) -> frozenset[Node]:
    """The devices and inodes of those paths that are there."""
    found = set()
    for path in paths:
        try:
            found.add(node_of(os.stat(path)))
        except OSError:
            # What is not there cannot be met.
            continue
    return frozenset(found)


class Jail:
    """A root, held open. Of several threads.

    ``barred`` are folders and files that are never opened, as those of the project. The constructor raises OSError where the root
    cannot be opened, and Barred where it is no folder of files.
    """

    def __init__(
        self, path: bytes, *, follow_links: bool = False, cross_devices: bool = False, barred: Collection[Node] = ()
    ) -> None:
        self.path = path
        self._follows_links = follow_links
        self._crosses_devices = cross_devices
        self._barred = frozenset(barred) | find_nodes(_SYSTEM)
        # The way to the root itself may have links: it is the owner's.
        self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self.facts = os.fstat(self._root)
            #: the number of its file system
            self.file_system = file_systems.find_type(self._root)
            self._check_folder(self._root, self.facts)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._root)

    @property
    def is_mount(self) -> bool:
        """Whether another file system begins at the root."""
        return os.stat("..", dir_fd=self._root).st_dev != self.facts.st_dev or self.path == b"/"

    def check(self) -> None:
        """Raises RootLost where the path of the root leads to something else by now, or nowhere."""
        try:
            found = node_of(os.stat(self.path))
        except OSError as error:
            raise RootLost(f"the root {_show(self.path)} is not there any more ({error.strerror})") from error
        if found != node_of(self.facts):
            raise RootLost(f"the root {_show(self.path)} is another folder by now: was it unmounted, or replaced?")

    @contextmanager
    def locate(self, names: Sequence[bytes], visit: Visit | None = None) -> Iterator[Place]:
        """What is at the end of a way from the root; that is a link only where links are not followed.

        Raises OSError, with ENOENT or ENOTDIR where it is not there, and Barred.
        """
        pending, real, links = list(reversed(names)), list[bytes](), 0
        folder = self._enter_root(visit)
        try:
            while pending:
                name = pending.pop()
                if name == b"..":
                    if not real:
                        raise Barred("leads out of the root", "follow_links")
                    real.pop()
                    folder = self._replace(folder, self._walk(real, visit))
                    continue
                facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISLNK(facts.st_mode) and (pending or self._follows_links):
                    links += 1
                    pending += self._read_link(name, folder, links)
                    if pending and pending[-1] == b"/":
                        pending.pop()
                        real.clear()
                        folder = self._replace(folder, self._enter_root(visit))
                    continue
                if not pending:
                    yield Place(folder, name, facts)
                    return
                folder = self._replace(folder, self._step(folder, name, visit))
                real.append(name)
            # The way ends at a folder that was opened already: the root, or one to which a link leads by "..".
            yield Place(folder, b".", os.fstat(folder))
        finally:
            os.close(folder)

    @contextmanager
    def open_folder(self, names: Sequence[bytes], visit: Visit | None = None) -> Iterator[tuple[int, os.stat_result]]:
        """The descriptor of a folder, and what is known of it; raises as ``locate``."""
        with self.locate(names, visit) as place:
            folder = self._step(place.parent, place.name, visit if place.name != b"." else None)
            try:
                yield folder, os.fstat(folder)
            finally:
                os.close(folder)

    @contextmanager
    def open_file(self, names: Sequence[bytes], visit: Visit | None = None) -> Iterator[OpenFile]:
        """A regular file; raises as ``locate``, and Barred for all else that a path may lead to."""
        with self.locate(names, visit) as place:
            self.check_file(place.facts)
            file = self._open_quietly(place)
            try:
                facts = os.fstat(file)
                self.check_file(facts)
                yield OpenFile(file, facts)
            finally:
                os.close(file)

    def check_file(self, facts: os.stat_result) -> None:
        """Raises Barred for what is no regular file of the root's file system."""
        if not stat.S_ISREG(facts.st_mode):
            raise Barred(f"is {describe_type(facts.st_mode)}", "follow_links" if stat.S_ISLNK(facts.st_mode) else "")
        if node_of(facts) in self._barred:
            raise Barred("belongs to the project")
        # Files of layers may have another device than their folder.
        is_other = facts.st_dev != self.facts.st_dev and self.file_system != file_systems.OVERLAY
        if is_other and not self._crosses_devices:
            raise Barred("is on another file system", "cross_devices", hides=True)

    def _open_quietly(self, place: Place) -> int:
        """Opens a file, if possible so that its time of the last access stays."""
        quiet = getattr(os, "O_NOATIME", 0)
        try:
            return os.open(place.name, _FILE | quiet, dir_fd=place.parent)
        except PermissionError:
            # Only the owner of a file, and root, may ask for that.
            return os.open(place.name, _FILE, dir_fd=place.parent)

    def _enter_root(self, visit: Visit | None) -> int:
        folder = os.dup(self._root)
        if visit is not None:
            visit(folder, self.facts)
        return folder

    def _walk(self, names: Sequence[bytes], visit: Visit | None) -> int:
        folder = self._enter_root(visit)
        try:
            for name in names:
                folder = self._replace(folder, self._step(folder, name, visit))
        except BaseException:
            os.close(folder)
            raise
        return folder

    def _step(self, folder: int, name: bytes, visit: Visit | None) -> int:
        """Opens a folder in an open one; raises OSError and Barred."""
        found = os.open(name, _FOLDER, dir_fd=folder)
        try:
            facts = os.fstat(found)
            self._check_folder(found, facts)
            if visit is not None:
                visit(found, facts)
        except BaseException:
            os.close(found)
            raise
        return found

    def _check_folder(self, folder: int, facts: os.stat_result) -> None:
        if node_of(facts) in self._barred:
            raise Barred("belongs to the project, or to the system")
        if folder == self._root or facts.st_dev != self.facts.st_dev:
            special = file_systems.find_special(file_systems.find_type(folder))
            if special is not None:
                raise Barred(f"is on a file system of the kind {special}", hides=True)
        if facts.st_dev != self.facts.st_dev and not self._crosses_devices:
            raise Barred("is on another file system", "cross_devices", hides=True)

    def _read_link(self, name: bytes, folder: int, links: int) -> list[bytes]:
        """The names that a link leads to, the last one first; the last of all is "/" where they begin at the root."""
        if not self._follows_links:
            raise Barred("is a link", "follow_links")
        if links > _MOST_LINKS:
            raise OSError(ELOOP, os.strerror(ELOOP))
        target = os.readlink(name, dir_fd=folder)
        begins = target.startswith(b"/")
        if begins:
            target = self._cut_root(target)
        names = [each for each in target.split(b"/") if each not in {b"", b"."}]
        return [*reversed(names), *([b"/"] if begins else [])]

    def _cut_root(self, target: bytes) -> bytes:
        """What of an absolute target is below the root, by its path as it is configured or as it really is."""
        for root in (self.path, os.path.realpath(self.path)):
            begin = root.rstrip(b"/") + b"/"
            if (target + b"/").startswith(begin):
                return target[len(begin) :]
        raise Barred("leads out of the root", "follow_links")

    @staticmethod
    def _replace(old: int, new: int) -> int:
        os.close(old)
        return new


_TYPES: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def describe_type(mode: int) -> str:
    """What something is that is no regular file, as "a pipe"."""
    return _TYPES.get(stat.S_IFMT(mode), "no file")


def is_absent(error: OSError) -> bool:
    """Whether an error says that something is not there, with its folder there."""
    return error.errno in _ABSENT


_ABSENT: Final = frozenset({ENOENT, ENOTDIR})


def _show(path: bytes) -> str:
    return path.decode("utf-8", "replace")
