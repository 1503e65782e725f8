"""What a page that was refused may wait for (C10)."""

from __future__ import annotations

import asyncio

from searchcrawl.login.login_middleware import UnderWay


async def test_wait_when_nothing_is_under_way_then_is_over_at_once_or_waits_for_the_next() -> None:
    made = UnderWay(next_seconds=60)
    at_once = await made.wait()
    next_one = asyncio.ensure_future(made.wait(for_next=True))
    await asyncio.sleep(0)
    made.begin(1, 1)

    assert [at_once, await next_one, await UnderWay(next_seconds=0.01).wait(for_next=True)] == [False, True, False]


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
