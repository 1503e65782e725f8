"""Which protocols there are for folders on servers, and how a root is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final, NamedTuple

from searchcrawl.codes import Code
from searchcrawl.kinds.file.remote.model import Connection, Open, RemoteFailure
from searchcrawl.kinds.file.roots import Root, describe_empty, describe_unmarked
from searchcrawl.sources.config import Source
from searchcrawl.terminal import to_one_line


class _Protocol(NamedTuple):
    """The module of a protocol, its ``Connection``, and the extra of the package that brings what it needs."""

    module: str
    name: str
    extra: str = ""
    #: whether it is built with ``user_agent``, too
    is_http: bool = False


_PACKAGE: Final = "searchcrawl.kinds.file.remote"
#: By the scheme of roots. They are loaded once a root needs them.
_PROTOCOLS: Final = {
    "sftp": _Protocol("sftp", "SftpConnection", "sftp"),
    "smb": _Protocol("smb", "SmbConnection", "smb"),
    "dav": _Protocol("webdav", "DavConnection", is_http=True),
    "davs": _Protocol("webdav", "DavConnection", is_http=True),
    "s3": _Protocol("s3", "S3Connection", "s3", is_http=True),
}


def find_missing(roots: Sequence[Root]) -> Iterator[tuple[str, str]]:
    """What is not installed and roots need: the key of the root, and what brings it."""
    for number, root in enumerate(roots):
        if root.is_remote:
            try:
                _load(root)
            except ImportError as error:
                protocol = _PROTOCOLS[root.scheme]
                name = error.name if isinstance(error, ModuleNotFoundError) else to_one_line(str(error))
                yield f"file.roots[{number}]", f"needs {name}: pip install 'searchcrawl[{protocol.extra}]'"


def require_protocols(source: Source, roots: Sequence[Root]) -> None:
    """Raises ConfigurationError for a root whose protocol cannot be had, as long as something is not installed."""
    for key, message in find_missing(roots):
        raise source.build_error(key, message)


def _load(root: Root) -> Open:
    protocol = _PROTOCOLS[root.scheme]
    found: Open = getattr(import_module(f"{_PACKAGE}.{protocol.module}"), protocol.name)
    return found


def connect(source: Source, root: Root, user_agent: str) -> Connection:
    """Opens a root, and sees that it has its marker; raises RemoteFailure."""
    more = {"user_agent": user_agent} if _PROTOCOLS[root.scheme].is_http else {}
    connection = _load(root)(source, root.url, **more)
    try:
        require_marker(connection, root, source.own.marker)
    except BaseException:
        connection.close()
        raise
    return connection


def require_marker(connection: Connection, root: Root, marker: str | None) -> None:
    """Raises RemoteFailure where a root has no marker in it, or where that cannot be seen."""
    if marker is None:
        return
    try:
        connection.look((marker.encode("utf-8", "surrogateescape"),))
    except RemoteFailure as failure:
        if not failure.is_absent:
            raise
        raise RemoteFailure(describe_unmarked(root.written, marker), code=Code.IO_ERROR) from failure


def has_something(connection: Connection) -> bool:
    """Whether there is anything in a root; raises RemoteFailure."""
    return any(connection.list_folder(()))


def require_root(connection: Connection, root: Root, marker: str | None) -> None:
    """Raises RemoteFailure where a root that was read is not there any more: it has no marker, or nothing is in it."""
    require_marker(connection, root, marker)
    if marker is None and not has_something(connection):
        raise RemoteFailure(describe_empty(root.written), code=Code.IO_ERROR, transient=True)
