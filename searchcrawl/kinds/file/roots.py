"""The roots of a source, and how they are opened: what is no root any more is a failure, and never an empty folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from searchcrawl import urls
from searchcrawl.kinds.file import names
from searchcrawl.kinds.file.config import FileTable, find_scheme
from searchcrawl.kinds.file.local.jail import Jail, Node, RootLost, find_nodes
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project


class Root(NamedTuple):
    """A root: as it was written, and its identity, which ends in a slash and begins those of all that is below it."""

    written: str
    url: str

    @property
    def is_remote(self) -> bool:
        """Whether it is on a server."""
        return names.is_remote(self.url)

    @property
    def scheme(self) -> str:
        """The scheme of its URL: ``file``, or that of a protocol."""
        return self.url.partition(":")[0]

    @property
    def names(self) -> tuple[bytes, ...]:
        """Of one on a server the names from the host on."""
        return names.split_remote(self.url)[2]

    @property
    def shown_path(self) -> bytes:
        """How the paths of what is in it begin in messages."""
        return self.written.rstrip("/").encode("utf-8", "surrogateescape")

    @property
    def path(self) -> bytes:
        """The absolute path of one of this machine."""
        return names.to_path(self.url)

    def identify(self, path: str) -> str:
        """The identity of a folder by its path from the root on, as somebody wrote it; by one with a slash before, from the top on."""
        if not self.is_remote:
            return names.to_identity(names.join(self.path, path), is_folder=True)
        begin = f"{urls.origin_of(self.url)}/" if path.startswith("/") else self.url
        return begin + "".join(f"{urls.escape_name(os.fsencode(name))}/" for name in path.split("/") if name)


def list_roots(source: Source) -> list[Root]:
    """The roots, in the order of the file."""
    table: FileTable = source.own
    folder = os.path.abspath(os.fsencode(source.folder))
    return [Root(text, _identify(text, folder)) for text in table.roots]


def _identify(text: str, folder: bytes) -> str:
    scheme = find_scheme(text)
    if scheme == "file":
        return names.to_identity(names.join(folder, text), is_folder=True)
    host, _, path = text.partition("://")[2].partition("/")
    found = [unquote_to_bytes(name) for name in path.removesuffix("/").split("/")] if path else []
    if scheme != "s3":
        found = [name for name in found if name]
    top = urls.resolve(f"{scheme}://{host}/", listed=True)
    return top + "".join(f"{urls.escape_name(name)}/" for name in found)


def find_overlap(roots: Sequence[Root]) -> tuple[int, int] | None:
    """The numbers of a root and of one that it is in, or the same as; None where there is none."""
    for number, root in enumerate(roots):
        for other, above in enumerate(roots):
            if other != number and root.url.startswith(above.url) and (root.url != above.url or other < number):
                return number, other
    return None


def find_root(roots: Sequence[Root], url: str) -> Root | None:
    """The root that an identity is at or below; None where there is none."""
    return next((root for root in roots if f"{url}/".startswith(root.url)), None)


def find_barred(project: Project) -> frozenset[Node]:
    """The project's own files and folders: what is there is never read, wherever a root is."""
    own = (project.root, project.sources_dir, project.plans_dir.parent, *project.stored_paths)
    return find_nodes(own)


def open_root(source: Source, path: bytes, barred: frozenset[Node], mark: str | None = None) -> Jail:
    """Opens a root; raises OSError, Barred, and RootLost where it lacks its marker, or is not what its ``mark`` says."""
    table: FileTable = source.own
    jail = Jail(path, follow_links=table.follow_links, cross_devices=table.cross_devices, barred=barred)
    try:
        require_marker(jail, table.marker)
        _check_mark(jail, mark, table.marker)
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
        raise RootLost(describe_unmarked(names.show(jail.path), marker)) from error


def has_something(jail: Jail) -> bool:
    """Whether there is anything in a root; raises OSError."""
    with jail.open_folder([]) as (folder, _), os.scandir(folder) as entries:
        return next(entries, None) is not None


def describe_empty(root: str) -> str:
    """Why a root in which there is nothing is none, where something was in it in the last run."""
    return (
        f"{root} is empty, and was not in the last run: is it mounted? "
        "If it is meant to be, name a file that is in it with [file] marker"
    )


def describe_unmarked(root: str, marker: str) -> str:
    """Why a root without its marker is none."""
    return f"{root} has no {marker} in it: is it mounted?"


#: Marks of folders: a file system of its own begins there, or none.
_MOUNT: Final = '"mount"'
_FOLDER: Final = '"folder"'


def note_mark(*, is_mount: bool) -> str:
    """What is remembered of a folder until the next run."""
    return _MOUNT if is_mount else _FOLDER


#: Why a folder is not read where nothing is mounted at it any more.
UNMOUNTED: Final = "was a file system of its own in the last run, and is none now: is it mounted?"


def _check_mark(jail: Jail, mark: str | None, marker: str | None) -> None:
    """Raises RootLost where a file system was mounted at the root in the last run, and none is now.

    A marker alone decides where a source has one.
    """
    if mark == _MOUNT and marker is None and not jail.is_mount:
        raise RootLost(
            f"{names.show(jail.path)} {UNMOUNTED} If that is meant, name a file that is in it with [file] marker"
        )
