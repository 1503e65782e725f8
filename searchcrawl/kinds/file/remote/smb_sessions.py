"""Sessions with an SMB server: each answer has its time, a session that broke is opened anew, and errors are those of the room.

Signing and encryption are those of smbprotocol: signing always, encryption where the server or the share asks for it. Referrals
of DFS and links are not followed, as both lead elsewhere.
"""

from __future__ import annotations

import contextlib
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from smbprotocol.connection import Connection
from smbprotocol.exceptions import SMBAuthenticationError, SMBConnectionClosed, SMBException, SMBResponseException
from smbprotocol.header import Commands
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.kinds.file.remote import smb_statuses
from searchcrawl.kinds.file.remote.model import RemoteFailure
from searchcrawl.kinds.file.remote.smb_structures import read_server_ms
from searchcrawl.sources.secrets import hide, redact
from searchcrawl.terminal import to_one_line

#: A user whom the server refused is not tried again for so long: servers lock accounts after a few attempts.
_REFUSED_SECONDS: Final = 60.0

#: For so long a server may answer to a goodbye.
_LAST_SECONDS: Final = 3.0

_Result = TypeVar("_Result")


class Account(NamedTuple):
    """Who logs in where; without a name the ticket of Kerberos that the machine has."""

    host: str
    port: int
    username: str | None
    password: str | None


class _TimedConnection(Connection):  # type: ignore[misc]  # smbprotocol has no types
    """A connection on which each answer has its time, and no link is followed."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        super().__init__(uuid.uuid4(), host, port)
        self._answer_seconds = seconds
        #: how far the clock of the server is ahead, in milliseconds
        self.ahead_ms = 0

    def hurry(self) -> None:
        """Gives answers no more than a moment from now on."""
        self._answer_seconds = min(self._answer_seconds, _LAST_SECONDS)

    def receive(
        self, request: Any, wait: bool = True, timeout: float | None = None, resolve_symlinks: bool = True
    ) -> Any:
        response = super().receive(request, wait=wait, timeout=self._answer_seconds, resolve_symlinks=False)
        if response["command"].get_value() == Commands.SMB2_NEGOTIATE:
            server_ms = read_server_ms(response["data"].get_value())
            self.ahead_ms = 0 if server_ms is None else server_ms - clock.now_ms()
        return response


class Link(NamedTuple):
    """A session with its share."""

    connection: Any
    tree: Any

    @property
    def ahead_ms(self) -> int:
        """How far the clock of the server is ahead."""
        found: int = self.connection.ahead_ms
        return found

    def ask(self, message: Any) -> bytes:
        """Sends a request; the structure of its answer."""
        session = self.tree.session.session_id
        with _believing():
            sent = self.connection.send(message, session, self.tree.tree_connect_id)
        return self.receive(sent)

    def send_related(self, messages: list[Any]) -> list[Any]:
        """Sends requests about one thing in one go; each has its answer (``receive``)."""
        session = self.tree.session.session_id
        with _believing():
            sent: list[Any] = self.connection.send_compound(messages, session, self.tree.tree_connect_id, related=True)
        return sent

    def receive(self, request: Any) -> bytes:
        """The structure of an answer; raises SMBResponseException for a status that is no success."""
        with _believing():
            found: bytes = self.connection.receive(request)["data"].get_value()
        return found


@contextmanager
def _believing() -> Iterator[None]:
    """Raises SMBException for whatever the library raises of bytes that are no answer: that is not bounded."""
    try:
        yield
    except (SMBException, OSError, RemoteFailure):
        raise
    except Exception as error:
        raise SMBException(f"the answer of the server makes no sense ({type(error).__name__})") from error


class Share:
    """A share of a server. Of several threads, which have one session."""

    def __init__(self, account: Account, name: str, seconds: float) -> None:
        if account.password:
            hide(account.password)
        self._account = account
        self.host = account.host
        self.name = name
        self._seconds = seconds
        self._link: Link | None = None
        self._lock = Lock()

    def run(self, work: Callable[[Link], _Result]) -> _Result:
        """Does something in the session, once more in a new one where it broke; raises RemoteFailure."""
        with contextlib.suppress(_Lost):
            return self._try(self.connect(), work)
        return self.go_on(self.connect(), work)

    def go_on(self, link: Link, work: Callable[[Link], _Result]) -> _Result:
        """Does something in a session that had begun; raises RemoteFailure, also where it broke."""
        try:
            return self._try(link, work)
        except _Lost as error:
            raise RemoteFailure(str(error), code=Code.IO_ERROR, transient=True) from error

    def leave(self, link: Link, work: Callable[[Link], None]) -> None:
        """Does a last thing in a session, where it did not break."""
        if self._link is link:
            # Whoever leaves has what he wanted, or knows better why not.
            with contextlib.suppress(RemoteFailure):
                self.go_on(link, work)

    def _try(self, link: Link, work: Callable[[Link], _Result]) -> _Result:
        try:
            return work(link)
        except SMBResponseException as error:
            if error.status in smb_statuses.LOST:
                self._drop(link)
                raise _Lost("the server ended the session") from error
            raise smb_statuses.describe(error.status) from error
        except (SMBConnectionClosed, OSError) as error:
            self._drop(link)
            raise _Lost("the connection broke") from error
        except SMBException as error:
            self._drop(link)
            raise _describe(error) from error
        except ValueError as error:
            # Of structures that are none.
            self._drop(link)
            reason = f"the answer of the server makes no sense: {error}"
            raise RemoteFailure(reason, code=Code.READ_ERROR, transient=True) from error

    def connect(self) -> Link:
        """The session; raises RemoteFailure where there can be none."""
        with self._lock:
            if self._link is None:
                self._link = _log_in(self._account, self.name, self._seconds)
            return self._link

    def close(self) -> None:
        """Ends the session."""
        with self._lock:
            link, self._link = self._link, None
        if link is not None:
            _end(link.connection, is_whole=True)

    def _drop(self, link: Link) -> None:
        with self._lock:
            if self._link is link:
                self._link = None
        _end(link.connection, is_whole=False)


class _Lost(Exception):
    """A session broke, as that of a server that was started anew."""


_refused: dict[Account, tuple[float, str]] = {}


def _log_in(account: Account, share: str, seconds: float) -> Link:
    until, reason = _refused.get(account, (0.0, ""))
    if clock.monotonic() < until:
        raise RemoteFailure(reason, code=smb_statuses.NO_CREDENTIALS)
    connection = _TimedConnection(account.host, account.port, seconds)
    try:
        return _open(connection, account, share, seconds)
    except BaseException as error:
        _end(connection, is_whole=False)
        if isinstance(error, RemoteFailure) and error.code == smb_statuses.NO_CREDENTIALS:
            _refused[account] = clock.monotonic() + _REFUSED_SECONDS, str(error)
        raise


def _open(connection: _TimedConnection, account: Account, share: str, seconds: float) -> Link:
    try:
        with _believing():
            _connect(connection, account, seconds)
            session = Session(connection, account.username, account.password, require_encryption=False)
            _begin(session)
            tree = TreeConnect(session, rf"\\{account.host}\{share}")
            tree.connect()
    except SMBResponseException as error:
        is_denied = error.status == smb_statuses.ACCESS_DENIED
        raise smb_statuses.describe(smb_statuses.NETWORK_ACCESS_DENIED if is_denied else error.status) from error
    except (SMBException, OSError) as error:
        raise _describe(error) from error
    # Paths are those of the share, and what is on another server is not asked for.
    tree.is_dfs_share = False
    return Link(connection, tree)


def _connect(connection: _TimedConnection, account: Account, seconds: float) -> None:
    try:
        connection.connect(timeout=seconds)
    except ValueError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise _describe_unreached(account, error.__cause__) from error


def _begin(session: Any) -> None:
    """Logs in; raises RemoteFailure where the server, or this machine, has no such user."""
    try:
        session.connect()
    except SMBAuthenticationError as error:
        raise RemoteFailure(_tell(error), code=smb_statuses.NO_CREDENTIALS) from error
    except (SMBResponseException, SMBConnectionClosed):
        raise
    except SMBException as error:
        if "guest" not in str(error):
            raise
        raise RemoteFailure("the server takes the user for a guest", code=smb_statuses.NO_CREDENTIALS) from error


def _describe_unreached(account: Account, cause: BaseException | None) -> RemoteFailure:
    code = Code.IO_ERROR
    if isinstance(cause, socket.gaierror):
        code = Code.ADDRESS_NOT_FOUND
    elif isinstance(cause, ConnectionRefusedError):
        code = Code.CONNECTION_REFUSED
    elif isinstance(cause, TimeoutError):
        code = Code.TIMEOUT
    reason = getattr(cause, "strerror", None) or str(cause)
    return RemoteFailure(f"{account.host}:{account.port}: {reason}", code=code, transient=True)


def _describe(error: Exception) -> RemoteFailure:
    code = Code.TIMEOUT if "timeout" in str(error).lower() else Code.IO_ERROR
    reason = "the server did not answer in time" if code == Code.TIMEOUT else _tell(error)
    return RemoteFailure(reason, code=code, transient=True)


def _tell(error: Exception) -> str:
    return to_one_line(redact(" ".join(str(error).split())))[:400]


def _end(connection: Any, *, is_whole: bool) -> None:
    """Closes a connection, a whole one with a word to the server."""
    if connection.transport is None:
        return
    connection.hurry()
    # A server that is gone needs no word, and what is closed already is closed.
    with contextlib.suppress(SMBException, OSError):
        connection.disconnect(close=is_whole)
    with contextlib.suppress(OSError):
        connection.transport.close()
