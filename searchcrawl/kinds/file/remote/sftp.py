"""Folders of servers over SFTP (draft-ietf-secsh-filexfer), with asyncssh.

A name is bytes. Links are never followed: what is listed and read is at the path that the server says is its real one, below
that of the root. What it is may change between two requests, as the protocol opens by path alone: a server on which others may
swap a file for a link while it is opened has to keep them in itself, by the rights of the user who reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Any, Final

import asyncssh

from searchcrawl import clock
from searchcrawl.answer_headers import Level, Permissions, encode_permissions, encode_value
from searchcrawl.bodies import Body, Spool, hold
from searchcrawl.codes import Code
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.dates import list_dates
from searchcrawl.kinds.file.names import split_remote
from searchcrawl.kinds.file.posix import CLOSED, MAY_PASS, MAY_READ, digest_levels, evaluate, read_mode
from searchcrawl.kinds.file.remote.model import RemoteFailure, RemoteFile, Thing, TooLarge, Way
from searchcrawl.kinds.file.remote.ssh_session import Sftp, SshSession
from searchcrawl.kinds.file.remote.tokens import build_token
from searchcrawl.listing.model import MOST_ENTRIES
from searchcrawl.sources.config import Source

#: So often a file that changes while it is read is read.
_TRIES: Final = 3
_PIECE_BYTES: Final = 1 << 20
_PORT: Final = 22
_HERE: Final = frozenset({b".", b".."})
_REGULAR, _FOLDER, _UNKNOWN = (
    asyncssh.FILEXFER_TYPE_REGULAR,
    asyncssh.FILEXFER_TYPE_DIRECTORY,
    asyncssh.FILEXFER_TYPE_UNKNOWN,
)
_TYPES: Final = {
    asyncssh.FILEXFER_TYPE_SYMLINK: "is a link",
    asyncssh.FILEXFER_TYPE_SOCKET: "is a socket",
    asyncssh.FILEXFER_TYPE_FIFO: "is a pipe",
    asyncssh.FILEXFER_TYPE_CHAR_DEVICE: "is a device",
    asyncssh.FILEXFER_TYPE_BLOCK_DEVICE: "is a device",
}

Attributes = asyncssh.SFTPAttrs


class SftpConnection:
    """A root on a server (``remote.model.Connection``)."""

    def __init__(self, source: Source, root: str) -> None:
        table: FileTable = source.own
        _, host, self._names = split_remote(root)
        name, colon, port = host.rpartition(":")
        has_port = bool(colon) and not host.endswith("]")
        self._real_root: bytes | None = None
        self._asks_levels = table.find_permissions("sftp") == "posix"
        self._session = SshSession(source, (name if has_port else host).strip("[]"), int(port) if has_port else _PORT)

    def close(self) -> None:
        """Ends the session."""
        self._session.close()

    def list_folder(self, way: Way) -> Iterator[Sequence[Thing]]:
        """What is in a folder (``remote.model.Connection``)."""
        scan = _Scan(self._session, self._locate(way))

        async def begin(sftp: Sftp) -> Sequence[Thing]:
            await self._require_plain(sftp, way)
            levels = await self._find_levels(sftp, way) if self._asks_levels else None
            return await scan.begin(sftp, levels)

        try:
            page = self._session.run(begin)
            while page:
                yield page
                page = self._session.run(scan.go_on, again=False)
        finally:
            self._session.forget(scan.end)

    def look(self, way: Way) -> Thing:
        """What is at the end of a way (``remote.model.Connection``)."""

        async def work(sftp: Sftp) -> Thing:
            path = self._locate(way)
            if not way:
                # The way to the root itself may have links: it is the owner's.
                return _describe(b"", await self._session.within(sftp.stat(path)), clock.now_ms(), None)
            now_ms = clock.now_ms()
            facts, is_plain = await asyncio.gather(
                self._session.within(sftp.lstat(path)), self._is_plain(sftp, way[:-1])
            )
            found = _describe(way[-1], facts, now_ms, None)
            return found if is_plain else found._replace(barred="is behind a link")

        return self._session.run(work)

    def read(self, way: Way, most_bytes: int, new_spool: Callable[[], Spool] = hold) -> RemoteFile:
        """What a file holds (``remote.model.Connection``)."""

        async def work(sftp: Sftp) -> RemoteFile:
            for _ in range(_TRIES):
                found = await self._read_once(sftp, way, most_bytes, new_spool())
                if found is not None:
                    return found
            raise RemoteFailure("changed while it was read", code=Code.READ_ERROR, transient=True)

        return self._session.run(work)

    async def _read_once(self, sftp: Sftp, way: Way, most_bytes: int, spool: Spool) -> RemoteFile | None:
        """What a file holds; None where it changed meanwhile."""
        within, path = self._session.within, self._locate(way)
        before, _ = await asyncio.gather(within(sftp.lstat(path)), self._require_plain(sftp, way))
        if before.type != _REGULAR:
            # To open a pipe would wait for ever.
            raise RemoteFailure(_TYPES.get(before.type, "is no file"), code=Code.READ_ERROR)
        size = before.size or 0
        if size > most_bytes:
            raise TooLarge
        levels = await self._find_levels(sftp, way[:-1]) if self._asks_levels else None
        file = await within(sftp.open(path, "rb", encoding=None))
        try:
            body = await self._read_body(file, size, spool)
        except BaseException:
            self._session.forget(file.close)
            raise
        after, _ = await asyncio.gather(within(file.stat()), within(file.close()))
        if _version(before) != _version(after) or len(body) != size:
            return None
        return RemoteFile(body=body, headers=tuple(_build_headers(after, levels)))

    async def _read_body(self, file: asyncssh.SFTPClientFile, size: int, spool: Spool) -> Body:
        """So many bytes, or all if there are fewer."""
        while spool.size < size and (
            piece := await self._session.within(file.read(min(size - spool.size, _PIECE_BYTES)))
        ):
            spool.write(_to_bytes(piece))
        return spool.finish()

    def _locate(self, way: Way) -> bytes:
        return b"/" + b"/".join((*self._names, *way))

    async def _require_plain(self, sftp: Sftp, way: Way) -> None:
        """Raises RemoteFailure where a way from the root leads through a link."""
        if not await self._is_plain(sftp, way):
            raise RemoteFailure("is a link, or is behind one", code=Code.READ_ERROR)

    async def _is_plain(self, sftp: Sftp, way: Way) -> bool:
        """Whether the real path of something is the way to it from the root's."""
        known, within = self._real_root, self._session.within
        found = _to_bytes(await within(sftp.realpath(self._locate(way)))).rstrip(b"/")
        if known is not None and found == b"/".join([known, *way]):
            return True
        # The way to the root itself may have links, which may lead elsewhere by now.
        self._real_root = _to_bytes(await within(sftp.realpath(self._locate(())))).rstrip(b"/")
        return found == b"/".join([self._real_root, *way])

    async def _find_levels(self, sftp: Sftp, way: Way) -> tuple[Level, ...]:
        """Who may pass a folder and those above it, up to the top that the server shows."""
        names = (*self._names, *way)
        paths = [b"/" + b"/".join(names[:depth]) for depth in range(len(names) + 1)]
        found = await asyncio.gather(*(self._find_level(sftp, path) for path in paths))
        return tuple(dict.fromkeys(level for level in found if level is not None))

    async def _find_level(self, sftp: Sftp, path: bytes) -> Level | None:
        """Who may pass a folder; None where everyone may."""
        try:
            facts = await self._session.within(sftp.stat(path))
        except asyncssh.SFTPPermissionDenied:
            return CLOSED
        level = _find_level(facts, MAY_PASS)
        return None if level.is_open else level


class _Scan:
    """A folder that is being read; its methods run in the thread of the session."""

    def __init__(self, session: SshSession, path: bytes) -> None:
        self._session = session
        self._path = path
        self._names: AsyncGenerator[asyncssh.SFTPName] | None = None
        self._levels: tuple[Level, ...] | None = None

    async def begin(self, sftp: Sftp, levels: tuple[Level, ...] | None) -> Sequence[Thing]:
        """The first part."""
        names: Any = sftp.scandir(self._path)
        self._names, self._levels = names, levels
        return await self.go_on(sftp)

    async def go_on(self, sftp: Sftp) -> Sequence[Thing]:
        """The next part; empty at the end."""
        return await self._session.within(self._take(sftp))

    async def _take(self, sftp: Sftp) -> Sequence[Thing]:
        found, now_ms = list[Thing](), clock.now_ms()
        if self._names is None:
            return found
        async for each in self._names:
            name, facts = _to_bytes(each.filename), each.attrs
            if name in _HERE:
                continue
            if facts.type == _UNKNOWN or facts.size is None:
                try:
                    facts = await sftp.lstat(self._path.rstrip(b"/") + b"/" + name)
                except asyncssh.SFTPNoSuchFile:
                    # It is gone since it was named.
                    continue
            found.append(_describe(name, facts, now_ms, self._levels))
            if len(found) == MOST_ENTRIES:
                break
        return found

    async def end(self) -> None:
        """Closes the folder on the server."""
        if self._names is not None:
            await self._session.within(self._names.aclose())


def _to_bytes(answer: bytes | str) -> bytes:
    """A name or a piece of a file, which are bytes in such a session."""
    return answer if isinstance(answer, bytes) else answer.encode("utf-8", "surrogateescape")


def _describe(name: bytes, facts: Attributes, now_ms: int, levels: Sequence[Level] | None) -> Thing:
    """What attributes say of a name, that were asked for not before a moment; ``levels`` where permissions count."""
    if facts.type == _FOLDER:
        return Thing(name, True)
    modified_ms = _find_modified_ms(facts)
    if facts.type != _REGULAR:
        return Thing(name, False, facts.size or 0, modified_ms, b"barred", barred=_TYPES.get(facts.type, "is no file"))
    more = () if levels is None else (facts.permissions, facts.uid, facts.gid, digest_levels(levels))
    return Thing(name, False, facts.size or 0, modified_ms, build_token(now_ms, facts.size, modified_ms, *more))


def _find_modified_ms(facts: Attributes) -> int | None:
    return None if facts.mtime is None else facts.mtime * 1000 + (facts.mtime_ns or 0) // 1_000_000


def _version(facts: Attributes) -> tuple[object, ...]:
    return facts.size, facts.mtime, facts.mtime_ns, facts.permissions, facts.uid, facts.gid


def _find_level(facts: Attributes, wanted: int) -> Level:
    """Who has a permission, by number; nobody where the server does not say. An ACL does not show."""
    if facts.permissions is None or facts.uid is None or facts.gid is None:
        return CLOSED
    return evaluate(read_mode(facts.permissions, facts.uid, facts.gid), wanted, is_here=False)


def _build_headers(facts: Attributes, levels: Sequence[Level] | None) -> Iterator[tuple[bytes, bytes]]:
    owner = facts.owner or facts.uid
    if owner is not None:
        yield encode_value("file", "owner", str(owner))
    yield from list_dates(facts.mtime)
    if levels is not None:
        own = _find_level(facts, MAY_READ)
        yield from encode_permissions(Permissions(own.allow, own.deny, tuple(levels)))
