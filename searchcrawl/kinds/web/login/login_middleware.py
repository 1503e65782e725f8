"""Logs in, sends credentials and cookies to their own origins only, and sees when the login is lost (C10, X-N7, 959).

A page that was refused may wait for what the other requests of the last login show that have no answer yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from searchcrawl import urls
from searchcrawl.codes import REDIRECT_STATUSES, Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.raw_page import find_raw_refresh
from searchcrawl.http.large_response import find_beginning
from searchcrawl.http.redirect_middleware import repeat_request
from searchcrawl.http.side_requests import LOST_LOGIN, META_KEY, SideRequests
from searchcrawl.http.visit_end import (
    PAGES,
    VisitEnded,
    build_visit_end,
    describe_status,
    find_claim,
    find_redirects,
)
from searchcrawl.items import Claim
from searchcrawl.kinds.web.login.cookie_jar import CookieJar
from searchcrawl.kinds.web.login.form import LoginFailed
from searchcrawl.kinds.web.login.http_login_middleware import BasicLogin, DigestLogin
from searchcrawl.kinds.web.login.session import LoginPlan, LoginSession
from searchcrawl.render.crawl_wall import OF_PAGE, CrawlWall
from searchcrawl.render.login_steps import LoginEnd, LoginSteps
from searchcrawl.render.login_wall import BROWSER_LOGIN, LoginWall
from searchcrawl.render.renderer import Renderer
from searchcrawl.run import Run, list_start_urls
from searchcrawl.sources.fetch_tables import Login
from searchcrawl.stages import Stages, stages_of

#: An answer is not waited for longer: its request may have ended in another way.
_ANSWER_SECONDS: Final = 10.0
#: Nor is the next request, once no other is under way: there may be none.
NEXT_SECONDS: Final = 3.0


class UnderWay:
    """Requests by keys of their own, numbered as they are sent; for the event loop.

    ``sent`` is the number of the last one, ``opened`` the highest of those that opened a page.
    """

    def __init__(self) -> None:
        self._generation = 0
        self._requests: dict[int, int] = {}
        self._changed = asyncio.Event()
        self.sent = 0
        self.opened = 0

    def begin(self, key: int, generation: int) -> None:
        """Notes that a request of the login ``generation`` is sent; those of older ones count no more."""
        if generation != self._generation:
            self._requests.clear()
            self._generation = generation
        self.sent += 1
        self._requests[key] = self.sent
        self._tell()

    def end(self, key: int, *, opened: bool = False) -> None:
        """Notes that a request was answered or failed."""
        number = self._requests.pop(key, None)
        if number is not None:
            self.opened = max(self.opened, number) if opened else self.opened
            self._tell()

    async def wait(self, *, for_next: bool = False) -> bool:
        """Waits until a request is sent or has ended; False where none does for long.

        If none is under way, it waits only with ``for_next``.
        """
        if not (self._requests or for_next):
            return False
        try:
            await asyncio.wait_for(self._changed.wait(), _ANSWER_SECONDS if self._requests else NEXT_SECONDS)
        except TimeoutError:
            return False
        return True

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


_PERMANENT: Final = frozenset({301, 308})
#: A page that was refused waits for no more requests than these.
_MOST_SENT_MEANWHILE: Final = 20
#: Where a redirect to the login came before, these are said to somebody who is logged in.
_KNOWN_TO_USER: Final = frozenset({403, 404, 410})


class SessionLogin:
    """Logs in by a form, cookies or a browser before the first request to ``origins``, and again when the login is lost.

    With ``renders`` the answers to pages are judged once more by ``process_rendered``: a plain answer may be the same
    whether or not somebody is logged in.
    """

    def __init__(
        self,
        origins: frozenset[str],
        session: LoginSession,
        jar: CookieJar,
        *,
        renders: bool = False,
    ) -> None:
        self._origins = origins
        self._renders = renders
        self._session = session
        self._jar = jar
        self._under_way = UnderWay()

    def process_request(self, request: Request) -> Awaitable[None] | None:
        if urls.origin_of(request.url) not in self._origins or _find_asker(request) == BROWSER_LOGIN:
            return None
        if _find_asker(request) == OF_PAGE:
            self._note_generations(request)
            return None
        if _find_asker(request) != "login" and not self._session.generation:
            return self._add_cookies_once_logged_in(request)
        self._add_cookies(request)
        return None

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response | Request]:
        if urls.origin_of(request.url) not in self._origins or _find_asker(request) == BROWSER_LOGIN:
            return response
        of_page = _find_asker(request) == OF_PAGE
        # What a page asks for without cookies says nothing of the login.
        is_told = not of_page or b"Cookie" in request.headers
        lost = is_told and _find_asker(request) != "login" and self._shows_lost_login(request, response)
        if b"Set-Cookie" in response.headers and not of_page:
            # A server that no longer knows a session gives each of its requests a new one, where nobody is logged in:
            # that one must not take the place of the session which was renewed meanwhile.
            if not lost and request.meta.get("cookie_generation") == self._jar.generation:
                cookies = [value.decode("latin-1") for value in response.headers.getlist(b"Set-Cookie")]
                self._jar.store(response.url, cookies, of_login=_find_asker(request) == "login")
            # Cookies are credentials: the cache and later stages must not see them. Those of a browser's requests are its own,
            # and it refuses some: what it has after a page is taken from it.
            del response.headers[b"Set-Cookie"]
        if lost and of_page:
            # Sent again, it would lack what the script of its page said: the page asks once more.
            response.flags.append(LOST_LOGIN)
            return response
        if lost:
            self._under_way.end(id(request))
            return self._renew(request, response)
        if not self._renders or find_claim(request) is None:
            self._under_way.end(id(request), opened=self._note_opened(request, response))
        return response

    def process_rendered(self, request: Request, response: Response) -> Response | Awaitable[Response | Request]:
        """What ``process_response`` has left to be judged, once a browser has shown the page where it had to."""
        if urls.origin_of(request.url) not in self._origins or find_claim(request) is None:
            return response
        if self._shows_lost_login(request, response):
            self._under_way.end(id(request))
            return self._renew(request, response)
        if request.meta.pop(LOST_LOGIN, False):
            self._under_way.end(id(request))
            return self._render_again(request, response)
        self._under_way.end(id(request), opened=self._note_opened(request, response))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._under_way.end(id(request))

    async def _add_cookies_once_logged_in(self, request: Request) -> None:
        try:
            await self._session.wait_until_logged_in()
        except LoginFailed as error:
            claim = find_claim(request)
            if claim is None:
                # A robots.txt or a sitemap may be public.
                return
            raise self._build_failed_login(request, claim, error) from error
        self._add_cookies(request)

    def _build_failed_login(self, request: Request, claim: Claim, error: LoginFailed) -> VisitEnded:
        pause = self._session.pause_seconds if error.transient else None
        return build_visit_end(
            request,
            claim,
            Code.LOGIN_FAILED,
            error=f"login failed: {error}",
            transient=error.transient,
            retry_after_seconds=pause,
        )

    def _note_generations(self, request: Request) -> int:
        request.meta["login_generation"] = generation = self._session.generation
        request.meta["cookie_generation"] = self._jar.generation
        return generation

    def _add_cookies(self, request: Request) -> None:
        generation = self._note_generations(request)
        if find_claim(request) is not None:
            self._under_way.begin(id(request), generation)
        cookies = self._jar.header(request.url)
        if cookies:
            request.headers[b"Cookie"] = cookies

    def _shows_lost_login(self, request: Request, response: Response) -> bool:
        status = response.status
        if status in REDIRECT_STATUSES:
            location = (response.headers.get(b"Location") or b"").decode("latin-1")
            return self._leads_to_login(request, location, permanent=status in _PERMANENT)
        if status != 200:
            return status == 401
        if self._session.looks_like_login(find_beginning(response)):
            return True
        refresh = find_raw_refresh(find_beginning(response))
        # It would end the visit as a move for good does.
        return refresh is not None and self._leads_to_login(request, refresh, permanent=True)

    def _leads_to_login(self, request: Request, location: str, *, permanent: bool) -> bool:
        try:
            target = urls.resolve(location, request.url)
        except InvalidUrl:
            return False
        session = self._session
        return session.is_login_page(target, permanent=permanent) and not session.is_login_page(request.url)

    def _note_opened(self, request: Request, response: Response) -> bool:
        """Whether an answer is a page that was opened, which the session is told; redirects and errors say nothing."""
        meta, status = request.meta, response.status
        was_closed = bool(meta.get("login_again"))
        is_page = status in PAGES or status == 304
        if not (
            (is_page and find_claim(request) is not None) or (was_closed and (is_page or status in _KNOWN_TO_USER))
        ):
            return False
        body = None if status == 304 else find_beginning(response)
        return self._session.note_opened(request.url, body, meta.get("login_generation", 0), was_closed=was_closed)

    async def _renew(self, request: Request, response: Response) -> Response | Request:
        claim = find_claim(request)
        is_form = response.status == 200 and self._session.is_login_page(request.url) and not find_redirects(request)
        if is_form and claim is not None:
            raise build_visit_end(
                request, claim, Code.SENTINEL, rule="sentinel: the login form", error="the login form"
            )
        if await self._has_newer_login(request):
            # From the beginning: where it was led without a login is not where its own page is.
            url = request.url if claim is None else claim.url
            return repeat_request(request, url, login_again=True, redirects=())
        if claim is None:
            return response
        failure = self._session.failure
        if failure is not None:
            raise self._build_failed_login(request, claim, failure)
        raise build_visit_end(
            request, claim, Code.LOGIN_FAILED, error=f"login failed: not logged in ({describe_status(response.status)})"
        )

    async def _render_again(self, request: Request, response: Response) -> Response | Request:
        """A page of which a part was closed, once more after a newer login; else it is what it is."""
        claim = find_claim(request)
        if claim is None or request.meta.get("login_again"):
            self._session.note_closed(request.meta.get("login_generation", 0))
            return response
        if not await self._has_newer_login(request):
            return response
        return repeat_request(request, claim.url, login_again=True, redirects=())

    async def _has_newer_login(self, request: Request) -> bool:
        """Whether a request that was not logged in may be sent again.

        Once a renewal was in vain, the page is perhaps closed to this user: it waits whether one that is sent after it
        opens, before it asks for another.
        """
        session, under_way = self._session, self._under_way
        generation, sent = request.meta.get("login_generation", 0), under_way.sent
        has_asked = request.meta.get("login_asked", False)
        session.note_closed(generation)
        may_ask = not (has_asked or session.renewals.in_doubt)
        while True:
            is_last = session.generation == generation
            if await session.renew(generation, may_begin=may_ask):
                request.meta["login_asked"] = has_asked or (may_ask and is_last)
                return True
            patient = under_way.sent - sent < _MOST_SENT_MEANWHILE
            if not is_last:
                return False
            if session.is_undecided(generation):
                if not (patient and await under_way.wait()):
                    return False
            elif may_ask or under_way.opened > sent or not session.renewals.may_begin():
                return False
            else:
                may_ask = session.renewals.seems_lost or not (patient and await under_way.wait(for_next=True))


def _find_asker(request: Request) -> object:
    """Who asks for what is no row: ``login``; a page that a browser renders; a browser that logs in, with its own cookies."""
    return request.meta.get(META_KEY)


class LoginMiddleware:
    """The login of the source: BasicLogin, DigestLogin or SessionLogin.

    Credentials go to the origin of ``login.url``, or to those of the start URLs where there is none;
    cookies to all of these. A request that was redirected from another origin gets no credentials.
    """

    def __init__(self, login: BasicLogin | DigestLogin | SessionLogin) -> None:
        # Bound once: so a page needs no further call.
        self.process_request = login.process_request
        self.process_response = login.process_response
        if isinstance(login, SessionLogin):
            self.process_exception = login.process_exception

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LoginMiddleware:
        stages = stages_of(crawler)
        run = stages.get(Run)
        login = run.source.login
        if login.type is None:
            raise NotConfigured
        if login.type in {"basic", "digest"}:
            origins = list_password_origins(run)
            return cls(BasicLogin(origins, login) if login.type == "basic" else DigestLogin(origins, login))
        return cls(find_session_login(stages, login))


def list_password_origins(run: Run) -> frozenset[str]:
    """The origins that get the password of a login of type basic or digest; none of other types."""
    login = run.source.login
    if login.type not in {"basic", "digest"}:
        return frozenset()
    at_start = [urls.origin_of(url) for url in list_start_urls(run)]
    return frozenset([urls.parse(login.url).origin] if login.url else at_start)


class RenderedLoginMiddleware:
    """Sees that a login is lost by what a browser shows of a page, for sources that render."""

    def __init__(self, login: SessionLogin) -> None:
        self.process_response = login.process_rendered

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RenderedLoginMiddleware:
        stages = stages_of(crawler)
        source = stages.get(Run).source
        if not source.render.in_use or source.login.type in {None, "basic", "digest"}:
            raise NotConfigured
        return cls(find_session_login(stages, source.login))


def find_session_login(stages: Stages, login: Login) -> SessionLogin:
    """The login of a crawl by a form, cookies or a browser, made once."""
    known = stages.find(SessionLogin)
    if known is not None:
        return known
    run, side = stages.get(Run), stages.get(SideRequests)
    starts = list_start_urls(run)
    at_start = [urls.origin_of(url) for url in starts]
    at_login = [urls.parse(login.url).origin] if login.url else at_start
    origins = frozenset([*at_login, *at_start])
    jar = stages.add(CookieJar(origins))
    start = starts[0] if starts else None
    browser = steps = None
    if login.type == "browser":
        browser = partial(_log_in, stages, origins)
        steps = LoginSteps(urls.resolve(login.url or ""), login.steps, check=login.check, start=start)
    plan = LoginPlan(
        url=urls.resolve(login.url) if login.url else None,
        form=login if login.type == "form" else None,
        steps=steps,
        cookies=() if login.type == "form" else tuple(login.fields.items()),
        cookie_origins=tuple(dict.fromkeys(at_login)),
        check=login.check,
        start=start,
        fronts=frozenset(urls.without_query(url) for url in starts),
        default_charset=run.source.fetch.default_charset,
    )
    session = LoginSession(plan, jar, side, log_in=browser)
    return stages.add(SessionLogin(origins, session, jar, renders=run.source.render.in_use))


async def _log_in(stages: Stages, origins: frozenset[str], steps: LoginSteps) -> LoginEnd:
    wall = LoginWall(stages.get(CrawlWall), stages.get(SideRequests), origins=origins)
    return await stages.get(Renderer).log_in(steps, wall)
