"""robots.txt files that outlive the process: in force in a run that goes on, not in one of its own (X-B2)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import Response

from searchcrawl import clock
from searchcrawl.exceptions import StoreError
from searchcrawl.http.side_requests import SideRequests
from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.items import Claim, Outcome
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.files import RobotsFiles, StoredRobots
from searchcrawl.robots.robots_middleware import RobotsMiddleware
from searchcrawl.store.engine.database import Database
from tests.factories import ANY_TARGET

RULES = b"User-agent: *\nDisallow: /private/\n"
URL = "http://site.test/private/x"


def outcome(database: Database, answer: tuple[int, bytes] | Exception, *, horizon_ms: int) -> Outcome | None:
    """How the visit of URL ends in a process of its own."""
    run: Any = SimpleNamespace(row=SimpleNamespace(horizon_ms=horizon_ms), read=database.read, write=database.write)

    async def download(request: Request) -> Response:
        if isinstance(answer, Exception):
            raise answer
        return Response(request.url, status=answer[0], body=answer[1], request=request)

    files = RobotsFiles(
        SideRequests(download=download, rate_limiter=RateLimiter(), targets=ANY_TARGET),
        RateLimiter(),
        user_agent="searchcrawl",
        max_crawl_delay_seconds=None,
        stored=StoredRobots(run),
    )
    middleware = RobotsMiddleware(files, RateLimiter())

    async def visit() -> Outcome | None:
        claim = Claim(url_id=1, url=URL, host_id=1, depth=1)
        try:
            waiting = middleware.process_request(Request(URL, meta={"claim": claim}))
            if waiting is not None:
                await waiting
        except VisitEnded as ended:
            return ended.outcome
        finally:
            await files.close()
        return None

    return asyncio.run(visit())


@pytest.fixture
def database(tmp_path: Path, store_url: str) -> Any:
    database = Database(store_url, tmp_path)
    yield database
    database.close()


@pytest.mark.parametrize("failure", [(503, b""), (429, b""), DownloadTimeoutError("slow")])
def test_robots_when_a_restarted_run_cannot_have_it_then_the_copy_of_before_is_in_force(
    database: Database, failure: tuple[int, bytes] | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    horizon_ms = clock.now_ms()
    outcome(database, (200, RULES), horizon_ms=horizon_ms)

    with caplog.at_level(logging.WARNING):
        ended = outcome(database, failure, horizon_ms=horizon_ms)

    assert ended is not None
    assert (ended.code, ended.rule) == (951, "Disallow: /private/")
    assert "the copy of before is in force" in caplog.text


def test_robots_when_a_run_of_its_own_cannot_have_it_then_it_is_unavailable(database: Database) -> None:
    outcome(database, (200, RULES), horizon_ms=clock.now_ms())

    ended = outcome(database, (503, b""), horizon_ms=clock.now_ms() + 1_000)

    assert ended is not None
    assert (ended.code, ended.rule) == (951, "robots.unavailable")


@pytest.mark.parametrize("before", [404, 200])
def test_robots_when_it_is_missing_then_no_copy_is_kept(database: Database, before: int) -> None:
    outcome(database, (before, RULES), horizon_ms=0)
    outcome(database, (404, RULES), horizon_ms=0)

    ended = outcome(database, (503, b""), horizon_ms=0)

    assert ended is not None
    assert ended.rule == "robots.unavailable"


def test_copy_when_the_store_fails_then_the_answer_counts_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    def fail(work: object) -> None:
        raise StoreError("store: disk full")

    run: Any = SimpleNamespace(row=SimpleNamespace(horizon_ms=0), write=fail)

    async def save() -> bytes | None:
        stored = StoredRobots(run)
        stored.save("http://a.test", RULES)
        stored.save("http://b.test", None)
        known = await stored.load("http://a.test")
        await stored.close()
        return known

    with caplog.at_level(logging.WARNING):
        known = asyncio.run(save())

    assert known == RULES
    assert "http://a.test/robots.txt is not kept: store: disk full (and of 1 more)" in caplog.text


def test_copies_when_many_come_at_once_then_they_are_written_together(database: Database) -> None:
    transactions: list[object] = []

    def write(work: Any) -> None:
        transactions.append(work)
        database.write(work)

    run: Any = SimpleNamespace(row=SimpleNamespace(horizon_ms=0), read=database.read, write=write)
    origins = [f"http://h{number}.test" for number in range(1_500)]

    async def save() -> list[bytes | None]:
        stored = StoredRobots(run)
        for number, origin in enumerate(origins):
            stored.save(origin, RULES if number % 2 else None)
        await asyncio.sleep(0)
        stored.save(origins[1], None)
        await stored.close()
        return [await StoredRobots(run).load(origin) for origin in origins[:4]]

    assert asyncio.run(save()) == [None, None, None, RULES]
    assert len(transactions) == 2
