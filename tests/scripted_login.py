"""A login by cookies with its middleware, whose server is the test: what is sent and heard, without a crawl."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from scrapy import Request
from scrapy.http import Response

from searchcrawl.http.side_requests import SideRequests
from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.kinds.web.login.cookie_jar import CookieJar
from searchcrawl.kinds.web.login.login_middleware import SessionLogin
from searchcrawl.kinds.web.login.session import LoginPlan, LoginSession
from searchcrawl.politeness.rate_limiter import RateLimiter
from tests.factories import ANY_TARGET
from tests.fetch_requests import answer, claim, visit

SITE = "http://site.test"
ENTRY = f"{SITE}/enter"


class Login:
    """A login by cookies of its own page, which sets ``s=1``, ``s=2``, … at each login."""

    def __init__(self, **plan: Any) -> None:
        self.jar = CookieJar([SITE])
        side = SideRequests(download=self.download, rate_limiter=RateLimiter(), targets=ANY_TARGET)
        self.session = LoginSession(LoginPlan(**{"url": ENTRY, **plan}), self.jar, side)
        self.login = SessionLogin(frozenset([SITE]), self.session, self.jar)
        self.logins = 0
        self.is_down = False
        #: requests of pages whose answers come while the next login is under way
        self.meanwhile: list[tuple[Request, Response]] = []

    async def download(self, request: Request) -> Response:
        await sent(self.login.process_request(request))
        for late, its_answer in self.meanwhile:
            await sent(self.login.process_response(late, its_answer))
        if self.is_down:
            return answer(request, 503)
        self.logins += 1
        passed = await sent(
            self.login.process_response(request, answer(request, 200, b"Hi", Set_Cookie=f"s={self.logins}; Path=/"))
        )
        assert isinstance(passed, Response)
        return passed

    async def ask(self, path: str, **meta: Any) -> Request:
        """A request for a page as it is sent."""
        request = visit(f"{SITE}{path}", row=claim(f"{SITE}{path}"), **meta)
        await sent(self.login.process_request(request))
        return request

    async def hear(self, request: Request, status: int = 200, body: bytes = b"", **headers: Any) -> Response | Request:
        """What becomes of the answer of a request."""
        return await sent(self.login.process_response(request, answer(request, status, body, **headers)))

    async def follow(self, path: str, server: Callable[[], tuple[int, dict[str, str]]]) -> int:
        """The code with which a page ends, which is asked for as often as the login says."""
        request = await self.ask(path)
        try:
            for _ in range(20):
                status, headers = server()
                heard = await self.hear(request, status, **headers)
                if isinstance(heard, Response):
                    return heard.status
                request = heard
                await sent(self.login.process_request(request))
        except VisitEnded as ended:
            return ended.outcome.code
        raise AssertionError("asked for again without end")

    @property
    def cookies(self) -> str:
        """What the next request for a page sends."""
        return self.jar.header(f"{SITE}/next")


async def sent(result: Any) -> Any:
    """The result of a middleware, which answers at once or later."""
    return await result if isinstance(result, Awaitable) else result


class Worn:
    """A server whose sessions are good for ``lasts`` pages; some are closed to everybody."""

    def __init__(self, login: Login, lasts: int, wall: int = 401, closed: frozenset[str] = frozenset()) -> None:
        self.login = login
        self.lasts = lasts
        self.wall = wall
        self.closed = closed
        self.used: dict[str, int] = {}

    async def visit(self, path: str) -> int:
        """The code with which a page ends."""
        return await self.login.follow(path, lambda: self.answer(path))

    def answer(self, path: str) -> tuple[int, dict[str, str]]:
        """Status and headers, by the session that the login has now."""
        session = self.login.cookies
        if path not in self.closed and self.used.get(session, 0) < self.lasts:
            self.used[session] = self.used.get(session, 0) + 1
            return 200, {}
        return self.wall, {"Location": "/enter"}
