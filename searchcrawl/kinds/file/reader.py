"""Reads files below the roots of a source, and says of what is not listed any more whether it is gone."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from errno import EACCES, ELOOP, EPERM
from functools import cache, partial
from threading import Lock
from typing import Final

from searchcrawl import clock
from searchcrawl.answer_headers import Level, Permissions, encode_permissions, encode_value
from searchcrawl.bodies import PIECE_BYTES, Body, Spool
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl, SpoolFailed
from searchcrawl.kinds.file import names
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.dates import list_dates
from searchcrawl.kinds.file.local import file_systems
from searchcrawl.kinds.file.local.folders import is_there, read_ignored
from searchcrawl.kinds.file.local.jail import Barred, Jail, OpenFile, RootLost, is_absent
from searchcrawl.kinds.file.local.permissions import Levels, list_levels_above, read_permissions
from searchcrawl.kinds.file.local.versions import Tokens, is_same
from searchcrawl.kinds.file.posix import find_user
from searchcrawl.kinds.file.remote.reading import RemoteReader
from searchcrawl.kinds.file.roots import (
    UNMOUNTED,
    Root,
    find_barred,
    find_root,
    has_something,
    list_roots,
    note_mark,
    open_root,
    require_marker,
)
from searchcrawl.kinds.file.selection import IsThere, find_refusal_on
from searchcrawl.listing.model import Marks, Read, ReadRequest, SameBody, Unread, to_version
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project

_DENIED: Final = 403
#: So often a file that changes while it is read is read.
_TRIES: Final = 3
#: Who may pass the folders above a root, by its path.
FindLevels = Callable[[bytes], Sequence[Level]]


class FileReader:
    """Reads files (``listing.model.Reader``). Roots are opened with the first file, and stay open."""

    def __init__(self, source: Source, project: Project, marks: Marks) -> None:
        self._source = source
        self._table: FileTable = source.own
        self._roots = list_roots(source)
        self._remote = RemoteReader(source, project)
        self._barred = find_barred(project)
        self._marks = marks
        self._spools = project.cache_dir
        self._jails = dict[bytes, Jail]()
        self._lock = Lock()

    def read(self, requests: Sequence[ReadRequest]) -> Sequence[Read | SameBody | Unread]:
        """What the files hold, with their owner, path, dates and permissions as headers."""
        found: dict[int, Read | SameBody | Unread] = {}
        # Of all that is read together they are looked at once.
        find_above = cache(_list_levels)
        remote = defaultdict[Root, list[int]](list)
        for place, request in enumerate(requests):
            if names.is_remote(request.url) and (root := find_root(self._roots, request.url)) is not None:
                remote[root].append(place)
            else:
                found[place] = self._read(request, find_above)
        for root, places in remote.items():
            answers = self._remote.read(root, [requests[place] for place in places])
            found |= zip(places, answers, strict=True)
        return [found[place] for place in range(len(requests))]

    def close(self) -> None:
        """Closes the roots."""
        self._remote.close()
        with self._lock:
            jails, self._jails = list(self._jails.values()), {}
        for jail in jails:
            jail.close()

    def _read(self, request: ReadRequest, find_above: FindLevels) -> Read | SameBody | Unread:
        try:
            path = names.to_path(request.url)
        except InvalidUrl as error:
            return Unread(code=Code.NO_LONGER_LISTED, error=str(error))
        found = self._locate(path)
        if found is None:
            return Unread(code=Code.NO_LONGER_LISTED, error="is in no root of the source")
        root, way = found
        try:
            jail = self._find_jail(root)
        except (OSError, Barred, RootLost) as error:
            return _lose_root(root, error)
        try:
            if not request.is_listed:
                refusal = find_refusal_on(way, self._table, jail.path.rstrip(b"/"), partial(_look_at, jail))
                if refusal is not None:
                    return self._say_gone(jail, way, f"left out by {refusal}")
            return self._read_file(jail, path, way, find_above, known=request.version)
        except Barred as barred:
            if barred.hides:
                return Unread(code=Code.READ_ERROR, error=barred.reason)
            return self._say_gone(jail, way, barred.reason)
        except SpoolFailed as error:
            return Unread(code=Code.READ_ERROR, error=str(error), transient=True)
        except OSError as error:
            return self._say_gone(jail, way, "no such file") if is_absent(error) else _describe_failure(error)

    def _locate(self, path: bytes) -> tuple[bytes, list[bytes]] | None:
        """The root of this machine that a path is at or below, and the names on the way."""
        roots = (root.path for root in self._roots if not root.is_remote)
        found = ((root, names.split(path, root)) for root in roots)
        return next(((root, way) for root, way in found if way is not None), None)

    def _find_jail(self, root: bytes) -> Jail:
        with self._lock:
            if root not in self._jails:
                mark = self._marks.find_mark(names.to_identity(root, is_folder=True))
                self._jails[root] = open_root(self._source, root, self._barred, mark)
            return self._jails[root]

    def _say_gone(self, jail: Jail, way: Sequence[bytes], reason: str) -> Unread:
        """Says that something is gone, where its root is still what it was, and is not empty."""
        try:
            jail.check()
            require_marker(jail, self._table.marker)
            if self._table.marker is None and not has_something(jail):
                raise RootLost(f"{names.show(jail.path)} is empty: is it mounted?")
            if self._table.cross_devices:
                self._check_mounts(jail, way)
        except (OSError, Barred, RootLost) as error:
            return _lose_root(jail.path, error)
        return Unread(code=Code.NO_LONGER_LISTED, error=reason)

    def _check_mounts(self, jail: Jail, way: Sequence[bytes]) -> None:
        """Raises RootLost where nothing is mounted any more at a folder on a way, and OSError where that cannot be seen."""
        url, above = names.to_identity(jail.path, is_folder=True), jail.facts
        for number, name in enumerate(way[:-1], start=1):
            url += f"{names.escape(name)}/"
            try:
                with jail.open_folder(way[:number]) as (_, facts):
                    is_mount = facts.st_dev != above.st_dev
            except OSError as error:
                if is_absent(error):
                    return
                raise
            if not is_mount and self._marks.find_mark(url) == note_mark(is_mount=True):
                raise RootLost(f"{names.show(names.to_path(url))} {UNMOUNTED}")
            above = facts

    def _read_file(
        self, jail: Jail, path: bytes, way: Sequence[bytes], find_above: FindLevels, *, known: int | None
    ) -> Read | SameBody | Unread:
        says_access = self._table.find_permissions("file") != "none"
        for _ in range(_TRIES):
            levels = Levels(find_above(jail.path)) if says_access else None
            with jail.open_file(way, levels) as file:
                if known is not None and _is_version(jail, file, known):
                    return SameBody(headers=self._build_headers(path, file, levels))
                body = self._read_body(file)
                if body is None:
                    return Unread(code=Code.TOO_LARGE, error=f"has more than {self._source.fetch.max_bytes} bytes")
                if is_same(file.facts, os.fstat(file.descriptor)) and len(body) == file.facts.st_size:
                    return Read(body=body, headers=self._build_headers(path, file, levels))
        return Unread(code=Code.READ_ERROR, error="changed while it was read", transient=True)

    def _read_body(self, file: OpenFile) -> Body | None:
        """What a file holds; None where that is more than ``fetch.max_bytes``, whatever of it is on the disk."""
        most = self._source.fetch.max_bytes
        if file.facts.st_size > most:
            return None
        spool, left = Spool(self._spools, self._table.inline_bytes), most + 1
        while left > 0 and (piece := os.read(file.descriptor, min(left, PIECE_BYTES))):
            spool.write(piece)
            left -= len(piece)
        return spool.finish() if left > 0 else None

    def _build_headers(self, path: bytes, file: OpenFile, levels: Levels | None) -> tuple[tuple[bytes, bytes], ...]:
        owner = find_user(file.facts.st_uid) or str(file.facts.st_uid)
        headers = [encode_value("file", "path", names.show(path)), encode_value("file", "owner", owner)]
        birth_ns = file_systems.find_birth_ns(file.descriptor)
        if birth_ns is not None and birth_ns > 0:
            headers.append(encode_value("file", "created", str(clock.iso(birth_ns // 1_000_000))))
        headers += list_dates(file.facts.st_mtime)
        if levels is not None:
            own = read_permissions(file.descriptor, file.facts)
            headers += encode_permissions(Permissions(own.allow, own.deny, levels.found))
        return tuple(headers)


@contextmanager
def _look_at(jail: Jail, way: Sequence[bytes]) -> Iterator[tuple[bytes | None, IsThere]]:
    with jail.open_folder(way) as (folder, _):
        yield read_ignored(folder), partial(is_there, folder)


def _list_levels(path: bytes) -> Sequence[Level]:
    return tuple(list_levels_above(path))


def _is_version(jail: Jail, file: OpenFile, version: int) -> bool:
    """Whether an open file is in this version."""
    token = Tokens(jail.file_system, None).build(file.facts, clock.now_ms() * 1_000_000)
    return to_version(token) == version


def _lose_root(root: bytes, error: OSError | Barred | RootLost) -> Unread:
    reason = f"{names.show(root)}: {error.strerror}" if isinstance(error, OSError) else str(error)
    return Unread(code=Code.IO_ERROR, error=reason, transient=True)


def _describe_failure(error: OSError) -> Unread:
    reason = error.strerror or str(error)
    if error.errno in {EACCES, EPERM}:
        return Unread(code=_DENIED, error=reason)
    return Unread(code=Code.READ_ERROR, error=reason, transient=error.errno != ELOOP)
