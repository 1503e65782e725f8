"""What of a tree is left out by names: hidden files, versions, and what ``.searchignore`` names (A9).

A refusal is ``KEY: RULE``, as rows keep it. What ``[scope]`` says of names and paths is asked for by URL (``scope``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from errno import EFBIG
from typing import Final, NamedTuple

from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.ignoring import FILE_NAME, IgnoreFile, read_ignore_file
from searchcrawl.kinds.file.names import show
from searchcrawl.rules.decision import Decision

#: Numbered copies of GNU programs (``cp --backup=numbered``).
_NUMBERED: Final = re.compile(rb".+\.~[0-9]{1,9}~", re.DOTALL)
#: Folders in which servers show earlier states of the folder that has them.
_SNAPSHOTS: Final = frozenset({b".snapshot", b"~snapshot", b"#snapshot", b".zfs"})
#: The same of Windows and Samba: the moment of the state.
_MOMENT: Final = re.compile(rb"@GMT-[0-9]{4}(?:\.[0-9]{2}){2}-[0-9]{2}(?:\.[0-9]{2}){2}")
#: A file is asked for of the .searchignore of each folder above it.
_MOST_BYTES: Final = 65_536
_HIDDEN: Final = "file.hidden: hidden = false"
_VERSIONS: Final = "file.versions: versions = false"


#: Says whether a folder has something of a name in it; raises what its place raises where that cannot be seen.
IsThere = Callable[[bytes], bool]


class Selection(NamedTuple):
    """The keys of ``[file]`` about names."""

    hidden: bool
    versions: bool

    @classmethod
    def of(cls, table: FileTable) -> Selection:
        return cls(table.hidden, table.versions)

    def find_refusal(self, name: bytes, is_there: IsThere, *, is_folder: bool) -> str | None:
        """The key that leaves out a name in a folder; raises what ``is_there`` does."""
        if not self.hidden and name.startswith(b"."):
            return _HIDDEN
        if not self.versions and (_is_snapshot(name) if is_folder else _is_version(name, is_there)):
            return _VERSIONS
        return None


def _is_snapshot(name: bytes) -> bool:
    return name in _SNAPSHOTS or _MOMENT.fullmatch(name) is not None


def _is_version(name: bytes, is_there: IsThere) -> bool:
    """Whether a file is surely a version of another one: by its form, or because that one is beside it."""
    if name.endswith(b"~"):
        return _NUMBERED.fullmatch(name) is not None or (len(name) > 1 and is_there(name[:-1]))
    return name.startswith(b"#") and name.endswith(b"#") and len(name) > 2 and is_there(name[1:-1])


#: Opens the folder at the end of a way: what its ``.searchignore`` holds, and what is beside a name in it.
LookAt = Callable[[Sequence[bytes]], AbstractContextManager[tuple[bytes | None, IsThere]]]


class Ignoring(NamedTuple):
    """The ``.searchignore`` of a folder and of those above it, the nearest first; each with the names from it down to here."""

    files: tuple[tuple[IgnoreFile, tuple[bytes, ...]], ...] = ()

    def enter(self, content: bytes | None, path: bytes, name: bytes | None = None) -> Ignoring:
        """That of a folder, which is ``name`` in this one, or the root; raises OSError for a file that cannot be meant.

        ``content`` is what its own file holds, at most ``MOST_BYTES`` and one more; None where it has none. ``path`` is that of the folder.
        """
        above = self.files if name is None else tuple((file, (*way, name)) for file, way in self.files)
        own = None if content is None else read_ignore_file(content, path)
        if own is not None and own.size + sum(file.size for file, _ in above) > _MOST_BYTES:
            raise OSError(
                EFBIG, f"{show(FILE_NAME)}: has with those of the folders above more than {_MOST_BYTES} bytes"
            )
        return Ignoring(above if own is None else ((own, ()), *above))

    def find_refusal(self, name: bytes, *, is_folder: bool) -> str | None:
        """The rule that leaves out a name in this folder."""
        for file, way in self.files:
            decision: Decision | None = file.decide((*way, name), is_folder=is_folder)
            if decision is not None:
                return None if decision.allowed else f"{decision.file} {decision.key}: {decision.rule}"
        return None


def find_refusal_on(way: Sequence[bytes], table: FileTable, root: bytes, look_at: LookAt) -> str | None:
    """The rule about names that leaves out what is at the end of a way from a root; raises what ``look_at`` does, and OSError."""
    selection, ignoring = Selection.of(table), Ignoring()
    for number, name in enumerate(way):
        above, is_folder = way[:number], number < len(way) - 1
        with look_at(above) as (content, is_there):
            ignoring = ignoring.enter(content, b"/".join([root, *above]), above[-1] if above else None)
            refusal = selection.find_refusal(name, is_there, is_folder=is_folder)
        refusal = refusal or ignoring.find_refusal(name, is_folder=is_folder)
        if refusal is not None:
            return refusal
    return None
