"""A login by cookies or a form heeds answers to requests of the session that lives, and no others (C10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from searchcrawl.http.side_requests import SideRequests
from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.items import Hop
from searchcrawl.login.cookie_jar import CookieJar
from searchcrawl.login.session import LoginSession, Plan
from searchcrawl.login.session_login_middleware import SessionLogin
from searchcrawl.politeness.rate_limiter import RateLimiter
from tests.fetch_requests import answer, claim, visit

SITE = "http://site.test"
ENTRY = f"{SITE}/enter"


class Login:
    """A login by cookies of its own page, which sets ``s=1``, ``s=2``, … at each login."""

    def __init__(self, **plan: Any) -> None:
        self.jar = CookieJar([SITE])
        side = SideRequests(download=self.download, rate_limiter=RateLimiter())
        self.session = LoginSession(Plan(**{"url": ENTRY, **plan}), self.jar, side)
        self.login = SessionLogin(frozenset([SITE]), self.session, self.jar, next_seconds=0.01)
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


@pytest.mark.parametrize(
    ("status", "header"),
    [
        (200, "s=anonymous; Path=/"),
        (200, "s=; Max-Age=0; Path=/"),
        (200, "other=1; Path=/"),
        (302, "s=anonymous; Path=/"),
        (404, "s=anonymous; Path=/"),
        (503, "s=anonymous; Path=/"),
    ],
)
def test_answer_when_it_comes_after_its_session_was_renewed_then_its_cookies_are_not_taken(
    status: int, header: str
) -> None:
    async def story() -> tuple[str, str]:
        made = Login()
        late, lost = await made.ask("/late"), await made.ask("/lost")
        again = await made.hear(lost, 401)
        assert isinstance(again, Request)
        await made.hear(late, status, Location="/elsewhere", Set_Cookie=header)
        after_late = made.cookies
        new = await made.ask("/new")
        await made.hear(new, 200, Set_Cookie="s=turned; Path=/")
        return after_late, made.cookies

    assert asyncio.run(story()) == ("s=2", "s=turned")


def test_late_answer_when_it_shows_the_lost_login_itself_then_its_page_is_asked_again_with_the_new_cookie() -> None:
    async def story() -> tuple[Any, str, int]:
        made = Login()
        late, lost = await made.ask("/late"), await made.ask("/lost")
        await made.hear(lost, 401, Set_Cookie="s=anonymous; Path=/")
        again = await made.hear(late, 401, Set_Cookie="s=anonymous; Path=/")
        assert isinstance(again, Request)
        await sent(made.login.process_request(again))
        return again.headers.get("Cookie"), made.cookies, made.logins

    assert asyncio.run(story()) == (b"s=2", "s=2", 2)


def test_answers_when_they_come_while_the_login_is_renewed_then_they_do_not_disturb_it() -> None:
    async def story() -> str:
        made = Login()
        lost = await made.ask("/lost")
        robots = Request(f"{SITE}/robots.txt", meta={"side_request": "robots"})
        await sent(made.login.process_request(robots))
        made.meanwhile = [
            (request, answer(request, 200, Set_Cookie="other=1; Path=/"))
            for request in (await made.ask("/late"), robots)
        ]
        await made.hear(lost, 401)
        return made.cookies

    assert asyncio.run(story()) == "s=2"


def test_request_when_it_is_sent_again_then_its_answers_belong_to_the_new_session() -> None:
    async def story() -> str:
        made = Login()
        lost = await made.ask("/lost")
        again = await made.hear(lost, 401)
        assert isinstance(again, Request)
        await sent(made.login.process_request(again))
        await made.hear(again, 200, Set_Cookie="s=turned; Path=/")
        return made.cookies

    assert asyncio.run(story()) == "s=turned"


def test_robots_txt_when_nobody_is_logged_in_then_its_cookies_are_not_taken() -> None:
    async def story() -> str:
        made = Login(check="Log out", start=None)
        robots = Request(f"{SITE}/robots.txt", meta={"side_request": "robots"})
        await sent(made.login.process_request(robots))
        page = None
        try:
            await made.ask("/page")
        except VisitEnded as ended:
            page = ended.outcome.code
        assert page == 959
        await made.hear(robots, 200, Set_Cookie="mark=1; Path=/")
        return made.cookies

    assert "mark" not in asyncio.run(story())


def test_answer_when_it_is_the_wall_then_its_cookies_are_not_taken() -> None:
    async def story() -> tuple[int, str, int]:
        made = Login()
        ended = await made.follow("/forbidden", lambda: (401, {"Set_Cookie": "s=anonymous; Path=/"}))
        return ended, made.cookies, made.logins

    assert asyncio.run(story()) == (959, "s=2", 2)


@pytest.mark.parametrize(("path", "is_renewed"), [("/", True), ("/?topic=5", True), ("/page", True), ("/enter", False)])
def test_form_when_it_stands_in_place_of_a_page_then_the_login_is_lost_and_at_its_own_url_it_is_no_page(
    path: str, is_renewed: bool
) -> None:
    async def story() -> Any:
        made = Login(url=ENTRY if path == "/enter" else f"{SITE}/", check="Hi")
        request = await made.ask(path)
        try:
            return await made.hear(request, 200, b"<input type=password name=p>")
        except VisitEnded as ended:
            return ended.outcome.code

    found = asyncio.run(story())

    assert (found == 965) is not is_renewed
    assert isinstance(found, Request) is is_renewed


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


@pytest.mark.parametrize("lasts", [1, 2, 5])
@pytest.mark.parametrize("wall", [401, 302])
@pytest.mark.parametrize("closed", [frozenset[str](), frozenset({"/3"}), frozenset({"/0", "/7"})])
def test_session_when_it_ends_again_and_again_then_is_renewed_as_long_as_that_opens_pages(
    lasts: int, wall: int, closed: frozenset[str]
) -> None:
    async def story() -> tuple[dict[str, int], int]:
        worn = Worn(Login(), lasts, wall, closed)
        return {path: await worn.visit(path) for path in (f"/{number}" for number in range(20))}, worn.login.logins

    codes, logins = asyncio.run(story())

    assert {path for path, code in codes.items() if code == 959} == closed
    assert logins <= 20 // lasts + 1 + len(closed)


def test_session_when_pages_under_way_wear_it_out_then_all_of_them_open_in_the_end() -> None:
    async def story() -> list[int]:
        made = Login()
        worn = Worn(made, 1)
        await made.ask("/first")
        asked = [await made.ask(f"/{number}") for number in range(6)]
        codes: list[int] = []
        while asked:
            # All are answered by one session; the walls come first.
            answers = [(request, *worn.answer(request.url)) for request in asked]
            answers.sort(key=lambda one: -one[1])
            heard = await asyncio.gather(*(made.hear(request, status, **more) for request, status, more in answers))
            codes += [one.status for one in heard if isinstance(one, Response)]
            asked = [one for one in heard if isinstance(one, Request)]
            for request in asked:
                await sent(made.login.process_request(request))
        return codes

    assert asyncio.run(story()) == [200] * 6


@pytest.mark.parametrize("status", [301, 302, 429, 500, 503])
def test_renewal_when_its_pages_neither_open_nor_are_refused_then_it_earns_no_other(status: int) -> None:
    async def story() -> int:
        made = Login()
        answers = iter([401, status])
        request = await made.ask("/lost")
        for _ in range(2):
            heard = await made.hear(request, next(answers), Location="/front")
            if isinstance(heard, Request):
                request = heard
                await sent(made.login.process_request(request))
        ended = await made.follow("/other", lambda: (401, {}))
        assert ended == 959
        return made.logins

    assert asyncio.run(story()) == 2


@pytest.mark.parametrize("status", [200, 403, 404])
def test_renewal_when_it_changed_the_answer_of_a_page_then_it_earns_another(status: int) -> None:
    async def story() -> int:
        made = Login()
        answers = iter([401, status])
        await made.follow("/lost", lambda: (next(answers), {}))
        await made.follow("/other", lambda: (401, {}))
        return made.logins

    assert asyncio.run(story()) == 3


@pytest.mark.parametrize(
    ("status", "body", "logins"), [(200, b"Hi, everybody", 3), (200, b"public", 2), (304, b"", 3), (200, b"", 2)]
)
def test_renewal_when_check_is_on_pages_then_only_those_were_opened(status: int, body: bytes, logins: int) -> None:
    async def story() -> int:
        made = Login(check="Hi")
        await made.hear(await made.ask("/first"), 200, b"Hi")
        await made.follow("/forbidden", lambda: (401, {}))
        await made.hear(await made.ask("/page"), status, body)
        await made.follow("/other", lambda: (401, {}))
        return made.logins

    assert asyncio.run(story()) == logins


def test_renewal_when_the_login_page_is_down_then_pages_are_tried_again_later() -> None:
    async def story() -> tuple[list[VisitEnded], str]:
        made = Login()
        lost, late = await made.ask("/lost"), await made.ask("/late")
        made.is_down = True
        ended = []
        for request in (lost, late):
            with pytest.raises(VisitEnded) as raised:
                await made.hear(request, 401)
            ended.append(raised.value)
        return ended, made.cookies

    ended, cookies = asyncio.run(story())

    assert [one.outcome.code for one in ended] == [959, 959]
    assert [one.outcome.transient for one in ended] == [True, True]
    assert all(one.outcome.retry_after_seconds for one in ended)
    assert cookies == ""


@pytest.mark.parametrize("hops", [("/",), ("/sso", "/")])
def test_lost_login_when_it_is_seen_after_redirects_then_the_page_itself_is_asked_for_again(
    hops: tuple[str, ...],
) -> None:
    async def story() -> Any:
        made = Login(url=f"{SITE}/", check="Hi")
        trail = tuple(Hop(f"{SITE}{path}", 302) for path in ("/page", *hops[:-1]))
        request = visit(f"{SITE}{hops[-1]}", row=claim(f"{SITE}/page"), redirects=trail)
        await sent(made.login.process_request(request))
        return await made.hear(request, 200, b"<input type=password name=p>")

    again = asyncio.run(story())

    assert again.url == f"{SITE}/page"
    assert again.meta["redirects"] == ()
    assert again.meta["download_slot"] == "site.test:80"


@pytest.mark.parametrize(("status", "is_lost"), [(301, True), (308, True), (302, False), (303, False), (307, False)])
def test_redirect_when_a_front_page_with_the_form_is_named_for_good_then_no_page_has_moved(
    status: int, is_lost: bool
) -> None:
    async def story() -> tuple[Any, Any]:
        made = Login(url=f"{SITE}/")
        to_form = await made.hear(await made.ask("/page"), status, Location="/")
        return to_form, await made.hear(await made.ask("/other"), status, Location="/?topic=5")

    to_form, elsewhere = asyncio.run(story())

    assert isinstance(to_form, Request) is is_lost
    assert isinstance(elsewhere, Response)


def test_renewal_when_no_page_ever_shows_check_then_others_count_as_opened() -> None:
    async def story() -> int:
        made = Login(check="Hi")
        await made.follow("/forbidden", lambda: (401, {}))
        await made.hear(await made.ask("/page"), 200, b"in")
        await made.follow("/other", lambda: (401, {}))
        return made.logins

    assert asyncio.run(story()) == 3


def test_closed_page_when_others_neither_open_nor_show_the_wall_then_does_not_wait_for_ever() -> None:
    async def story() -> tuple[int, int]:
        made = Login()
        made.login = SessionLogin(frozenset([SITE]), made.session, made.jar, next_seconds=60)
        asked = await made.ask("/forbidden")
        again = await made.hear(asked, 401)
        assert isinstance(again, Request)
        await sent(made.login.process_request(again))
        waiting = asyncio.ensure_future(made.hear(again, 401))
        count = 0
        while not waiting.done():
            await made.hear(await made.ask(f"/gone-{count}"), 404)
            await asyncio.sleep(0)
            count += 1
        with pytest.raises(VisitEnded):
            await waiting
        return count, made.logins

    count, logins = asyncio.run(story())

    assert (count < 100, logins) == (True, 2)
