"""The roots of a source, and how they are opened: what is no root any more is a failure, and never an empty folder."""

from __future__ import annotations

import os
from typing import Final

from searchcrawl.kinds.file import names
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.local.jail import Jail, Node, RootLost, find_nodes
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project


def list_paths(source: Source) -> list[bytes]:
    """The absolute paths of the roots, in the order of the file."""
    table: FileTable = source.own
    return [names.join(os.path.abspath(os.fsencode(source.folder)), root) for root in table.roots]


def find_overlap(paths: list[bytes]) -> tuple[int, int] | None:
    """The numbers of a root and of one that it is in, or the same as; None where there is none."""
    for number, path in enumerate(paths):
        for other, above in enumerate(paths):
            if other != number and names.split(path, above) is not None and (path != above or other < number):
                return number, other
    return None


def find_barred(project: Project) -> frozenset[Node]:
    """The project's own files and folders: what is there is never read, wherever a root is."""
    own = (project.root, project.sources_dir, project.plans_dir.parent, *project.stored_paths)
    return find_nodes(own)


def open_root(source: Source, path: bytes, barred: frozenset[Node]) -> Jail:
    """Opens a root; raises OSError, Barred, and RootLost where it lacks its marker."""
    table: FileTable = source.own
    jail = Jail(path, follow_links=table.follow_links, cross_devices=table.cross_devices, barred=barred)
    try:
        require_marker(jail, table.marker)
    except BaseException:
        jail.close()
        raise
    return jail


def require_marker(jail: Jail, marker: str | None) -> None:
    """Raises RootLost where a root has no file of this name in it, and OSError where that cannot be seen."""
    if marker is None:
        return
    try:
        with jail.locate([os.fsencode(marker)]):
            pass
    except FileNotFoundError as error:
        raise RootLost(f"{names.show(jail.path)} has no {marker} in it: is it mounted?") from error


def has_something(jail: Jail) -> bool:
    """Whether there is anything in a root; raises OSError."""
    with jail.open_folder([]) as (folder, _), os.scandir(folder) as entries:
        return next(entries, None) is not None


#: Marks of folders: a file system of its own begins there, or none.
_MOUNT: Final = '"mount"'
_FOLDER: Final = '"folder"'


def note_mark(*, is_mount: bool) -> str:
    """What is remembered of a folder until the next run."""
    return _MOUNT if is_mount else _FOLDER


def check_mark(jail: Jail, mark: str | None, marker: str | None) -> None:
    """Raises RootLost where a file system was mounted at the root in the last run, and none is now.

    A marker alone decides where a source has one.
    """
    if mark == _MOUNT and marker is None and not jail.is_mount:
        raise RootLost(
            f"{names.show(jail.path)} was a file system of its own in the last run, and is none now: is it mounted? "
            "If that is meant, name a file that is in it with [file] marker"
        )


def find_root(paths: list[bytes], path: bytes) -> tuple[bytes, list[bytes]] | None:
    """The root that a path is at or below, and the names on the way; None where there is none."""
    found = ((root, names.split(path, root)) for root in paths)
    return next(((root, way) for root, way in found if way is not None), None)
