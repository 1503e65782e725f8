"""A lost login is done again as long as that opens pages, and not for pages closed to this user (C10)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from scrapy import Request
from scrapy.http import Response

from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.kinds.web.login.login_middleware import UnderWay
from searchcrawl.kinds.web.login.session import Renewals
from tests.scripted_login import Login, Worn, sent


@pytest.mark.parametrize("lasts", [1, 2, 5])
@pytest.mark.parametrize("wall", [401, 302])
@pytest.mark.parametrize("closed", [frozenset[str](), frozenset({"/3"}), frozenset({"/0", "/7"})])
async def test_session_when_it_ends_again_and_again_then_is_renewed_as_long_as_that_opens_pages(
    lasts: int, wall: int, closed: frozenset[str]
) -> None:
    worn = Worn(Login(), lasts, wall, closed)
    codes, logins = {path: await worn.visit(path) for path in (f"/{number}" for number in range(20))}, worn.login.logins

    assert {path for path, code in codes.items() if code == 959} == closed
    assert logins <= 20 // lasts + 1 + len(closed)


async def test_session_when_pages_under_way_wear_it_out_then_all_of_them_open_in_the_end() -> None:
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

    assert codes == [200] * 6


@pytest.mark.parametrize("status", [301, 302, 429, 500, 503])
async def test_renewal_when_its_pages_neither_open_nor_are_refused_then_it_earns_no_other(status: int) -> None:
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

    assert made.logins == 2


@pytest.mark.parametrize("status", [200, 403, 404])
async def test_renewal_when_it_changed_the_answer_of_a_page_then_it_earns_another(status: int) -> None:
    made = Login()
    answers = iter([401, status])
    await made.follow("/lost", lambda: (next(answers), {}))
    await made.follow("/other", lambda: (401, {}))

    assert made.logins == 3


@pytest.mark.parametrize(
    ("status", "body", "logins"), [(200, b"Hi, everybody", 3), (200, b"public", 2), (304, b"", 3), (200, b"", 2)]
)
async def test_renewal_when_check_is_on_pages_then_only_those_were_opened(
    status: int, body: bytes, logins: int
) -> None:
    made = Login(check="Hi")
    await made.hear(await made.ask("/first"), 200, b"Hi")
    await made.follow("/forbidden", lambda: (401, {}))
    await made.hear(await made.ask("/page"), status, body)
    await made.follow("/other", lambda: (401, {}))

    assert made.logins == logins


async def test_renewal_when_the_login_page_is_down_then_pages_are_tried_again_later() -> None:
    made = Login()
    lost, late = await made.ask("/lost"), await made.ask("/late")
    made.is_down = True
    ended = []
    for request in (lost, late):
        with pytest.raises(VisitEnded) as raised:
            await made.hear(request, 401)
        ended.append(raised.value)

    assert [one.outcome.code for one in ended] == [959, 959]
    assert [one.outcome.transient for one in ended] == [True, True]
    assert all(one.outcome.retry_after_seconds for one in ended)
    assert made.cookies == ""


async def test_renewal_when_no_page_ever_shows_check_then_others_count_as_opened() -> None:
    made = Login(check="Hi")
    await made.follow("/forbidden", lambda: (401, {}))
    await made.hear(await made.ask("/page"), 200, b"in")
    await made.follow("/other", lambda: (401, {}))

    assert made.logins == 3


async def test_closed_page_when_others_neither_open_nor_show_the_wall_then_does_not_wait_for_ever(
    next_seconds: Callable[[float], None],
) -> None:
    next_seconds(60)
    made = Login()
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

    assert (count < 100, made.logins) == (True, 2)


async def in_doubt(made: Login) -> None:
    """One renewal that was in vain: a page is closed to this user, and others open."""
    await made.follow("/forbidden", lambda: (401, {}))
    await made.hear(await made.ask("/page"), 200)
    assert made.logins == 2


async def test_closed_page_when_one_that_is_sent_later_opens_then_no_login_is_done(
    next_seconds: Callable[[float], None],
) -> None:
    next_seconds(60)
    made = Login()
    await in_doubt(made)
    closed = asyncio.ensure_future(made.hear(await made.ask("/closed"), 401))
    await asyncio.sleep(0)
    await made.hear(await made.ask("/later"), 200)
    with pytest.raises(VisitEnded) as ended:
        await closed

    assert (ended.value.outcome.code, made.logins) == (959, 2)


async def test_closed_pages_when_they_are_several_in_a_row_then_the_login_is_renewed_at_once(
    next_seconds: Callable[[float], None],
) -> None:
    next_seconds(60)
    made = Login()
    await in_doubt(made)
    asked = [await made.ask(f"/{number}") for number in range(3)]
    heard = await asyncio.gather(*(made.hear(request, 401) for request in asked))

    assert ([isinstance(one, Request) for one in heard], made.logins) == ([True] * 3, 3)


async def test_wait_when_nothing_is_under_way_then_is_over_at_once_or_waits_for_the_next(
    next_seconds: Callable[[float], None],
) -> None:
    next_seconds(60)
    made = UnderWay()
    at_once = await made.wait()
    next_one = asyncio.ensure_future(made.wait(for_next=True))
    await asyncio.sleep(0)
    made.begin(1, 1)
    heard = [at_once, await next_one]
    next_seconds(0.01)

    assert [*heard, await UnderWay().wait(for_next=True)] == [False, True, False]


async def test_requests_when_they_end_then_all_who_wait_hear_it_and_those_of_an_older_login_count_no_more() -> None:
    made = UnderWay()
    made.begin(1, 1)
    made.begin(2, 2)
    waiting = [asyncio.ensure_future(made.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    made.end(1, opened=True)
    made.end(2, opened=True)
    heard = await asyncio.gather(*waiting, made.wait())

    assert (heard, made.sent, made.opened) == ([True, True, True, False], 2, 2)


def renewed(made: Renewals, pages: str) -> int:
    """How many of ``pages`` have the login renewed, each by a letter.

    ``o``: opens; ``a``: opens, and was closed before the login; ``c``: is closed, and is asked for again if that helps.
    """
    count = 0
    for page in pages:
        if page == "c":
            made.note_closed()
            if made.may_begin():
                made.begin()
                count += 1
        else:
            made.note_opened(was_closed=page == "a")
    return count


@pytest.mark.parametrize(
    ("pages", "times"),
    [
        # The first is free, and none comes after one that opened nothing.
        ("c", 1),
        ("ccccccccccccccc", 1),
        ("oooocc", 1),
        # Sessions that last for a page or three
        ("oca" * 50, 50),
        ("oooca" * 50, 50),
        # A page that is closed to this user, and then real ends
        ("ooccooooca", 2),
        ("occoccocaocca", 4),
    ],
)
def test_renewal_when_the_last_one_opened_pages_then_is_done(pages: str, times: int) -> None:
    assert renewed(Renewals(), pages) == times


def test_renewals_when_many_pages_are_closed_to_this_user_then_are_few() -> None:
    assert renewed(Renewals(), "oc" * 1000) == 3
    assert renewed(Renewals(), "o" + "c" * 1000) == 1
    assert renewed(Renewals(), ("o" + "c" * 100) * 10) <= 8


def test_renewal_when_the_session_ends_after_many_closed_pages_then_is_done_after_a_few() -> None:
    made = Renewals()
    renewed(made, "oc" * 1000)

    assert [renewed(made, "c") for _ in range(4)].count(1) == 1
    made.note_opened(was_closed=True)
    assert renewed(made, "c") == 1


def test_closed_pages_when_the_last_login_has_not_opened_any_yet_then_are_undecided_but_not_for_ever() -> None:
    made = Renewals()
    before = made.is_undecided
    made.begin()
    tries = []
    for _ in range(20):
        made.note_closed()
        tries.append(made.is_undecided)
    opened = Renewals()
    opened.begin()
    opened.note_opened(was_closed=False)

    assert (before, tries[0], tries[-1], opened.is_undecided) == (False, True, False, False)
