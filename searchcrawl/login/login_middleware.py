"""Logs in, and sends credentials and cookies to their own origins only (C10, X-N7, 959)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable
from dataclasses import replace
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.http.redirect_middleware import repeat_request
from searchcrawl.http.side_requests import META_KEY, REDIRECTS, SideRequests
from searchcrawl.http.visit_end import (
    PAGES,
    VisitEnded,
    build_visit_end,
    describe_status,
    find_claim,
    find_redirects,
    join_lines,
)
from searchcrawl.items import Claim
from searchcrawl.login import http_auth
from searchcrawl.login.cookie_jar import CookieJar
from searchcrawl.login.form import FormSettings, LoginFailed
from searchcrawl.login.http_auth import Challenge
from searchcrawl.login.session import LoginSession, Plan
from searchcrawl.login.under_way import NEXT_SECONDS, UnderWay
from searchcrawl.run import Run
from searchcrawl.sources.loading import read_start_urls
from searchcrawl.sources.login import Login
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)

#: How many challenges one request answers: a first one, and one for a nonce that became stale meanwhile.
_MAX_ANSWERS: Final = 2
_PERMANENT: Final = frozenset({301, 308})
#: A page that was refused waits for no more requests than these.
_MOST_SENT_MEANWHILE: Final = 20
#: Where a redirect to the login came before, these are said to somebody who is logged in.
_KNOWN_TO_USER: Final = frozenset({403, 404, 410})


class HttpLogin:
    """The common part of Basic and Digest: an origin that refuses the password gets no more requests.

    So a wrong password is sent once, and by the requests that were under way then. More tries might lock the user out.
    """

    def __init__(self, origins: frozenset[str], login: Login) -> None:
        self._origins = origins
        self._user = login.username or "", login.password or ""
        self._accepted: set[str] = set()
        self._refused: dict[str, str] = {}

    def process_request(self, request: Request) -> None:
        if not _is_for(request, self._origins):
            return
        origin, claim = urls.origin_of(request.url), find_claim(request)
        if origin in self._refused and claim is not None:
            raise build_visit_end(request, claim, Code.LOGIN_FAILED, error=self._refused[origin])
        value = self._authorization(request, origin)
        if value is not None:
            request.headers[b"Authorization"] = value

    def process_response(self, request: Request, response: Response) -> Response | Request:
        origin = urls.origin_of(request.url)
        if not _is_for(request, self._origins):
            return response
        if response.status != 401:
            self._accepted.add(origin)
            self._note_success(request, response, origin)
            return response
        repeated = self._answer_challenge(request, response, origin)
        if repeated is not None:
            return repeated
        offered = ", ".join(http_auth.list_schemes(_texts(response, b"WWW-Authenticate"))) or "nothing"
        error = f"login failed: {describe_status(response.status)}, the server offers {join_lines(offered)}"
        if origin not in self._accepted and origin not in self._refused:
            self._refused[origin] = error
            logger.warning("%s: %s; nothing more is requested there", origin, error)
        claim = find_claim(request)
        if claim is None:
            return response
        raise build_visit_end(request, claim, Code.LOGIN_FAILED, error=error)

    def _authorization(self, request: Request, origin: str) -> str | None:
        raise NotImplementedError

    def _answer_challenge(self, request: Request, response: Response, origin: str) -> Request | None:
        """The request that gives the credentials which a 401 asks for; None if the 401 is final."""
        return None

    def _note_success(self, request: Request, response: Response, origin: str) -> None:
        """Is called with each answer that is not 401."""


class BasicLogin(HttpLogin):
    """Sends name and password with each request to ``origins``."""

    def _authorization(self, request: Request, origin: str) -> str | None:
        return http_auth.build_basic_header(*self._user)


class DigestLogin(HttpLogin):
    """Answers the challenges of ``origins``; after the first challenge each request gets an answer at once."""

    def __init__(self, origins: frozenset[str], login: Login) -> None:
        super().__init__(origins, login)
        self._challenges: dict[str, Challenge] = {}
        self._counts: dict[str, int] = {}

    def _authorization(self, request: Request, origin: str) -> str | None:
        challenge = self._challenges.get(origin)
        if challenge is None:
            return None
        self._counts[origin] += 1
        request.meta["digest_nonce"] = challenge.nonce
        return http_auth.build_digest_header(
            challenge,
            method=request.method,
            target=request.url[len(origin) :] or "/",
            user=self._user,
            cnonce=secrets.token_hex(8),
            count=self._counts[origin],
        )

    def _answer_challenge(self, request: Request, response: Response, origin: str) -> Request | None:
        challenge = http_auth.find_challenge(_texts(response, b"WWW-Authenticate"))
        answered = request.meta.get("digest_answers", 0)
        if challenge is None or answered >= _MAX_ANSWERS:
            return None
        # A server may refuse an old nonce without a word about it: a password that was accepted is not wrong then.
        old = challenge.stale or (origin in self._accepted and not self._is_current(request, origin))
        if b"Authorization" in request.headers and not old:
            return None
        self._remember(origin, challenge)
        return repeat_request(request, request.url, digest_answers=answered + 1)

    def _note_success(self, request: Request, response: Response, origin: str) -> None:
        later = http_auth.find_next_nonce(_first(response, b"Authentication-Info"))
        if later and self._is_current(request, origin):
            self._remember(origin, replace(self._challenges[origin], nonce=later))

    def _is_current(self, request: Request, origin: str) -> bool:
        """Whether a request was sent with the last nonce: what its answer says of nonces is not out of date."""
        known = self._challenges.get(origin)
        return known is not None and request.meta.get("digest_nonce") == known.nonce

    def _remember(self, origin: str, challenge: Challenge) -> None:
        known = self._challenges.get(origin)
        if known is None or known.nonce != challenge.nonce:
            self._counts[origin] = 0
        self._challenges[origin] = challenge


class SessionLogin:
    """Logs in by a form or cookies before the first request to ``origins``, and again when the login is lost."""

    def __init__(
        self, origins: frozenset[str], session: LoginSession, jar: CookieJar, *, next_seconds: float = NEXT_SECONDS
    ) -> None:
        self._origins = origins
        self._session = session
        self._jar = jar
        self._under_way = UnderWay(next_seconds)

    def process_request(self, request: Request) -> Awaitable[None] | None:
        if urls.origin_of(request.url) not in self._origins:
            return None
        if not _is_of_login(request) and not self._session.generation:
            return self._add_cookies_once_logged_in(request)
        self._add_cookies(request)
        return None

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response | Request]:
        if urls.origin_of(request.url) not in self._origins:
            return response
        lost = not _is_of_login(request) and self._shows_lost_login(request, response)
        if b"Set-Cookie" in response.headers:
            # A server that no longer knows a session gives each of its requests a new one, where nobody is logged in:
            # that one must not take the place of the session which was renewed meanwhile.
            if not lost and request.meta.get("cookie_generation") == self._jar.generation:
                cookies = _texts(response, b"Set-Cookie")
                self._jar.store(response.url, cookies, of_login=_is_of_login(request))
            # Cookies are credentials: the cache and later stages must not see them.
            del response.headers[b"Set-Cookie"]
        if lost:
            self._under_way.end(id(request))
            return self._renew(request, response)
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

    def _add_cookies(self, request: Request) -> None:
        request.meta["login_generation"] = generation = self._session.generation
        request.meta["cookie_generation"] = self._jar.generation
        if find_claim(request) is not None:
            self._under_way.begin(id(request), generation)
        cookies = self._jar.header(request.url)
        if cookies:
            request.headers[b"Cookie"] = cookies

    def _shows_lost_login(self, request: Request, response: Response) -> bool:
        status = response.status
        if status == 401:
            return True
        if status in REDIRECTS:
            try:
                target = urls.resolve(_first(response, b"Location"), request.url)
            except InvalidUrl:
                return False
            permanent = status in _PERMANENT
            return self._session.is_login_page(target, permanent=permanent) and not self._session.is_login_page(
                request.url
            )
        return status == 200 and self._session.looks_like_login(response.body)

    def _note_opened(self, request: Request, response: Response) -> bool:
        """Whether an answer is a page that was opened, which the session is told; redirects and errors say nothing."""
        meta, status = request.meta, response.status
        was_closed = bool(meta.get("login_again"))
        is_page = status in PAGES or status == 304
        if not (
            (is_page and find_claim(request) is not None) or (was_closed and (is_page or status in _KNOWN_TO_USER))
        ):
            return False
        body = None if status == 304 else response.body
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

    async def _has_newer_login(self, request: Request) -> bool:
        """Whether a request that was not logged in may be sent again.

        A page that has asked for a renewal before is perhaps one that is closed to this user: it waits whether one that
        is sent after it opens.
        """
        session, under_way = self._session, self._under_way
        generation, sent = request.meta.get("login_generation", 0), under_way.sent
        may_ask = not request.meta.get("login_asked", False)
        session.note_closed(generation)
        while True:
            is_last = session.generation == generation
            if await session.renew(generation, may_begin=may_ask):
                request.meta["login_asked"] = request.meta.get("login_asked", False) or (may_ask and is_last)
                return True
            patient = under_way.sent - sent < _MOST_SENT_MEANWHILE
            if may_ask:
                if not (patient and session.is_undecided(generation) and await under_way.wait()):
                    return False
            elif not is_last or under_way.opened > sent:
                return False
            else:
                may_ask = not (patient and await under_way.wait(for_next=True))


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
        starts = [url for url in read_start_urls(run.project, run.source) if run.boundary.decide(url, 0).allowed]
        at_start = [urls.origin_of(url) for url in starts]
        at_login = [urls.parse(login.url).origin] if login.url else at_start
        if login.type == "basic":
            return cls(BasicLogin(frozenset(at_login), login))
        if login.type == "digest":
            return cls(DigestLogin(frozenset(at_login), login))
        origins = frozenset([*at_login, *at_start])
        jar = CookieJar(origins)
        plan = replace(
            _build_plan(login),
            cookie_origins=tuple(dict.fromkeys(at_login)),
            start=starts[0] if starts else None,
            fronts=frozenset(urls.without_query(url) for url in starts),
            own_origins=frozenset(at_start),
            default_charset=run.source.fetch.default_charset,
        )
        return cls(SessionLogin(origins, LoginSession(plan, jar, stages.get(SideRequests)), jar))


def _build_plan(login: Login) -> Plan:
    """Builds the plan of a ``[login]`` of type form or cookies."""
    form = None
    if login.type == "form":
        form = FormSettings(
            password=login.password or "",
            username=login.username,
            form=login.form,
            username_field=login.username_field,
            password_field=login.password_field,
            fields=login.fields,
        )
    return Plan(
        url=urls.resolve(login.url) if login.url else None,
        form=form,
        cookies=() if form else tuple(login.fields.items()),
        check=login.check,
    )


def _is_for(request: Request, origins: frozenset[str]) -> bool:
    """Whether a request goes to one of ``origins``, and was not redirected there from another one."""
    origin = urls.origin_of(request.url)
    if origin not in origins:
        return False
    claim = find_claim(request)
    asked_for = claim.url if claim is not None else request.meta.get("asked_for", request.url)
    return urls.origin_of(asked_for) == origin


def _is_of_login(request: Request) -> bool:
    return request.meta.get(META_KEY) == "login"


def _texts(response: Response, name: bytes) -> list[str]:
    return [value.decode("latin-1") for value in response.headers.getlist(name)]


def _first(response: Response, name: bytes) -> str:
    return (response.headers.get(name) or b"").decode("latin-1")
