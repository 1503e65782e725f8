"""A session of SFTP with a server, which threads may use together: asyncssh in a thread with a loop of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from threading import Thread, current_thread
from typing import Any, Final, TypeVar

import asyncssh

from searchcrawl.codes import Code
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.remote.model import RemoteFailure
from searchcrawl.sources.config import Source

# It says much of each connection that is of no use here.
logging.getLogger("asyncssh").setLevel(logging.WARNING)

T = TypeVar("T")
_DENIED: Final = 403
_NO_CREDENTIALS: Final = 401
_NOT_FOUND: Final = 404
#: A server that does not answer a question about the connection itself for so long is gone.
_KEEPALIVE_SECONDS: Final = 15
_CLOSE_SECONDS: Final = 5.0
_ABSENT: Final = (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath, asyncssh.SFTPNotADirectory)
_LOST: Final = (
    asyncssh.SFTPNoConnection,
    asyncssh.SFTPConnectionLost,
    asyncssh.DisconnectError,
    asyncssh.ChannelOpenError,
)
#: What a server says of a broken request; for all else it may have a reason that passes.
_FOR_GOOD: Final = (
    asyncssh.SFTPBadMessage,
    asyncssh.SFTPOpUnsupported,
    asyncssh.SFTPInvalidFilename,
    asyncssh.SFTPLinkLoop,
)

Sftp = asyncssh.SFTPClient


class SshSession:
    """A session, which is opened by the constructor, and anew once it was lost. Raises RemoteFailure."""

    def __init__(self, source: Source, host: str, port: int) -> None:
        self._table: FileTable = source.own
        self._folder = source.folder
        self._host, self._port = host, port
        self._seconds: float = source.fetch.timeout_seconds
        self._connection: asyncssh.SSHClientConnection | None = None
        self._sftp: Sftp | None = None
        self._loop = asyncio.new_event_loop()
        self._opening = asyncio.Lock()
        self._thread = Thread(target=self._loop.run_forever, name="sftp", daemon=True)
        self._thread.start()
        try:
            self._await(self._open())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the session, and its thread."""
        if self._is_own_thread():
            # Whoever collects what nobody needs any more may be this thread.
            self._loop.stop()
        elif self._thread.is_alive():
            self._await(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def run(self, work: Callable[[Sftp], Awaitable[T]], *, again: bool = True) -> T:
        """What ``work`` brings, in the thread of the session. Raises RemoteFailure; with ``again`` a lost session is opened once more."""
        return self._await(self._serve(work, again=again))

    def forget(self, work: Callable[[], Awaitable[object]]) -> None:
        """Has something done that nobody waits for, as long as the session is there."""

        async def begin() -> None:
            with suppress(asyncssh.Error, OSError):
                await work()

        if self._thread.is_alive() and not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(begin(), self._loop)

    def _is_own_thread(self) -> bool:
        return current_thread() is self._thread

    async def within(self, answer: Awaitable[T]) -> T:
        """An answer that has to come within ``fetch.timeout_seconds``."""
        async with asyncio.timeout(self._seconds):
            return await answer

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self, work: Callable[[Sftp], Awaitable[T]], *, again: bool) -> T:
        while True:
            sftp = await self._open()
            try:
                return await work(sftp)
            except (asyncssh.Error, OSError) as error:
                is_lost = isinstance(error, (*_LOST, OSError))
                if is_lost:
                    self._drop(sftp)
                # A server that is slow is not asked twice.
                if is_lost and again and not isinstance(error, TimeoutError):
                    again = False
                    continue
                raise self._describe(error) from error

    async def _open(self) -> Sftp:
        async with self._opening:
            if self._sftp is None:
                try:
                    self._connection = await self.within(self._connect())
                    self._sftp = await self.within(self._connection.start_sftp_client(path_encoding=None))
                except (asyncssh.Error, OSError, ValueError) as error:
                    if self._connection is not None:
                        self._connection.abort()
                        self._connection = None
                    raise self._describe_opening(error) from error
            return self._sftp

    async def _connect(self) -> asyncssh.SSHClientConnection:
        table, options = self._table, dict[str, Any]()
        if table.username is not None:
            options["username"] = str(table.username)
        if table.key_file is not None:
            path = str(self._folder / table.key_file)
            secret = None if table.password is None else str(table.password)
            # Raises what is wrong with it; the connection reads it with the certificate beside it.
            asyncssh.read_private_key(path, secret)
            options |= {"client_keys": [path], "passphrase": secret, "agent_path": None}
        elif table.password is not None:
            options |= {"password": str(table.password), "client_keys": None, "agent_path": None}
        return await asyncssh.connect(
            self._host,
            self._port,
            known_hosts=self._read_known_hosts(),
            # Neither a user's own settings, nor what they would run.
            config=None,
            keepalive_interval=_KEEPALIVE_SECONDS,
            connect_timeout=self._seconds,
            login_timeout=self._seconds,
            **options,
        )

    def _read_known_hosts(self) -> bytes:
        if self._table.known_hosts is not None:
            return (self._folder / self._table.known_hosts).read_bytes()
        try:
            return Path("~/.ssh/known_hosts").expanduser().read_bytes()
        except (FileNotFoundError, RuntimeError):
            # Nobody is known: the error says so.
            return b""

    def _drop(self, sftp: Sftp) -> None:
        """Forgets a session that was lost, unless another one is in its place."""
        if self._sftp is sftp:
            self._sftp = None
            if self._connection is not None:
                self._connection.abort()
                self._connection = None

    async def _end(self) -> None:
        connection, self._connection, self._sftp = self._connection, None, None
        if connection is not None:
            connection.close()
            with suppress(asyncssh.Error, OSError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await connection.wait_closed()
            connection.abort()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_CLOSE_SECONDS)

    def _describe_opening(self, error: Exception) -> RemoteFailure:
        """Why a session cannot be opened. What a library says of a password is not repeated."""
        table = self._table
        if isinstance(error, asyncssh.PermissionDenied):
            return RemoteFailure(f"the server refuses the login: {_say(error)}", code=_NO_CREDENTIALS)
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            place = table.known_hosts or "~/.ssh/known_hosts"
            return RemoteFailure(f"the key of the server is not in {place}: {_say(error)}", code=Code.CERTIFICATE)
        if isinstance(error, asyncssh.KeyImportError | asyncssh.KeyEncryptionError):
            return RemoteFailure(f"{table.key_file} is no key that can be read: {_say(error)}", code=_NO_CREDENTIALS)
        if isinstance(error, OSError) and error.filename is not None:
            return RemoteFailure(f"{error.filename} cannot be read ({error.strerror})", code=_NO_CREDENTIALS)
        if isinstance(error, ValueError):
            return RemoteFailure(f"no session can be opened: {_say(error)}", code=Code.IO_ERROR)
        return self._describe(error)

    def _describe(self, error: Exception) -> RemoteFailure:
        if isinstance(error, _ABSENT):
            return RemoteFailure("no such file", code=_NOT_FOUND, is_absent=True)
        if isinstance(error, asyncssh.SFTPPermissionDenied):
            return RemoteFailure("permission denied", code=_DENIED)
        if isinstance(error, TimeoutError):
            return RemoteFailure(f"no answer within {self._seconds:g} seconds", code=Code.TIMEOUT, transient=True)
        if isinstance(error, ConnectionRefusedError):
            return RemoteFailure("the server refuses the connection", code=Code.CONNECTION_REFUSED, transient=True)
        if isinstance(error, socket.gaierror):
            return RemoteFailure(f"no address: {_say(error)}", code=Code.ADDRESS_NOT_FOUND, transient=True)
        if isinstance(error, asyncssh.SFTPError) and not isinstance(error, _LOST):
            is_passing = not isinstance(error, _FOR_GOOD)
            return RemoteFailure(f"the server says: {_say(error)}", code=Code.READ_ERROR, transient=is_passing)
        return RemoteFailure(f"the session broke: {_say(error)}", code=Code.IO_ERROR, transient=True)


def _say(error: Exception) -> str:
    """What an error says."""
    text = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)
