"""Who opens the page of a case: Chromium alone, or the browser of a crawl with all that is between it and the servers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Self
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Error, Page, Playwright, async_playwright
from scrapy import Request
from scrapy.http import Headers, Response

from searchcrawl.http.side_requests import ANONYMOUS, SideRequests
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.render.browser import Browser
from searchcrawl.render.chromium import ChromiumFiles, kill_browser
from searchcrawl.render.crawl_wall import CrawlWall, PageRules
from searchcrawl.render.credentials import Credentials
from searchcrawl.render.login_steps import BrowserCookie, describe_cookie
from searchcrawl.render.rendered_page import RenderFailed
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.redirects import TargetRules
from searchcrawl.sources.fetch_tables import Render
from tests.browser_laws.case import LOCKED_ORIGINS, UNLOCK, Case, Cookie, Verdict, read_verdict
from tests.browser_laws.sites import BASIC, PASSWORD, USER, Sites

#: How long a page may take until it has its verdict.
_SECONDS: Final = 10.0
_AT_ONCE: Final = 6
#: What a page without a verdict has read.
NOTHING_SAID: Final = ("no verdict",)


async def run_all(runner: BareChromium | CrawlBrowser, count: int) -> list[Verdict]:
    """The verdicts of the first ``count`` cases, in their order."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def run(number: int) -> Verdict:
        async with places:
            return await runner.run(number)

    async with runner:
        return list(await asyncio.gather(*(run(number) for number in range(count))))


class BareChromium:
    """Chromium as it is, with a page for each case."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self._files = ChromiumFiles()
        self._playwright: Playwright | None = None
        self._browser: Chromium | None = None
        self._free: list[BrowserContext] = []

    async def __aenter__(self) -> Self:
        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(
            executable_path=self._files.script,
            args=[
                "--headless",
                "--site-per-process",
                "--disable-background-networking",
                # Playwright turns laws off, such as that of storage for each site; the last list is the one that counts.
                "--disable-features=Translate",
                "--host-resolver-rules=MAP *.test 127.0.0.1",
                f"--ignore-certificate-errors-spki-list={self.sites.authority.key_digest}",
            ],
            chromium_sandbox=True,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._browser is not None:
            await self._browser.close()
        if self._playwright is not None:
            await self._playwright.stop()
        await asyncio.to_thread(kill_browser, self._files)

    async def run(self, number: int) -> Verdict:
        """What came of the page of a case."""
        case = self.sites.cases[number]
        assert self._browser is not None
        # A new one takes long, and those of a password keep it.
        is_old = bool(self._free) and not case.has_password
        context = self._free.pop() if is_old else await self._browser.new_context(service_workers="block")
        html = ""
        try:
            given: list[Any] = [describe_cookie(_build_cookie(cookie, number)) for cookie in case.cookies]
            await context.add_cookies(given)
            page = await context.new_page()
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(_SECONDS):
                    html = await self._read(page, number)
            await page.close()
        finally:
            if case.has_password:
                await context.close()
            else:
                await context.clear_cookies()
                self._free.append(context)
        return Verdict(read_verdict(html) or NOTHING_SAID, self.sites.take_seen(number))

    async def _read(self, page: Page, number: int) -> str:
        if self.sites.cases[number].has_password:
            # As a user would; Playwright's own way stops each request, and changes them by that.
            for name in LOCKED_ORIGINS:
                await page.goto(
                    self.sites.find_origin(name).replace("://", f"://{USER}:{PASSWORD}@") + f"/{number}/{UNLOCK}"
                )
        await page.goto(self.sites.find_page(number), wait_until="commit")
        await page.wait_for_selector("#verdict", state="attached")
        return await page.content()


class CrawlBrowser:
    """The browser of a crawl, with its walls, rules and credentials; only the downloader is one of the test."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self._wall = _WallOfCases(sites)
        self._browser = Browser(
            Render(wait_for="#verdict", max_seconds=_SECONDS, pages=_AT_ONCE),
            self._wall,
            user_agent="Mozilla/5.0 (compatible; searchcrawl-test)",
            timeout_seconds=_SECONDS,
            max_bytes=1 << 20,
        )

    async def __aenter__(self) -> Self:
        await self._wall.open()
        await self._browser.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._browser.close()
        await self._wall.close()

    async def run(self, number: int) -> Verdict:
        """What came of the page of a case."""
        try:
            page = await self._browser.render(self.sites.find_page(number))
        except RenderFailed as error:
            return Verdict((f"failed: {error}",), self.sites.take_seen(number))
        return Verdict(read_verdict(page.html) or NOTHING_SAID, self.sites.take_seen(number))


class _WallOfCases:
    """A wall of a crawl for each case: each has credentials of its own."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Opens what sends the requests."""
        trusting = ssl.create_default_context(cadata=self._sites.authority.certificate_pem)
        connector = aiohttp.TCPConnector(resolver=_Loopback(), ssl=trusting, force_close=True)
        jar = aiohttp.DummyCookieJar()
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=jar, auto_decompress=False)

    async def close(self) -> None:
        """Ends it."""
        if self._session is not None:
            await self._session.close()

    def admit(self, url: str) -> PageRules:
        """The rules for the page of a case."""
        number = int(urlsplit(url).path.split("/")[1])
        case = self._sites.cases[number]
        boundary = Boundary(include_hosts=("test",), file="case")
        targets = TargetRules(boundary, starts=(url,))
        origins = [self._sites.find_origin(name) for name in LOCKED_ORIGINS] if case.has_password else []
        jar = _Jar(case, number)
        side = SideRequests(download=self._build_download(origins), rate_limiter=RateLimiter(), targets=targets)
        wall = CrawlWall(
            boundary,
            allow_hosts=(),
            targets=targets,
            side_requests=side,
            robots=None,
            max_bytes=1 << 20,
            credentials=Credentials(origins, lambda: jar),
        )
        return wall.admit(url)

    def _build_download(self, origins: list[str]) -> Any:
        """What sends a request, with the password where the crawl says that it may go along."""

        async def download(request: Request) -> Response:
            assert self._session is not None
            headers = {name.decode(): values[-1].decode() for name, values in dict.items(request.headers)}
            parts = urlsplit(request.url)
            if f"{parts.scheme}://{parts.netloc}" in origins and not request.meta.get(ANONYMOUS, False):
                headers["Authorization"] = BASIC
            async with self._session.request(
                request.method, request.url, headers=headers, data=request.body or None, allow_redirects=False
            ) as answer:
                body = await answer.read()
                found = Headers([(name, value) for name, value in answer.headers.items()])
                return Response(request.url, status=answer.status, headers=found, body=body, request=request)

        return download


class _Loopback(AbstractResolver):
    """Resolves all hosts to loopback."""

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=2, proto=0, flags=0)]

    async def close(self) -> None:
        """There is nothing to close."""


class _Jar:
    """The cookies of a case, as a login left them."""

    def __init__(self, case: Case, number: int) -> None:
        self._cookies = [_build_cookie(cookie, number) for cookie in case.cookies]

    def list_for_page(self, page_url: str) -> list[BrowserCookie]:
        return self._cookies

    def take_of_page(self, page_url: str, cookies: Sequence[BrowserCookie]) -> None:
        """What a page leaves is no matter of the next one."""

    def list_pairs(self, url: str, *, of_port: bool) -> frozenset[str]:
        return frozenset(f"{cookie.name}={cookie.value}" for cookie in self._cookies if of_port)


def _build_cookie(cookie: Cookie, number: int) -> BrowserCookie:
    return BrowserCookie(
        name=cookie.name,
        value="1",
        domain=cookie.domain,
        path=cookie.path.replace("/N/", f"/{number}/"),
        expires=None,
        https=cookie.https,
        http_only=cookie.http_only,
        same_site=cookie.same_site,
    )
