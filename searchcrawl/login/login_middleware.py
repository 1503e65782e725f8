"""Logs in, and sends credentials and cookies to their own origins only (C10, X-N7, 959)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl import urls
from searchcrawl.http.side_requests import SideRequests
from searchcrawl.login.cookie_jar import CookieJar
from searchcrawl.login.form import FormSettings
from searchcrawl.login.http_login_middleware import BasicLogin, DigestLogin
from searchcrawl.login.session import LoginSession, Plan
from searchcrawl.login.session_login_middleware import SessionLogin
from searchcrawl.render.crawl_wall import CrawlWall
from searchcrawl.render.login_steps import LoginEnd, LoginStep, LoginSteps
from searchcrawl.render.login_wall import LoginWall
from searchcrawl.render.renderer import Renderer
from searchcrawl.run import Run, list_start_urls
from searchcrawl.sources.fetch_tables import Login
from searchcrawl.stages import Stages, stages_of


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
    plan = replace(
        _build_plan(login, start),
        cookie_origins=tuple(dict.fromkeys(at_login)),
        start=start,
        fronts=frozenset(urls.without_query(url) for url in starts),
        default_charset=run.source.fetch.default_charset,
    )
    browser = None
    if login.type == "browser":
        browser = partial(_log_in, stages, origins)
    session = LoginSession(plan, jar, side, log_in=browser)
    return stages.add(SessionLogin(origins, session, jar, renders=run.source.render.in_use))


async def _log_in(stages: Stages, origins: frozenset[str], steps: LoginSteps) -> LoginEnd:
    wall = LoginWall(stages.get(CrawlWall), stages.get(SideRequests), origins=origins)
    return await stages.get(Renderer).log_in(steps, wall)


def _build_plan(login: Login, start: str | None) -> Plan:
    """Builds the plan of a ``[login]`` of type form, cookies or browser."""
    form = steps = None
    if login.type == "browser":
        taken = tuple(LoginStep(step.action, step.selector, step.value or "") for step in login.steps)
        steps = LoginSteps(urls.resolve(login.url or ""), taken, check=login.check, start=start)
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
        steps=steps,
        cookies=() if form else tuple(login.fields.items()),
        check=login.check,
    )
