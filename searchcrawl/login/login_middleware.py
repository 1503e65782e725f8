"""Logs in, and sends credentials and cookies where they belong and nowhere else (C10, X-N7, 959)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.encoding import decode
from searchcrawl.http.content_coding import BrokenCoding, codings_of, undo_prefix
from searchcrawl.http.cookies import CookieJar
from searchcrawl.http.outcome_middleware import described, status_line
from searchcrawl.http.redirect_middleware import slot_of
from searchcrawl.http.visit_end import claim_of, ended, failing_of, one_line, trail_of
from searchcrawl.login import http_auth
from searchcrawl.login.form import LoginFailed, Wanted
from searchcrawl.login.http_auth import Challenge
from searchcrawl.login.session import Answer, LoginSession, Plan
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.run import Run
from searchcrawl.sources.loading import read_start_urls
from searchcrawl.sources.login import Login
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)

_MAX_PAGE_BYTES: Final = 2_000_000
#: How often one request answers challenges: a first one, and one for a nonce that went stale meanwhile.
_MAX_ANSWERS: Final = 2
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class HttpLogin:
    """What Basic and Digest have in common: the origins, and an end to it where nobody gets in there.

    A wrong password is sent once, or by as many requests as were under way: more might lock the user out.
    """

    def __init__(self, origins: frozenset[str], login: Login) -> None:
        self._origins = origins
        self._user = login.username or "", login.password or ""
        self._open: set[str] = set()
        self._closed: dict[str, str] = {}

    def process_request(self, request: Request) -> None:
        if not _is_at_home(request, self._origins):
            return
        origin, claim = urls.origin_of(request.url), claim_of(request)
        if origin in self._closed and claim is not None:
            raise ended(request, claim, Code.LOGIN_FAILED, error=self._closed[origin])
        value = self._value(request, origin)
        if value is not None:
            request.headers[b"Authorization"] = value

    def process_response(self, request: Request, response: Response) -> Response | Request:
        origin = urls.origin_of(request.url)
        if not _is_at_home(request, self._origins):
            return response
        if response.status != 401:
            self._open.add(origin)
            self._welcomed(origin, response)
            return response
        answer = self._answer(request, response, origin)
        if answer is not None:
            return answer
        offered = ", ".join(http_auth.schemes_of(_texts(response, b"WWW-Authenticate"))) or "nothing"
        error = f"login failed: {status_line(response.status)}, the server offers {one_line(offered)}"
        if origin not in self._open and origin not in self._closed:
            self._closed[origin] = error
            logger.warning("%s: %s; nothing more is asked for there", origin, error)
        claim = claim_of(request)
        if claim is None:
            return response
        raise ended(request, claim, Code.LOGIN_FAILED, error=error)

    def _value(self, request: Request, origin: str) -> str | None:
        raise NotImplementedError

    def _answer(self, request: Request, response: Response, origin: str) -> Request | None:
        """What to ask instead, None where the 401 stands."""
        return None

    def _welcomed(self, origin: str, response: Response) -> None:
        """An answer that is no 401."""


class BasicLogin(HttpLogin):
    """Sends name and password with each request to ``origins``."""

    def _value(self, request: Request, origin: str) -> str | None:
        return http_auth.basic(*self._user)


class DigestLogin(HttpLogin):
    """Answers the challenges of ``origins``, and from the first one on sends the answer with each request."""

    def __init__(self, origins: frozenset[str], login: Login) -> None:
        super().__init__(origins, login)
        self._challenges: dict[str, Challenge] = {}
        self._counts: dict[str, int] = {}

    def _value(self, request: Request, origin: str) -> str | None:
        challenge = self._challenges.get(origin)
        if challenge is None:
            return None
        self._counts[origin] += 1
        return http_auth.digest(
            challenge,
            method=request.method,
            target=request.url[len(origin) :] or "/",
            user=self._user,
            cnonce=secrets.token_hex(8),
            count=self._counts[origin],
        )

    def _answer(self, request: Request, response: Response, origin: str) -> Request | None:
        challenge = http_auth.challenge_of(_texts(response, b"WWW-Authenticate"))
        answered = request.meta.get("digest_answers", 0)
        refused = b"Authorization" in request.headers and not (challenge is not None and challenge.stale)
        if challenge is None or refused or answered >= _MAX_ANSWERS:
            return None
        self._met(origin, challenge)
        return _again(request, digest_answers=answered + 1)

    def _welcomed(self, origin: str, response: Response) -> None:
        later = http_auth.next_nonce(_first(response, b"Authentication-Info"))
        if later and origin in self._challenges:
            self._met(origin, replace(self._challenges[origin], nonce=later))

    def _met(self, origin: str, challenge: Challenge) -> None:
        known = self._challenges.get(origin)
        if known is None or known.nonce != challenge.nonce:
            self._counts[origin] = 0
        self._challenges[origin] = challenge


class SessionLogin:
    """Logs in by a form or with cookies before the first request to ``origins``, and once more if that is lost."""

    def __init__(self, origins: frozenset[str], session: LoginSession, jar: CookieJar) -> None:
        self._origins = origins
        self._session = session
        self._jar = jar

    def process_request(self, request: Request) -> Awaitable[None] | None:
        if urls.origin_of(request.url) not in self._origins:
            return None
        if not request.meta.get("login") and not self._session.generation:
            return self._send_when_ready(request)
        self._send(request)
        return None

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response | Request]:
        if urls.origin_of(request.url) not in self._origins:
            return response
        if b"Set-Cookie" in response.headers:
            self._jar.take(response.url, _texts(response, b"Set-Cookie"))
            # They open doors: neither the cache nor anybody behind us is to have them.
            del response.headers[b"Set-Cookie"]
        if request.meta.get("login") or not self._is_lost(request, response):
            return response
        return self._renew(request, response)

    async def _send_when_ready(self, request: Request) -> None:
        try:
            await self._session.ready()
        except LoginFailed as error:
            claim = claim_of(request)
            if claim is None:
                # A robots.txt or a sitemap may be for everybody.
                return
            pause = self._session.pause_seconds if error.transient else None
            raise ended(
                request,
                claim,
                Code.LOGIN_FAILED,
                error=f"login failed: {error}",
                transient=error.transient,
                retry_after_seconds=pause,
            ) from error
        self._send(request)

    def _send(self, request: Request) -> None:
        request.meta["login_generation"] = self._session.generation
        cookies = self._jar.header(request.url)
        if cookies:
            request.headers[b"Cookie"] = cookies

    def _is_lost(self, request: Request, response: Response) -> bool:
        status = response.status
        if status == 401:
            return True
        if status in _REDIRECTS:
            try:
                target = urls.resolve(_first(response, b"Location"), request.url)
            except InvalidUrl:
                return False
            return self._session.is_login_page(target) and not self._session.is_login_page(request.url)
        return status == 200 and self._session.looks_like_login(response.body)

    async def _renew(self, request: Request, response: Response) -> Response | Request:
        claim = claim_of(request)
        is_form = response.status == 200 and self._session.is_login_page(request.url) and not trail_of(request)
        if is_form and claim is not None:
            raise ended(request, claim, Code.SENTINEL, rule="sentinel: the login form", error="the login form")
        again = not request.meta.get("login_again")
        if again and await self._session.renew(request.meta.get("login_generation", 0)):
            return _again(request, login_again=True)
        if claim is None:
            return response
        raise ended(
            request, claim, Code.LOGIN_FAILED, error=f"login failed: not logged in ({status_line(response.status)})"
        )


class LoginMiddleware:
    """The login of the source: BasicLogin, DigestLogin or SessionLogin.

    Credentials go to the origin of ``login.url``, or to those of the start URLs where there is none;
    cookies to all of these. A request that was redirected from another origin gets no credentials.
    """

    def __init__(self, login: BasicLogin | DigestLogin | SessionLogin) -> None:
        # Bound here: nothing is looked up a page.
        self.process_request = login.process_request
        self.process_response = login.process_response

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
        asker = _Asker(crawler, run, stages.get(RateLimiter), frozenset(at_start))
        plan = plan_of(login, cookie_origins=at_login, start=starts[0] if starts else None)
        return cls(SessionLogin(origins, LoginSession(plan, jar, asker), jar))


def plan_of(login: Login, *, cookie_origins: list[str], start: str | None) -> Plan:
    """What to do for a ``[login]`` of type form or cookies."""
    wanted = None
    if login.type == "form":
        wanted = Wanted(
            password=login.password or "",
            username=login.username,
            form=login.form,
            username_field=login.username_field,
            password_field=login.password_field,
            fields=login.fields,
        )
    return Plan(
        url=urls.resolve(login.url) if login.url else None,
        wanted=wanted,
        cookies=() if wanted else tuple(login.fields.items()),
        cookie_origins=tuple(dict.fromkeys(cookie_origins)),
        check=login.check,
        start=start,
    )


class _Asker:
    """Sends the requests of a login through the downloader, in turn with all others to the host."""

    def __init__(self, crawler: Crawler, run: Run, rate_limiter: RateLimiter, own_origins: frozenset[str]) -> None:
        self._crawler = crawler
        self._run = run
        self._rate_limiter = rate_limiter
        self._own_origins = own_origins

    async def __call__(self, url: str, form: bytes | None = None, *, referrer: str | None = None) -> Answer:
        slot = slot_of(url)
        await self._rate_limiter.wait_until_allowed(slot)
        meta: dict[str, Any] = {
            "login": True,
            "own_headers": urls.origin_of(url) in self._own_origins,
            "download_slot": slot,
            "verbatim_url": True,
            "body_prefix_bytes": _MAX_PAGE_BYTES,
        }
        headers = {}
        if form is not None and referrer is not None:
            # What a browser sends, and frameworks look at against forged forms.
            headers = {
                "Content-Type": "application/x-www-form-urlencoded",
                "Origin": urls.origin_of(url),
                "Referer": referrer,
            }
        method = "GET" if form is None else "POST"
        request = Request(url, method=method, headers=headers, body=form or b"", meta=meta, dont_filter=True)
        try:
            response = await self._crawler.engine.download_async(request)
        except Exception as error:
            failing = failing_of(error)
            if failing is None:
                raise
            raise LoginFailed(one_line(described(failing.code, error)), transient=failing.transient) from error
        return await asyncio.to_thread(self._read, response)

    def _read(self, response: Response) -> Answer:
        codings = codings_of(response.headers.getlist(b"Content-Encoding"))
        try:
            body = undo_prefix(response.body, codings, max_bytes=_MAX_PAGE_BYTES)
        except BrokenCoding as error:
            raise LoginFailed(f"the login page cannot be read: {error}", transient=error.cut) from None
        content_type = _first(response, b"Content-Type")
        text, charset = decode(body, content_type=content_type, default_charset=self._run.source.fetch.default_charset)
        location = response.headers.get(b"Location")
        return Answer(
            url=response.url,
            status=response.status,
            location=location.decode("utf-8", "replace") if location else None,
            body=body,
            text=text,
            charset=charset,
        )


def _is_at_home(request: Request, origins: frozenset[str]) -> bool:
    """Whether a request goes to one of ``origins``, and was not led there from another one."""
    origin = urls.origin_of(request.url)
    if origin not in origins:
        return False
    claim = claim_of(request)
    asked_for = claim.url if claim is not None else request.meta.get("asked_for", request.url)
    return urls.origin_of(asked_for) == origin


def _again(request: Request, **meta: Any) -> Request:
    """The same request without anything that was added on its way."""
    kept = {name: value for name, value in request.meta.items() if not name.startswith("download_")}
    kept |= {"download_slot": slot_of(request.url), **meta}
    return Request(
        request.url,
        callback=request.callback,
        errback=request.errback,
        meta=kept,
        priority=request.priority,
        dont_filter=True,
        cb_kwargs=request.cb_kwargs,
    )


def _texts(response: Response, name: bytes) -> list[str]:
    return [value.decode("latin-1") for value in response.headers.getlist(name)]


def _first(response: Response, name: bytes) -> str:
    return (response.headers.get(name) or b"").decode("latin-1")
