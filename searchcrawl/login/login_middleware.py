"""Logs in, and sends credentials and cookies to their own origins only (C10, X-N7, 959)."""

from __future__ import annotations

from dataclasses import replace

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl import urls
from searchcrawl.http.side_requests import SideRequests
from searchcrawl.login.cookie_jar import CookieJar
from searchcrawl.login.form import FormSettings
from searchcrawl.login.http_login_middleware import BasicLogin, DigestLogin
from searchcrawl.login.session import LoginSession, Plan
from searchcrawl.login.session_login_middleware import SessionLogin
from searchcrawl.run import Run, list_start_urls
from searchcrawl.sources.login import Login
from searchcrawl.stages import stages_of


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
        starts = list_start_urls(run)
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
