"""Members ask each host once for a path that it does not have (L9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from searchcrawl.members.services import SharedProbes
from searchcrawl.soft404.probes import ProbeResult

_HOST: Final = "http://a.example"
_FOUND: Final = ProbeResult(None, answers_any=True)


def play(work: Callable[[SharedProbes], Any]) -> None:
    async def run() -> None:
        async with asyncio.timeout(20):
            await work(SharedProbes())

    asyncio.run(run())


def test_begin_when_another_asks_then_waits_for_what_it_finds() -> None:
    async def work(probes: SharedProbes) -> None:
        assert await probes.begin("one", _HOST, again=False) is None
        waiting = asyncio.ensure_future(probes.begin("two", _HOST, again=False))
        await asyncio.sleep(0)
        assert not waiting.done()
        probes.end("one", _HOST, _FOUND)
        assert await waiting == _FOUND
        assert await probes.begin("three", _HOST, again=False) == _FOUND

    play(work)


def test_begin_when_who_asked_found_nothing_or_ended_then_the_next_one_asks() -> None:
    async def work(probes: SharedProbes) -> None:
        assert await probes.begin("one", _HOST, again=False) is None
        waiting = [asyncio.ensure_future(probes.begin(name, _HOST, again=False)) for name in ("two", "three")]
        await asyncio.sleep(0)
        probes.drop("one")
        assert await waiting[0] is None
        assert not waiting[1].done()
        probes.end("two", _HOST, None)
        assert await waiting[1] is None

    play(work)


def test_begin_when_it_is_asked_again_then_what_was_found_does_not_count() -> None:
    async def work(probes: SharedProbes) -> None:
        probes.end("one", _HOST, _FOUND)
        assert await probes.begin("one", _HOST, again=True) is None

    play(work)


def test_end_when_it_comes_from_a_member_that_does_not_ask_then_who_asks_goes_on() -> None:
    async def work(probes: SharedProbes) -> None:
        assert await probes.begin("one", _HOST, again=False) is None
        probes.drop("two")
        waiting = asyncio.ensure_future(probes.begin("three", _HOST, again=False))
        await asyncio.sleep(0)
        assert not waiting.done()
        probes.end("one", _HOST, _FOUND)
        assert await waiting == _FOUND

    play(work)
