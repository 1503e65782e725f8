"""Reads files of roots on servers, over any protocol, and says of what is not listed any more whether it is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Final

from searchcrawl.answer_headers import encode_value
from searchcrawl.bodies import Spool
from searchcrawl.codes import UNREACHABLE, Code
from searchcrawl.exceptions import SpoolFailed
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.names import can_be_name, show, split_remote
from searchcrawl.kinds.file.remote.connecting import connect, require_root
from searchcrawl.kinds.file.remote.model import Connection, Describing, RemoteFailure, TooLarge, Way
from searchcrawl.kinds.file.remote.walking import look_for, read_ignored
from searchcrawl.kinds.file.roots import Root
from searchcrawl.kinds.file.selection import IsThere, find_refusal_on
from searchcrawl.listing.model import Read, ReadRequest, SameBody, Unread, to_version
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project

_DENIED: Final = 403
_NO_CREDENTIALS: Final = 401
#: The least status of a server that cannot answer now, and others of this kind.
_BROKEN: Final = 500
_PASSING: Final = frozenset({408, 423, 429})


class RemoteReader:
    """Reads below roots on servers; thread-safe. A root is opened with its first file, and stays open."""

    def __init__(self, source: Source, project: Project) -> None:
        self._source = source
        self._user_agent = project.user_agent_header
        self._spools = project.cache_dir
        self._table: FileTable = source.own
        self._connections = dict[str, Connection]()
        self._locks = dict[str, Lock]()
        self._lock = Lock()

    def close(self) -> None:
        """Ends the sessions."""
        with self._lock:
            connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            connection.close()

    def read(self, root: Root, requests: Sequence[ReadRequest]) -> Sequence[Read | SameBody | Unread]:
        """What files of one root hold. That the root is there is looked at after those that are not, and once for all of them."""
        try:
            connection = self._open(root)
            found = self._read_all(connection, root, requests)
            if any(each.code == Code.NO_LONGER_LISTED for each in found if isinstance(each, Unread)):
                require_root(connection, root, self._table.marker)
        except (RemoteFailure, OSError) as failure:
            return [_lose_root(root, failure)] * len(requests)
        return found

    def _read_all(
        self, connection: Connection, root: Root, requests: Sequence[ReadRequest]
    ) -> Sequence[Read | SameBody | Unread]:
        """What files hold; once the server is out of reach, it is not asked for the others."""
        found = list[Read | SameBody | Unread]()
        for request in requests:
            answer = self._read(connection, root, request)
            found.append(answer)
            if isinstance(answer, Unread) and answer.transient and answer.code in UNREACHABLE:
                return [*found, *[answer] * (len(requests) - len(found))]
        return found

    def _open(self, root: Root) -> Connection:
        with self._lock:
            lock = self._locks.setdefault(root.url, Lock())
        # A server that does not answer holds up the files of its own root alone.
        with lock:
            found = self._connections.get(root.url)
            if found is None:
                found = self._connections[root.url] = connect(self._source, root, self._user_agent)
            return found

    def _read(self, connection: Connection, root: Root, request: ReadRequest) -> Read | SameBody | Unread:
        scheme, _, names = split_remote(request.url)
        way = names[len(root.names) :]
        if not all(can_be_name(name, scheme) for name in way):
            return _say_gone("is no name of a file")
        try:
            if not request.is_listed:
                thing = look_for(connection, way)
                if thing is None:
                    return _say_gone("no such file")
                reason = thing.barred or ("is a folder" if thing.is_folder else "")
                if not reason:
                    refusal = find_refusal_on(way, self._table, root.shown_path, partial(_look_at, connection))
                    reason = f"left out by {refusal}" if refusal is not None else ""
                if reason:
                    return _say_gone(reason)
            path = encode_value("file", "path", show(b"/" + b"/".join(names)))
            if request.version is not None and isinstance(connection, Describing):
                described = connection.describe(way)
                if to_version(described.token) == request.version:
                    return SameBody(headers=(path, *described.headers))
            file = connection.read(way, self._source.fetch.max_bytes, self._new_spool)
        except TooLarge:
            return Unread(code=Code.TOO_LARGE, error=f"has more than {self._source.fetch.max_bytes} bytes")
        except RemoteFailure as failure:
            return self._describe(connection, way, failure)
        except SpoolFailed as error:
            return Unread(code=Code.READ_ERROR, error=str(error), transient=True)
        except OSError as error:
            return Unread(code=Code.READ_ERROR, error=error.strerror or str(error), transient=True)
        return Read(body=file.body, headers=(path, *file.headers))

    def _new_spool(self) -> Spool:
        return Spool(self._spools, self._table.inline_bytes)

    def _describe(self, connection: Connection, way: Way, failure: RemoteFailure) -> Unread:
        """Why a file was not read; one that is said not to be there is looked for once more."""
        reason = str(failure)
        if failure.is_absent:
            with suppress(RemoteFailure):
                if look_for(connection, way) is None:
                    return _say_gone(reason)
            return Unread(code=Code.READ_ERROR, error=reason, transient=True)
        if failure.code == _DENIED:
            return Unread(code=_DENIED, error=reason, transient=failure.transient)
        if failure.code == _NO_CREDENTIALS:
            # Nothing is said of this file: nobody is let in.
            return Unread(code=Code.IO_ERROR, error=reason, transient=failure.transient)
        is_said = failure.code >= _BROKEN or failure.code in _PASSING
        return Unread(code=failure.code if is_said else Code.READ_ERROR, error=reason, transient=failure.transient)


@contextmanager
def _look_at(connection: Connection, way: Way) -> Iterator[tuple[bytes | None, IsThere]]:
    yield read_ignored(connection, way), lambda name: look_for(connection, (*way, name)) is not None


def _say_gone(reason: str) -> Unread:
    return Unread(code=Code.NO_LONGER_LISTED, error=reason)


def _lose_root(root: Root, failure: RemoteFailure | OSError) -> Unread:
    return Unread(code=Code.IO_ERROR, error=f"{root.written}: {failure}", transient=True)
