"""Slow sitemaps keep neither known pages nor the end of a run waiting (L5)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import pytest
from scrapy import Request
from scrapy.http import Response

from searchcrawl.codes import Code
from searchcrawl.http.side_requests import SideRequests
from searchcrawl.items import SitemapPart
from searchcrawl.kinds.web.sitemaps import reading
from searchcrawl.kinds.web.sitemaps.reading import ReadingTime, SitemapReading, Turns
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.rules.boundary import Boundary
from tests.factories import ANY_TARGET

URLS: Final = tuple(f"http://{host}.test/{number}.xml" for host in ("evil", "good") for number in range(3))


class Reading:
    """Reads the sitemaps URLS with a store that knows nothing; those of one host answer once they are let go."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.let_go, self.released, self.revisits = asyncio.Event(), asyncio.Event(), threading.Event()
        source = SimpleNamespace(
            start=SimpleNamespace(sitemaps=URLS),
            fetch=SimpleNamespace(retries=0),
            robots=SimpleNamespace(obey=False),
            lifecycle=SimpleNamespace(trust_sitemap=True, intervals=SimpleNamespace(are_set=False, max_ms=0)),
            scope=SimpleNamespace(hash_routes=False),
        )
        run: Any = SimpleNamespace(
            boundary=Boundary(allow_all=True), source=source, id=1, source_id=1, forced=True, read=self._read
        )
        side = SideRequests(download=self._download, rate_limiter=RateLimiter(), targets=ANY_TARGET)
        robots = RobotsFiles(side, RateLimiter(), user_agent="test", max_crawl_delay_seconds=None)
        self.reading = SitemapReading(
            run,
            side,
            robots,
            submit=self._submit,
            hold=lambda: self.released.set,
            revisits=self.revisits,
        )

    def _read(self, work: Callable[[Any], Any]) -> Any:
        nothing = SimpleNamespace(one_or_none=lambda: None, __iter__=lambda: iter(()))
        return work(SimpleNamespace(execute=lambda query: nothing))

    def _submit(self, part: SitemapPart) -> bool:
        if part.end is not None:
            self.ends[part.url] = part.end.code
        self.reading.on_committed(part)
        return True

    async def _download(self, request: Request) -> Response:
        if "evil" in request.url:
            await self.let_go.wait()
        return Response(request.url, body=b"<urlset/>", request=request)


def test_sitemaps_when_those_of_one_host_are_slow_then_known_pages_do_not_wait_for_them(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_REVISIT_SECONDS", 0.3)

    async def read() -> tuple[bool, bool, int]:
        one = Reading()
        one.reading.start([], [])
        await asyncio.to_thread(one.revisits.wait, 30)
        before = one.released.is_set()
        one.let_go.set()
        await asyncio.wait_for(one.released.wait(), 30)
        await one.reading.stop()
        return before, one.revisits.is_set(), sum(code == 200 for code in one.ends.values())

    assert asyncio.run(read()) == (False, True, 6)
    assert "known pages do not wait" in caplog.text


def test_sitemaps_when_the_time_of_a_host_is_over_then_its_others_are_left_to_the_next_run(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_ORIGIN_SECONDS", 0.3)

    async def read() -> dict[str, int]:
        one = Reading()
        one.reading.start([], [])
        await asyncio.sleep(0.5)
        one.let_go.set()
        await asyncio.wait_for(one.released.wait(), 30)
        await one.reading.stop()
        return one.ends

    ends = asyncio.run(read())

    # Two were under way.
    assert [ends[url] for url in URLS] == [200, 200, Code.TIMEOUT, 200, 200, 200]
    assert caplog.text.count("sitemaps of http://evil.test are left to the next run") == 1


def test_time_when_it_is_over_then_of_that_origin_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_ORIGIN_SECONDS", 0)
    time = ReadingTime()
    several = [time.waits_for_many]
    over = [time.is_over("http://a.test"), time.is_over("http://b.test")]

    assert (over, [*several, time.waits_for_many]) == ([True, True], [False, True])
    assert [time.is_news("http://a.test") for _ in range(2)] == [True, False]


def take_all(turns: Turns[int]) -> list[int]:
    found = []
    while (taken := turns.take()) is not None:
        found.append(taken[1])
    return found


def test_jobs_when_one_origin_has_many_then_others_take_turns_with_it() -> None:
    turns: Turns[int] = Turns(100)
    for origin, job in [("evil", 1), ("evil", 2), ("evil", 3), ("good", 4), ("good", 5), ("other", 6)]:
        turns.add(origin, job)

    assert take_all(turns) == [1, 4, 6, 2, 5, 3]


def test_jobs_when_an_origin_has_as_many_under_way_as_it_may_then_the_next_waits_for_one_to_end() -> None:
    turns: Turns[int] = Turns(2)
    for job in range(4):
        turns.add("evil", job)
    first = take_all(turns)
    turns.add("good", 4)

    second = take_all(turns)
    turns.end("evil")

    assert (first, second, take_all(turns), take_all(turns)) == ([0, 1], [4], [2], [])


def test_jobs_when_cleared_then_none_is_left() -> None:
    turns: Turns[int] = Turns(1)
    turns.add("good", 1)
    turns.clear()

    assert turns.take() is None
