"""A login by cookies or a form heeds answers to requests of the session that lives, and no others (C10)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.items import Hop
from tests.fetch_requests import answer, claim, visit
from tests.scripted_login import ENTRY, SITE, Login, sent


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
async def test_answer_when_it_comes_after_its_session_was_renewed_then_its_cookies_are_not_taken(
    status: int, header: str
) -> None:
    made = Login()
    late, lost = await made.ask("/late"), await made.ask("/lost")
    again = await made.hear(lost, 401)
    assert isinstance(again, Request)
    await made.hear(late, status, Location="/elsewhere", Set_Cookie=header)
    after_late = made.cookies
    new = await made.ask("/new")
    await made.hear(new, 200, Set_Cookie="s=turned; Path=/")

    assert (after_late, made.cookies) == ("s=2", "s=turned")


async def test_late_answer_when_it_shows_the_lost_login_itself_then_its_page_is_asked_again_with_the_new_cookie() -> (
    None
):
    made = Login()
    late, lost = await made.ask("/late"), await made.ask("/lost")
    await made.hear(lost, 401, Set_Cookie="s=anonymous; Path=/")
    again = await made.hear(late, 401, Set_Cookie="s=anonymous; Path=/")
    assert isinstance(again, Request)
    await sent(made.login.process_request(again))

    assert (again.headers.get("Cookie"), made.cookies, made.logins) == (b"s=2", "s=2", 2)


async def test_answers_when_they_come_while_the_login_is_renewed_then_they_do_not_disturb_it() -> None:
    made = Login()
    lost = await made.ask("/lost")
    robots = Request(f"{SITE}/robots.txt", meta={"side_request": "robots"})
    await sent(made.login.process_request(robots))
    made.meanwhile = [
        (request, answer(request, 200, Set_Cookie="other=1; Path=/")) for request in (await made.ask("/late"), robots)
    ]
    await made.hear(lost, 401)

    assert made.cookies == "s=2"


async def test_request_when_it_is_sent_again_then_its_answers_belong_to_the_new_session() -> None:
    made = Login()
    lost = await made.ask("/lost")
    again = await made.hear(lost, 401)
    assert isinstance(again, Request)
    await sent(made.login.process_request(again))
    await made.hear(again, 200, Set_Cookie="s=turned; Path=/")

    assert made.cookies == "s=turned"


async def test_robots_txt_when_nobody_is_logged_in_then_its_cookies_are_not_taken() -> None:
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

    assert "mark" not in made.cookies


async def test_answer_when_it_is_the_wall_then_its_cookies_are_not_taken() -> None:
    made = Login()
    ended = await made.follow("/forbidden", lambda: (401, {"Set_Cookie": "s=anonymous; Path=/"}))

    assert (ended, made.cookies, made.logins) == (959, "s=2", 2)


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


@pytest.mark.parametrize("hops", [("/",), ("/sso", "/")])
async def test_lost_login_when_it_is_seen_after_redirects_then_the_page_itself_is_asked_for_again(
    hops: tuple[str, ...],
) -> None:
    made = Login(url=f"{SITE}/", check="Hi")
    trail = tuple(Hop(f"{SITE}{path}", 302) for path in ("/page", *hops[:-1]))
    request = visit(f"{SITE}{hops[-1]}", row=claim(f"{SITE}/page"), redirects=trail)
    await sent(made.login.process_request(request))
    again = await made.hear(request, 200, b"<input type=password name=p>")

    assert again.url == f"{SITE}/page"
    assert again.meta["redirects"] == ()
    assert again.meta["download_slot"] == "site.test:80"


@pytest.mark.parametrize(("status", "is_lost"), [(301, True), (308, True), (302, False), (303, False), (307, False)])
async def test_redirect_when_a_front_page_with_the_form_is_named_for_good_then_no_page_has_moved(
    status: int, is_lost: bool
) -> None:
    made = Login(url=f"{SITE}/")
    to_form = await made.hear(await made.ask("/page"), status, Location="/")
    elsewhere = await made.hear(await made.ask("/other"), status, Location="/?topic=5")

    assert isinstance(to_form, Request) is is_lost
    assert isinstance(elsewhere, Response)


REFRESH = '<html><meta http-equiv="refresh" content="{content}"><p>One moment'


@pytest.mark.parametrize(
    ("body", "is_lost"),
    [
        (REFRESH.format(content="0; url=/enter"), True),
        (REFRESH.format(content="1;URL='http://site.test/enter?next=/page'"), True),
        ("<META content='0;/enter' HTTP-EQUIV = Refresh>", True),
        (REFRESH.format(content="0; url=/enter-here"), False),
        (REFRESH.format(content="0; url=/page-2"), False),
        (REFRESH.format(content="0; url=http://[/enter"), False),
        (REFRESH.format(content="60"), False),
        ('<meta name="refresh" content="0; url=/enter">', False),
        # The session is about to end, and has not: the page is there.
        (REFRESH.format(content="900; url=/enter"), False),
        (REFRESH.format(content="0; url=/enter") + "x" * 100_000, False),
    ],
)
async def test_page_when_it_only_sends_readers_on_to_the_login_then_the_login_is_lost(body: str, is_lost: bool) -> None:
    made = Login()

    assert isinstance((await made.hear(await made.ask("/page"), 200, body.encode())), Request) is is_lost
