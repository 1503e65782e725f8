"""Requests to one origin for a root of files: its login, its pauses and its time-outs. Of several threads, and blocking.

Only that origin is ever asked, so that only it gets the password; redirects are answers like any other.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InsecureRequestWarning,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
)

from searchcrawl import clock
from searchcrawl.bodies import Body, Spool, hold, read_whole
from searchcrawl.codes import BUSY, Code
from searchcrawl.deadline import POOLS, Deadline
from searchcrawl.http.address_guard import build_guard
from searchcrawl.kinds.file.remote.credentials import Credentials
from searchcrawl.kinds.file.remote.model import RemoteFailure
from searchcrawl.sources.config import Source
from searchcrawl.sources.fetch_tables import Fetch

# What may be said of requests is said by their failures.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)

#: As many threads as read at once, and the one that lists.
_CONNECTIONS: Final = 5
_PIECE_BYTES: Final = 65_536
_MOST_PAUSE_SECONDS: Final = 3600.0
#: A connection that was kept open may be shut by the server just when it is used again.
_RETRIES: Final = urllib3.Retry(
    total=1, connect=0, redirect=0, status=0, other=0, allowed_methods=None, respect_retry_after_header=False
)


class Answer:
    """The head of an answer, whose body is read by ``take_whole`` or ``read_pieces``, or not at all."""

    def __init__(self, response: urllib3.BaseHTTPResponse, connection: socket.socket | None, seconds: float) -> None:
        self._response = response
        self._connection = connection
        self._seconds = seconds
        self.status = response.status

    def header(self, name: str) -> str:
        """The value of a header, empty where there is none."""
        return self._response.headers.get(name) or ""

    def list_values(self, name: str) -> Sequence[str]:
        """The values of a header that may come several times."""
        return self._response.headers.getlist(name)

    @property
    def has_end(self) -> bool:
        """Whether the server says where the body ends: else one that is cut looks whole."""
        return bool(self.header("Content-Length")) or "chunked" in self.header("Transfer-Encoding").lower()

    def read_pieces(self, most_bytes: int) -> Iterator[bytes]:
        """The body, of which 64 kB each must come within the time of a whole answer; raises RemoteFailure."""
        read = 0
        while piece := self._read(_PIECE_BYTES):
            read += len(piece)
            if read > most_bytes:
                raise RemoteFailure(f"the answer has more than {most_bytes} bytes", code=Code.READ_ERROR)
            yield piece

    def take_whole(self, most_bytes: int, spool: Spool) -> Body | None:
        """The body as the spool has it, within the time of a whole answer; None where it has more than ``most_bytes``. Raises RemoteFailure."""
        length = self.header("Content-Length")
        if length.isascii() and length.isdigit() and int(length[:20]) > most_bytes:
            return None
        body = self._take(most_bytes + 1, spool)
        return body if len(body) <= most_bytes else None

    def close(self) -> None:
        """Gives the connection back, to be used again if the body was read to its end, or is a short one."""
        with contextlib.suppress(RemoteFailure):
            self._read(_PIECE_BYTES)
        self._response.close()
        self._response.release_conn()

    def _read(self, most_bytes: int) -> bytes:
        """Up to so many bytes; fewer only at the end."""
        return read_whole(self._take(most_bytes, hold()))

    def _take(self, most_bytes: int, spool: Spool) -> Body:
        left = most_bytes
        with Deadline(self._seconds, self._connection) as deadline:
            try:
                while left > 0 and (piece := self._response.read(min(left, _PIECE_BYTES), decode_content=False)):
                    spool.write(piece)
                    left -= len(piece)
            except (HTTPError, OSError) as error:
                raise _explain(error, deadline, Code.READ_ERROR) from error
            if deadline.expired:
                raise _explain(None, deadline, Code.TIMEOUT)
        return spool.finish()


class WebClient:
    """Sends requests to the origin of ``url``; raises RemoteFailure where the files for TLS cannot be used."""

    def __init__(self, source: Source, url: str, *, credentials: Credentials | None, user_agent: str) -> None:
        fetch = source.fetch
        self._seconds = fetch.timeout_seconds
        self._headers = {**fetch.headers, "User-Agent": user_agent, "Accept-Encoding": "identity"}
        self._credentials = credentials
        self._pause = _Pause(most_seconds=fetch.timeout_seconds)
        parts = urlsplit(url)
        self._scheme, self._host, self._port = parts.scheme, parts.hostname or "", parts.port
        try:
            tls = fetch.tls_files(source.folder).build_context(verify=fetch.verify_certificates)
        except OSError as error:
            raise RemoteFailure(f"a file of [fetch] for TLS: {error}", code=Code.CERTIFICATE) from error
        self._pool = self._build_pool(fetch, tls)

    def _build_pool(self, fetch: Fetch, tls: ssl.SSLContext) -> urllib3.PoolManager:
        options: dict[str, Any] = {"maxsize": _CONNECTIONS, "ssl_context": tls, "retries": _RETRIES}
        if not fetch.verify_certificates:
            # The owner has said so.
            urllib3.disable_warnings(InsecureRequestWarning)
            options |= {"cert_reqs": ssl.CERT_NONE, "assert_hostname": False}
        address = next(iter(build_guard(fetch).addresses_for(self._host) or ()), None)
        if fetch.proxy is None and address is not None:
            if self._scheme == "https":
                options |= {"server_hostname": self._host, "assert_hostname": self._host}
            self._headers["Host"] = _join(self._host, self._port)
            self._host = address
        if fetch.proxy is None:
            pool = urllib3.PoolManager(**options)
        else:
            proxy = urlsplit(fetch.proxy)
            login = None if proxy.username is None else f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
            pool = urllib3.ProxyManager(
                f"http://{_join(proxy.hostname or '', proxy.port)}",
                proxy_headers=urllib3.make_headers(proxy_basic_auth=login),
                **options,
            )
        pool.pool_classes_by_scheme = POOLS
        return pool

    def close(self) -> None:
        """Closes all connections."""
        self._pause.end()
        self._pool.clear()

    @contextlib.contextmanager
    def send(
        self, method: str, target: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Iterator[Answer]:
        """The answer to a request for a path, whatever its status is; raises RemoteFailure."""
        self._pause.wait()
        answer = self._send_with_login(method, target, body, headers or {})
        try:
            if answer.status in BUSY:
                self._pause.begin(answer.header("Retry-After"))
            yield answer
        finally:
            answer.close()

    def _send_with_login(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        def send(more: Mapping[str, str]) -> Answer:
            return self._send(method, target, body, {**headers, **more})

        return send({}) if self._credentials is None else self._credentials.exchange(send, method, target)

    def _send(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        url = f"{self._scheme}://{_join(self._host, self._port)}{target}"
        with Deadline(self._seconds) as deadline:
            try:
                response = self._pool.urlopen(
                    method,
                    url,
                    body=body or None,
                    headers={**self._headers, **headers},
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                    timeout=self._seconds,
                )
            except (HTTPError, OSError) as error:
                raise _explain(error, deadline, Code.IO_ERROR) from error
            if deadline.expired:
                # An answer whose connection is shut in the headers looks like one without a body.
                response.close()
                raise _explain(None, deadline, Code.TIMEOUT)
        return Answer(response, deadline.connection, self._seconds)


class _Pause:
    """The pause that a server has asked for; all threads keep it.

    One that is longer than ``most_seconds`` is not waited for: until it is over, requests fail without being sent.
    """

    def __init__(self, *, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._ends = 0.0
        self._is_over = threading.Event()

    def begin(self, retry_after: str) -> None:
        """Begins the pause of a Retry-After header, if there is one."""
        seconds = clock.parse_pause(retry_after, most_seconds=_MOST_PAUSE_SECONDS)
        if seconds is not None:
            self._ends = max(self._ends, clock.monotonic() + seconds)

    def wait(self) -> None:
        """Waits until the pause is over; raises RemoteFailure where that is too long."""
        left = self._ends - clock.monotonic()
        if left > self._most_seconds:
            raise RemoteFailure(f"the server wants to be left alone for {left:.0f} s", code=503, transient=True)
        if left > 0:
            self._is_over.wait(left)

    def end(self) -> None:
        """Ends it, for good: nobody waits any more."""
        self._is_over.set()


def _join(host: str, port: int | None) -> str:
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"


def _explain(error: BaseException | None, deadline: Deadline, code: int) -> RemoteFailure:
    """The failure that an error means; ``code`` is that of one which has no code of its own."""
    if error is None or deadline.is_over:
        return RemoteFailure("no complete answer in fetch.timeout_seconds", code=Code.TIMEOUT, transient=True)
    text = str(error)
    cause: BaseException | None = error
    while cause is not None:
        text = str(cause) or text
        is_connecting = isinstance(cause, NewConnectionError)
        if isinstance(cause, (ReadTimeoutError, ConnectTimeoutError, TimeoutError)) and not is_connecting:
            return RemoteFailure("no complete answer in fetch.timeout_seconds", code=Code.TIMEOUT, transient=True)
        if isinstance(cause, NameResolutionError):
            return RemoteFailure("its host has no address", code=Code.ADDRESS_NOT_FOUND, transient=True)
        if isinstance(cause, ssl.SSLCertVerificationError):
            return RemoteFailure(f"its certificate is refused: {cause.verify_message}", code=Code.CERTIFICATE)
        if isinstance(cause, OSError) and cause.strerror:
            text = cause.strerror
            code = Code.CONNECTION_REFUSED if cause.errno == errno.ECONNREFUSED else code
        cause = cause.__cause__ or cause.__context__
    return RemoteFailure(text, code=code, transient=True)
