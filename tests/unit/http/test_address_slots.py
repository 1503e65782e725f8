"""Requests are counted by address where they are sent, and a slot that fails is free again."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.address_slots import AddressSlots
from searchcrawl.http.name_lookups import NameLookups

URLS = ("http://a.test/", "http://192.0.2.1:81/x", "http://b.test/", "http://c.test/", "http://[2001:4860::1]/")
RESOLVE = {"a.test": "192.0.2.1", "b.test": "192.0.2.1", "c.test": "192.0.2.2"}


def build(most: int) -> AddressSlots:
    guard = AddressGuard(private_networks=["192.0.2.0/24"], resolve=RESOLVE)
    return AddressSlots(NameLookups(), guard, most=most)


def test_hold_when_several_hosts_have_one_address_then_so_many_at_once_and_all_in_the_end() -> None:
    async def steps() -> tuple[int, list[str]]:
        slots, under_way, most, order = build(1), 0, 0, list[str]()

        async def send(url: str) -> None:
            nonlocal under_way, most
            async with slots.hold(url):
                if url in URLS[:3]:
                    under_way += 1
                    most = max(most, under_way)
                await asyncio.sleep(0.01)
                if url in URLS[:3]:
                    under_way -= 1
                order.append(url)

        await asyncio.gather(*map(send, URLS))
        return most, order

    most, order = asyncio.run(steps())

    assert most == 1
    assert sorted(order) == sorted(URLS)
    # Those of other addresses did not wait.
    assert {*order[:3]} == {URLS[0], URLS[3], URLS[4]}


def test_hold_when_a_request_fails_or_is_cancelled_then_the_next_one_goes() -> None:
    async def steps() -> None:
        slots = build(1)
        with pytest.raises(ValueError, match="failed"):
            async with slots.hold(URLS[0]):
                raise ValueError("failed")
        async with AsyncExitStack() as held:
            await held.enter_async_context(slots.hold(URLS[0]))
            waits = asyncio.ensure_future(slots.hold(URLS[1]).__aenter__())
            await asyncio.sleep(0)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
        async with asyncio.timeout(5), slots.hold(URLS[2]):
            pass

    asyncio.run(steps())


def test_hold_when_the_url_has_no_address_then_the_request_finds_that_out() -> None:
    async def steps() -> None:
        slots = build(1)
        for url in ("http://[", "mailto:a", f"http://{'x' * 64}.test/"):
            async with asyncio.timeout(5), slots.hold(url), slots.hold(url):
                pass

    asyncio.run(steps())
