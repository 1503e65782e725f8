"""Downloads http and https with aiohttp, and only from addresses that may be reached (L7).

It requests exactly the URL of the request, follows no redirect, decodes nothing, stores no cookie and
uses no proxy of the environment. What Scrapy's own handlers do for each answer (signals, types guessed from the
body) is left out for sources: it costs more time than the download.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, NoReturn, Self

import aiohttp
import yarl
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
from scrapy.utils.asyncio import run_in_thread

from searchcrawl import clock
from searchcrawl.bodies import INLINE_BYTES, PIECE_BYTES, Body, Spool
from searchcrawl.failpoints import reach
from searchcrawl.http.address_guard import AddressGuard, PublicGuard
from searchcrawl.http.address_slots import AddressSlots
from searchcrawl.http.connector import AddressForbidden, GuardedConnector, TurnPassed
from searchcrawl.http.content_coding import BrokenCoding, DecodedTooLarge, decode_large, parse_codings
from searchcrawl.http.given_up_hosts import GivenUpHosts
from searchcrawl.http.large_response import MAY_BE_LARGE, build_response
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.http.proxy_middleware import ProxyRoute
from searchcrawl.http.side_requests import ANONYMOUS, COUNT_BYTES
from searchcrawl.http.unread_bodies import BEGINNING_BYTES, HARMLESS_BYTES, UnreadBodies
from searchcrawl.http.visit_end import (
    PAGES,
    PUBLIC_ONLY,
    BodyTooLarge,
    BrokenHeader,
    CertificateRefused,
    ForbiddenAddress,
    VisitEnded,
    find_claim,
)
from searchcrawl.items import Claim, Outcome
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.redirects import OwnOrigins
from searchcrawl.run import Run
from searchcrawl.sources.fetch_tables import TlsFiles
from searchcrawl.stages import stages_of

MAX_HEADER_LINE_BYTES: Final = 16 * 1024
MAX_HEADER_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 200
#: How much of the body of an error or a redirect is read before the connection is closed.
_UNWANTED_BODY_BYTES: Final = 64 * 1024
#: And how long: some servers announce a body of a redirect and never send it.
_UNWANTED_BODY_SECONDS: Final = 3
_PROXY_AUTHENTICATION: Final = 407
#: Sent to the proxy, and never to a site.
FOR_PROXY: Final = "Proxy-Authorization"
_FOR_PROXY_BYTES: Final = FOR_PROXY.encode()
#: We accept no transfer coding, and aiohttp decodes only chunked (RFC 9112 §6.1).
_CHUNKED: Final = {b"chunked"}
_NO_TRANSFER_CODINGS: Final = {b"identity", b""}
_TYPES: Final[dict[bytes, type[Response]]] = {
    b"text/html": HtmlResponse,
    b"application/xhtml+xml": HtmlResponse,
    b"text/xml": XmlResponse,
    b"application/xml": XmlResponse,
    b"text/plain": TextResponse,
}


class GuardedHandler(BaseDownloadHandler):
    """The download handler for http and https; one connection pool a crawl.

    Times out after ``request.meta["download_timeout"]`` (default: ``timeout_seconds``) seconds in all. Raises Scrapy's
    download errors and those of ``http.visit_end``. With ``request.meta["body_prefix_bytes"]`` the body is cut there
    instead of refused. Of a body among ``unread`` only the beginning is read. A large one is put into the folder ``spools``.
    """

    lazy = False
    #: whether the bodies of redirects and errors are read to their end
    _wants_every_body = False

    def __init__(
        self,
        crawler: Crawler,
        *,
        guard: AddressGuard,
        public_guard: AddressGuard,
        rate_limiter: RateLimiter,
        timeout_seconds: float,
        max_bytes: int,
        verify: bool,
        tls_files: TlsFiles,
        own_origins: OwnOrigins,
        lookups: NameLookups,
        given_up: GivenUpHosts | None = None,
        address_slots: AddressSlots | None = None,
        route: ProxyRoute | None = None,
        unread: UnreadBodies | None = None,
        spools: Path | None = None,
    ) -> None:
        super().__init__(crawler)
        self._guard = guard
        self._public_guard = public_guard
        self._rate_limiter = rate_limiter
        self._timeout_seconds = timeout_seconds
        self._max_bytes = max_bytes
        self._verify = verify
        self._tls_files = tls_files
        self._own_origins = own_origins
        self._lookups = lookups
        self._given_up = given_up or GivenUpHosts()
        self._address_slots = address_slots
        self._unread = unread
        self._spools = spools
        self._proxy = yarl.URL(route.url) if route is not None else None
        self._proxy_authorization = route.authorization if route is not None else None
        self._tls: dict[TlsFiles, ssl.SSLContext] = {}
        self._concurrency = crawler.settings.getint("CONCURRENT_REQUESTS")
        #: by whether they reach public addresses only
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        stages = stages_of(crawler)
        run = stages.get(Run)
        fetch = run.source.fetch
        guard, lookups = stages.get(AddressGuard), stages.get(NameLookups)
        counts = fetch.address_concurrency and stages.find(ProxyRoute) is None
        return cls(
            crawler,
            guard=guard,
            public_guard=stages.get(PublicGuard),
            rate_limiter=stages.get(RateLimiter),
            timeout_seconds=float(fetch.timeout_seconds),
            max_bytes=fetch.max_bytes,
            verify=fetch.verify_certificates,
            tls_files=fetch.tls_files(run.project.root),
            own_origins=stages.get(OwnOrigins),
            lookups=lookups,
            address_slots=AddressSlots(lookups, guard, most=fetch.address_concurrency) if counts else None,
            given_up=stages.get(GivenUpHosts),
            route=stages.find(ProxyRoute),
            unread=stages.find(UnreadBodies),
            spools=run.project.cache_dir,
        )

    async def download_request(self, request: Request) -> Response:
        """Fetches one URL; the answer's body is as sent, codings and all."""
        return await self._given_up.send(request.meta["download_slot"], self._download_in_slot, request)

    async def _download_in_slot(self, request: Request) -> Response:
        if self._address_slots is None:
            return await self._download(request)
        async with self._address_slots.hold(request.url):
            return await self._download(request)

    async def _download(self, request: Request) -> Response:
        meta = request.meta
        seconds: float = meta.get("download_timeout") or self._timeout_seconds
        session = self._choose_session(meta.get(PUBLIC_ONLY, False))
        headers = _list_headers(request.headers)
        proxy, authorization = self._choose_proxy(request)
        is_tls = request.url.startswith("https:")
        if authorization is not None and not is_tls:
            headers.append((FOR_PROXY, authorization))
        if self._lookups.is_limited and proxy is None:
            # Its turn may come late, and the host has the whole time to answer.
            await self._lookups.prepare(request.url, self._guard)
        await self._confirm_turn(request)
        started, host, has_answered = clock.monotonic(), "", False
        reach("fetch.sent")
        try:
            url = yarl.URL(request.url, encoded=True)
            host = url.raw_host or ""
            async with session.request(
                request.method,
                url,
                data=request.body or None,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=seconds),
                allow_redirects=False,
                ssl=self._choose_tls_context(request.url, anonymous=meta.get(ANONYMOUS, False)) if is_tls else True,
                proxy=proxy,
                proxy_headers={FOR_PROXY: authorization} if authorization is not None and is_tls else None,
            ) as answer:
                self._rate_limiter.note_there(meta["download_slot"])
                meta["download_latency"] = clock.monotonic() - started
                has_answered = True
                self._lookups.confirm(host)
                reach("fetch.headers")
                return await self._read_response(answer, request)
        except TurnPassed as error:
            claim = find_claim(request)
            if claim is None:
                _raise_scrapy_error(error, request.url, seconds)
            raise _give_back(claim) from error
        except (aiohttp.ClientError, ValueError, TimeoutError) as error:
            if not has_answered and _may_have_moved(error):
                self._lookups.forget(host, before=started)
            _raise_scrapy_error(error, request.url, seconds)
        finally:
            self._rate_limiter.start_delay(meta["download_slot"])

    async def _confirm_turn(self, request: Request) -> None:
        """Sees that the turn of a request is not over: the process may have been stopped since, and others ask the host now.

        A page is given back; another request waits for a turn anew.
        """
        host = request.meta["download_slot"]
        while not self._rate_limiter.may_send(host):
            claim = find_claim(request)
            if claim is not None:
                raise _give_back(claim)
            await self._rate_limiter.wait_until_allowed(host)

    async def close(self) -> None:
        """Closes all connections."""
        for session in self._sessions.values():
            await session.close()
            # One turn of the loop, so that the transports are closed before it is.
            await asyncio.sleep(0)
        await self._lookups.close()

    def _choose_session(self, public_only: bool) -> aiohttp.ClientSession:
        """The session for a request; those that may reach public addresses only have connections of their own."""
        known = self._sessions.get(public_only)
        if known is None:
            guard = self._public_guard if public_only else self._guard
            known = self._sessions[public_only] = aiohttp.ClientSession(
                connector=GuardedConnector(
                    guard, self._lookups, limit=self._concurrency, may_send=self._rate_limiter.may_send
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                max_line_size=MAX_HEADER_LINE_BYTES,
                max_field_size=MAX_HEADER_LINE_BYTES,
                max_headers=MAX_HEADERS,
            )
        return known

    def _choose_tls_context(self, url: str, *, anonymous: bool) -> ssl.SSLContext:
        """The context for an https URL; only the origins that get our headers see our certificate."""
        files = self._tls_files
        if files.client_certificate is not None and (anonymous or not self._own_origins.has(url)):
            files = files.without_certificate()
        # Built when it is needed: reading all certificate authorities takes time.
        context = self._tls.get(files)
        if context is None:
            context = self._tls[files] = files.build_context(verify=self._verify)
        return context

    async def _read_response(self, answer: aiohttp.ClientResponse, request: Request) -> Response:
        status = answer.status
        raw_headers = answer.raw_headers
        if not 100 <= status <= 999 or status == 101:
            raise BrokenHeader(f"status {status}")
        if status == _PROXY_AUTHENTICATION and self._proxy is not None:
            raise DownloadFailedError(f"the proxy {self._proxy} refuses us: 407 {answer.reason or ''}")
        if sum(len(name) + len(value) for name, value in raw_headers) > MAX_HEADER_BYTES:
            raise BrokenHeader(f"headers of more than {MAX_HEADER_BYTES} bytes")
        headers = _build_headers(raw_headers)
        if b"Transfer-Encoding" in headers:
            _check_transfer(headers)
        wanted = 200 <= status <= 299 or self._wants_every_body
        body = await self._read_body(answer, request) if wanted else await _read_unwanted_body(answer)
        kind = self._choose_type(headers, request.url, body)
        response = build_response(kind, request.url, status=status, body=body, request=request)
        # The attribute is set afterwards, because the constructor would copy the headers.
        response.headers = headers
        return response

    def _choose_proxy(self, request: Request) -> tuple[yarl.URL | None, str | None]:
        """The proxy, and what it is sent as Proxy-Authorization; None where there is none."""
        return self._proxy, self._proxy_authorization

    def _choose_type(self, headers: Headers, url: str, body: Body) -> type[Response]:
        kind = (headers.get(b"Content-Type") or b"").partition(b";")[0].strip().lower()
        return _TYPES.get(kind, Response)

    def _choose_limit(self, request: Request) -> int:
        """How many bytes a body may have; 0: any number."""
        return self._max_bytes

    async def _read_body(self, answer: aiohttp.ClientResponse, request: Request) -> Body:
        prefix_bytes: int = request.meta.get("body_prefix_bytes", 0)
        limit = prefix_bytes or self._choose_limit(request)
        announced = answer.content_length
        if limit and not prefix_bytes and announced is not None and announced > limit:
            answer.close()
            raise BodyTooLarge(f"{announced} bytes announced, more than {limit}")
        # Only visits of rows end early, of pages that came.
        unread = self._unread if find_claim(request) is not None and answer.status in PAGES else None
        count_bytes = request.meta.get(COUNT_BYTES)
        may_be_large = find_claim(request) is not None or request.meta.get(MAY_BE_LARGE)
        incoming = _Incoming(self._spools if may_be_large else None)
        pieces, size = incoming.pieces, 0
        try:
            async for piece in answer.content.iter_any():
                pieces.append(piece)
                size += len(piece)
                if count_bytes is not None:
                    count_bytes(len(piece))
                if unread is not None and size > HARMLESS_BYTES:
                    beginning = b"".join(pieces)[:BEGINNING_BYTES]
                    if unread.has(request.url, answer.raw_headers, beginning):
                        answer.close()
                        return beginning
                    unread = None
                if limit and size > limit:
                    answer.close()
                    if not prefix_bytes:
                        raise BodyTooLarge(f"more than {limit} bytes sent")
                    pieces[-1] = piece[: len(piece) + limit - size]
                    break
                if size > INLINE_BYTES:
                    await incoming.put_down(size)
        except aiohttp.ClientPayloadError:
            # With ``body_prefix_bytes`` any length may be announced, and so much would be decoded.
            if announced is None or (limit and announced > limit):
                raise
            body = await incoming.finish()
            if not await run_in_thread(_decodes_to, announced, body, answer.headers, self._spools):
                raise
            return body
        return await incoming.finish()


class _Incoming:
    """A body that comes, in memory as far as it is not large: the event loop waits for no disk.

    ``pieces`` are those that are not on the disk.
    """

    def __init__(self, spools: Path | None) -> None:
        self.pieces: list[bytes] = []
        self._spool = None if spools is None else Spool(spools)

    async def put_down(self, size: int) -> None:
        """Puts what has come of a large body, ``size`` bytes in all, on the disk; raises SpoolFailed."""
        spool = self._spool
        if spool is not None and size - spool.size >= PIECE_BYTES:
            await self._write(spool)

    async def finish(self) -> Body:
        """All of it; raises SpoolFailed."""
        if self._spool is None or not self._spool.size:
            return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
        await self._write(self._spool)
        return await run_in_thread(self._spool.finish)

    async def _write(self, spool: Spool) -> None:
        data = b"".join(self.pieces)
        self.pieces.clear()
        await run_in_thread(spool.write, data)


def _decodes_to(announced: int, body: Body, headers: Mapping[str, str], spools: Path | None) -> bool:
    """Whether a body that was cut has all of a page, whose length before it was compressed was announced.

    Chromium takes such bodies as well. That nothing is missing is what the coding itself says.
    """
    codings = parse_codings([headers.get("Content-Encoding", "").encode("latin-1", "replace")])
    try:
        return (
            bool(codings)
            and len(decode_large(body, codings, max_bytes=announced, new_spool=partial(Spool, spools))) == announced
        )
    except (BrokenCoding, DecodedTooLarge):
        return False


def _list_headers(headers: Headers) -> list[tuple[str, str]]:
    # dict's own items: those of Headers look each name up again. What is no UTF-8 goes out as the bytes that it is.
    return [
        (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
        for name, values in dict.items(headers)
        if name != _FOR_PROXY_BYTES
        for value in values
    ]


def _build_headers(raw_headers: tuple[tuple[bytes, bytes], ...]) -> Headers:
    """Builds the same as ``Headers(raw_headers)``, at a third of the cost."""
    headers = Headers()
    for name, value in raw_headers:
        dict.setdefault(headers, name.title(), []).append(value)
    return headers


def _check_transfer(headers: Headers) -> None:
    """Raises BrokenHeader for a transfer coding that would be stored as the page (X-R7).

    Proxies name chunks once more where they send them once, and curl and browsers read them so.
    """
    transfer = b",".join(dict.__getitem__(headers, b"Transfer-Encoding")).lower()
    codings = {coding.strip() for coding in transfer.split(b",")}
    if codings != _CHUNKED and not codings <= _NO_TRANSFER_CODINGS:
        raise BrokenHeader(f"Transfer-Encoding {transfer[:60]!r}")


async def _read_unwanted_body(answer: aiohttp.ClientResponse) -> bytes:
    """Reads the beginning of a body that is not used, so that the connection can be used again."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_UNWANTED_BODY_SECONDS):
            async for piece in answer.content.iter_any():
                pieces.append(piece)
                size += len(piece)
                if size > _UNWANTED_BODY_BYTES:
                    answer.close()
                    break
    except (aiohttp.ClientError, TimeoutError):
        # Status and headers are complete, and only they are needed.
        answer.close()
    return b"".join(pieces)


def _may_have_moved(error: Exception) -> bool:
    """Whether the host of a request without an answer may have another address by now: nobody was reached there."""
    return isinstance(error, aiohttp.ClientConnectorError | TimeoutError) and not isinstance(
        error, aiohttp.ClientConnectorDNSError
    )


def _give_back(claim: Claim) -> VisitEnded:
    return VisitEnded(Outcome(claim=claim, code=claim.code, released=True))


def _raise_scrapy_error(error: Exception, url: str, seconds: float) -> NoReturn:
    """Raises the error of Scrapy with the same meaning as an error of aiohttp."""
    text = str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        raise DownloadTimeoutError(f"no whole answer within {seconds:g} s") from error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        raise CertificateRefused(str(error.certificate_error)) from error
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        raise DownloadFailedError(f"TLS: {error.os_error}") from error
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        raise _build_connect_error(error, to="the proxy: ") from error
    if isinstance(error, aiohttp.ClientConnectorError):
        raise _build_connect_error(error) from error
    if isinstance(error, aiohttp.ClientHttpProxyError):
        raise DownloadFailedError(f"the proxy refuses to connect: {error.status} {error.message}") from error
    if isinstance(error, aiohttp.ClientPayloadError):
        raise ResponseDataLossError(text) from error
    if isinstance(error, aiohttp.ClientResponseError):
        raise BrokenHeader(error.message or text) from error
    if isinstance(error, aiohttp.InvalidURL | ValueError):
        raise UnsupportedURLSchemeError(f"cannot be requested: {url[:200]!r}: {text}") from error
    raise DownloadFailedError(text) from error


def _build_connect_error(error: aiohttp.ClientConnectorError, *, to: str = "") -> Exception:
    cause = error.os_error
    if isinstance(cause, AddressForbidden):
        return ForbiddenAddress(str(cause))
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return CannotResolveHostError(f"{to}no address for {error.host}: {cause.strerror or cause}")
    if isinstance(cause, ConnectionRefusedError):
        return DownloadConnectionRefusedError(f"{to}{cause}")
    if isinstance(cause, TimeoutError):
        return DownloadTimeoutError(f"{to}{cause}")
    return DownloadFailedError(f"{to}{cause}")
