"""Downloads http and https with aiohttp, and only from addresses that may be reached (L7).

It asks for exactly the URL it is given, follows nothing, decodes nothing, keeps no cookies and
knows no proxies. What Scrapy's own aiohttp handler does per answer for signals and guessed types
is left out: it costs more than the download.
"""

from __future__ import annotations

import asyncio
import functools
import re
import socket
import ssl
from typing import Any, Final, NoReturn

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.resolver import ThreadedResolver
from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers, HtmlResponse, Response, TextResponse, XmlResponse

from searchcrawl import clock
from searchcrawl.failpoints import passing
from searchcrawl.fetch.address_guard import AddressGuard
from searchcrawl.fetch.ending import BodyTooLarge, BrokenHeader, CertificateRefused, ForbiddenAddress
from searchcrawl.fetch.run_state import guard_of, run_of

MAX_HEADER_LINE_BYTES: Final = 16 * 1024
MAX_HEADER_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 200
#: How much of the body of an error or a redirect is read before the connection is given up.
_UNWANTED_BODY_BYTES: Final = 64 * 1024
_DNS_SECONDS: Final = 60
#: How aiohttp's parser begins what it says of a broken chunk; what the server sent comes behind.
_BROKEN_CHUNK: Final = re.compile(r"[A-Za-z ]{0,60}\bchunk\b", re.IGNORECASE)
#: We ask for no transfer coding, and aiohttp undoes none but this one (RFC 9112 §6.1).
_TRANSFER_CODINGS: Final = frozenset({b"chunked", b"identity"})
#: Connections are kept open to so many hosts without a request: a site of thousands of hosts would take all files.
MAX_IDLE_HOSTS: Final = 64
_TYPES: Final[dict[bytes, type[Response]]] = {
    b"text/html": HtmlResponse,
    b"application/xhtml+xml": HtmlResponse,
    b"text/xml": XmlResponse,
    b"application/xml": XmlResponse,
    b"text/plain": TextResponse,
}


class _Forbidden(OSError):
    """An address was refused; an OSError, so that aiohttp tries the next address."""


class _GuardedResolver(AbstractResolver):
    """Asks ``resolve`` of the source, then DNS, and leaves out what may not be reached."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._dns = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        named = self._guard.addresses_for(host)
        if named is None:
            found = await self._dns.resolve(host, port, family)
        else:
            found = [_resolved(host, address, port) for address in named]
        allowed = [result for result in found if self._guard.decide(result["host"]).allowed]
        if found and not allowed:
            raise _forbidden(self._guard, found[0]["host"])
        return allowed

    async def close(self) -> None:
        await self._dns.close()


class _Connection(ResponseHandler):
    """Knows a body without a length that ended by a reset from one that ended well (R6).

    Ends itself when a server speaks although nothing was asked: it would be taken for the next answer.
    """

    idle = False

    def set_response_params(self, **parameters: Any) -> None:
        self.idle = False
        super().set_response_params(**parameters)

    def data_received(self, data: bytes) -> None:
        if self.idle and data:
            self.abort()
        else:
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        body = self._payload
        if exc is not None and body is not None and not body.is_eof():
            body.set_exception(aiohttp.ClientPayloadError(f"connection lost: {exc}"))
        super().connection_lost(exc)


class _Connector(aiohttp.TCPConnector):
    """Keeps connections to the last MAX_IDLE_HOSTS hosts only; aiohttp bounds those that are in use."""

    # There is no public limit on idle connections; test_many_hosts sees that this one holds.
    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        if isinstance(protocol, _Connection):
            protocol.idle = True
        super()._release(key, protocol, should_close=should_close)
        while len(self._conns) > MAX_IDLE_HOSTS:
            for idle, _ in self._conns.pop(next(iter(self._conns))):
                idle.close()


class GuardedHandler(BaseDownloadHandler):
    """The download handler for http and https; one connection pool a crawl.

    Times out after ``request.meta["download_timeout"]`` (default: the source's) seconds in all.
    Raises Scrapy's download errors and those of ``fetch.ending``. With
    ``request.meta["body_prefix_bytes"]`` the body is cut there instead of refused.
    """

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._run = run = run_of(crawler.spider)
        fetch = run.source.fetch
        self._timeout_seconds = float(fetch.timeout_seconds)
        self._max_bytes = int(fetch.max_bytes)
        self._guard = guard_of(run)
        self._verify = fetch.verify_certificates
        self._ca_file = run.project.path(fetch.ca_file) if fetch.ca_file else None
        self._tls: ssl.SSLContext | None = None
        self._concurrency = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._session: aiohttp.ClientSession | None = None

    async def download_request(self, request: Request) -> Response:
        """Fetches one URL; the answer's body is as sent, codings and all."""
        meta = request.meta
        seconds: float = meta.get("download_timeout") or self._timeout_seconds
        session = self._session or self._open()
        headers = _header_pairs(request.headers)
        started = clock.monotonic()
        passing("fetch.sent")
        try:
            async with session.request(
                request.method,
                yarl.URL(request.url, encoded=True),
                data=request.body or None,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=seconds),
                allow_redirects=False,
                ssl=self._tls_context() if request.url.startswith("https:") else True,
            ) as answer:
                meta["download_latency"] = clock.monotonic() - started
                passing("fetch.headers")
                return await self._read(answer, request)
        except (aiohttp.ClientError, ValueError, TimeoutError) as error:
            _raise_scrapys(error, request.url, seconds)
        finally:
            if self._run.politeness is not None:
                self._run.politeness.rest(meta["download_slot"])

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()
            # One turn of the loop, so that the transports are closed before it is.
            await asyncio.sleep(0)

    def _open(self) -> aiohttp.ClientSession:
        connector = _Connector(
            limit=self._concurrency,
            resolver=_GuardedResolver(self._guard),
            ttl_dns_cache=_DNS_SECONDS,
            socket_factory=self._socket_for,
        )
        # There is no public way to name the class of a connection's protocol; test_fetch_faults sees that it works.
        protocols: functools.partial[Any] = functools.partial(_Connection, loop=asyncio.get_running_loop())
        connector._factory = protocols
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            max_line_size=MAX_HEADER_LINE_BYTES,
            max_field_size=MAX_HEADER_LINE_BYTES,
            max_headers=MAX_HEADERS,
        )
        return self._session

    def _tls_context(self) -> ssl.SSLContext:
        # Made when it is needed: reading all authorities takes its time.
        if self._tls is None:
            context = ssl.create_default_context()
            if self._ca_file is not None:
                context.load_verify_locations(cafile=self._ca_file)
            if not self._verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols(["http/1.1"])
            self._tls = context
        return self._tls

    def _socket_for(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """The one place through which each connection goes, whatever its name was or where it came from."""
        family, kind, protocol, _, peer = address
        if not self._guard.decide(str(peer[0])).allowed:
            raise _forbidden(self._guard, str(peer[0]))
        return socket.socket(family, kind, protocol)

    async def _read(self, answer: aiohttp.ClientResponse, request: Request) -> Response:
        status = answer.status
        raw_headers = answer.raw_headers
        if not 100 <= status <= 999 or status == 101:
            raise BrokenHeader(f"status {status}")
        if sum(len(name) + len(value) for name, value in raw_headers) > MAX_HEADER_BYTES:
            raise BrokenHeader(f"headers of more than {MAX_HEADER_BYTES} bytes")
        headers = _scrapys_headers(raw_headers)
        if b"Transfer-Encoding" in headers:
            _check_transfer(headers)
        if 200 <= status <= 299:
            body = await self._body(answer, request)
        else:
            body = await _unwanted_body(answer)
        kind = (headers.get(b"Content-Type") or b"").partition(b";")[0].strip().lower()
        response = _TYPES.get(kind, Response)(request.url, status=status, body=body, request=request)
        # Set afterwards, because the constructor would copy them.
        response.headers = headers
        return response

    async def _body(self, answer: aiohttp.ClientResponse, request: Request) -> bytes:
        prefix_bytes: int = request.meta.get("body_prefix_bytes", 0)
        limit = prefix_bytes or self._max_bytes
        announced = answer.content_length
        if limit and not prefix_bytes and announced is not None and announced > limit:
            answer.close()
            raise BodyTooLarge(f"{announced} bytes announced, more than {limit}")
        pieces: list[bytes] = []
        size = 0
        async for piece in answer.content.iter_any():
            pieces.append(piece)
            size += len(piece)
            if limit and size > limit:
                answer.close()
                if not prefix_bytes:
                    raise BodyTooLarge(f"more than {limit} bytes sent")
                return b"".join(pieces)[:limit]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _header_pairs(headers: Headers) -> list[tuple[str, str]]:
    # dict's own items: those of Headers look each name up again.
    return [
        (name.decode("latin-1"), value.decode("latin-1")) for name, values in dict.items(headers) for value in values
    ]


def _scrapys_headers(raw_headers: tuple[tuple[bytes, bytes], ...]) -> Headers:
    """What ``Headers(raw_headers)`` is, at a third of its cost."""
    headers = Headers()
    for name, value in raw_headers:
        dict.setdefault(headers, name.title(), []).append(value)
    return headers


def _check_transfer(headers: Headers) -> None:
    """Refuses a body in a coding that would be taken for the page (R7)."""
    transfer = b", ".join(dict.__getitem__(headers, b"Transfer-Encoding")).strip().lower()
    if transfer not in _TRANSFER_CODINGS:
        raise BrokenHeader(f"Transfer-Encoding {transfer[:60]!r}")


async def _unwanted_body(answer: aiohttp.ClientResponse) -> bytes:
    """The beginning of a body that nobody needs: read so that the connection can be used again."""
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in answer.content.iter_any():
            pieces.append(piece)
            size += len(piece)
            if size > _UNWANTED_BODY_BYTES:
                answer.close()
                break
    except (aiohttp.ClientError, TimeoutError):
        # Status and header are whole, and all that counts here.
        answer.close()
    return b"".join(pieces)


def _resolved(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)


def _forbidden(guard: AddressGuard, address: str) -> _Forbidden:
    return _Forbidden(f"{address} may not be reached ({guard.decide(address).rule}; fetch.private_networks)")


def _raise_scrapys(error: Exception, url: str, seconds: float) -> NoReturn:
    """Raises the Scrapy error that says the same as aiohttp's."""
    text = str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        raise DownloadTimeoutError(f"no whole answer within {seconds:g} s") from error
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        raise _tls_error(error) from error
    if isinstance(error, aiohttp.ClientConnectorError):
        raise _connect_error(error) from error
    if isinstance(error, aiohttp.ClientPayloadError):
        raise ResponseDataLossError(text) from error
    if isinstance(error, aiohttp.ClientResponseError):
        if _BROKEN_CHUNK.match(error.message):
            # Came in one piece with its header; otherwise it is a ClientPayloadError.
            raise ResponseDataLossError(error.message) from error
        raise BrokenHeader(error.message or text) from error
    if isinstance(error, aiohttp.InvalidURL | ValueError):
        raise UnsupportedURLSchemeError(f"cannot be requested: {url[:200]!r}: {text}") from error
    raise DownloadFailedError(text) from error


def _tls_error(error: aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError) -> Exception:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return CertificateRefused(str(error.certificate_error))
    return DownloadFailedError(f"TLS: {error.os_error}")


def _connect_error(error: aiohttp.ClientConnectorError) -> Exception:
    cause = error.os_error
    if isinstance(cause, _Forbidden):
        return ForbiddenAddress(str(cause))
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return CannotResolveHostError(f"no address for {error.host}: {cause.strerror or cause}")
    if isinstance(cause, ConnectionRefusedError):
        return DownloadConnectionRefusedError(str(cause))
    if isinstance(cause, TimeoutError):
        return DownloadTimeoutError(str(cause))
    return DownloadFailedError(str(cause))
