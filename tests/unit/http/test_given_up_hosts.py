"""Requests to hosts that are given up end, and no more are sent to them."""

from __future__ import annotations

import asyncio

import pytest

from searchcrawl.codes import Code
from searchcrawl.http.given_up_hosts import GivenUpHosts
from searchcrawl.http.visit_end import HostGivenUp, find_failure

DEAD, ALIVE = "dead.test:80", "alive.test:80"


def test_request_when_its_host_is_given_up_meanwhile_then_it_ends_and_those_to_others_go_on() -> None:
    hosts = GivenUpHosts()

    async def ask(host: str, begun: asyncio.Event, end: asyncio.Event) -> str:
        begun.set()
        await hosts.send(host, asyncio.Event.wait, end)
        return host

    async def give_up() -> list[str | BaseException]:
        begun, end = (asyncio.Event(), asyncio.Event()), asyncio.Event()
        tasks = [asyncio.ensure_future(ask(host, each, end)) for host, each in zip((DEAD, ALIVE), begun, strict=True)]
        for each in begun:
            await each.wait()
        await asyncio.to_thread(hosts.give_up, {DEAD: int(Code.TIMEOUT)})
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        end.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    failed, answered = asyncio.run(give_up())

    assert answered == ALIVE
    assert isinstance(failed, HostGivenUp)
    assert find_failure(failed) == (Code.TIMEOUT, False)


def test_request_when_its_host_was_given_up_then_it_is_not_sent() -> None:
    hosts = GivenUpHosts()
    hosts.give_up({DEAD: int(Code.CONNECTION_REFUSED)})

    async def send(request: str) -> None:
        raise AssertionError

    with pytest.raises(HostGivenUp, match="never answered in this run"):
        asyncio.run(hosts.send(DEAD, send, "/"))


def test_request_when_it_takes_too_long_then_that_is_the_error() -> None:
    async def send(request: str) -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(GivenUpHosts().send(ALIVE, send, "/"))
