"""A request of a member that comes late waits for another turn: hosts see no shorter pause for it (C2)."""

from __future__ import annotations

import asyncio

import pytest
from scrapy import Request

from searchcrawl import clock
from searchcrawl.http.turn_middleware import TURN_ENDS, LateTurnMiddleware
from searchcrawl.politeness.rate_limiter import RateLimiter


class NotingLimiter(RateLimiter):
    def __init__(self) -> None:
        self.waited: list[str] = []

    async def wait_until_allowed(self, host: str) -> None:
        self.waited.append(host)


@pytest.mark.parametrize(
    ("left_s", "waited"),
    [(None, []), (1000, []), (-0.001, ["a.example:80"])],
    ids=["no delay is in force", "in time", "late"],
)
def test_request_when_its_turn_has_passed_then_waits_for_another(left_s: float | None, waited: list[str]) -> None:
    limiter = NotingLimiter()
    meta = {} if left_s is None else {TURN_ENDS: clock.monotonic() + left_s}
    request = Request("http://a.example/", meta=meta)

    async def process() -> None:
        waiting = LateTurnMiddleware(limiter).process_request(request)
        if waiting is not None:
            await waiting

    asyncio.run(process())

    assert limiter.waited == waited
    assert TURN_ENDS not in request.meta
