"""The scheduler puts claims that were not handed out back into the table at the end of a run, and nothing else (D7)."""

from __future__ import annotations

import asyncio
import queue
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from sqlalchemy import select

from searchcrawl import clock
from searchcrawl.commit.group_commit import WriterQueue
from searchcrawl.frontier.frontier import Frontier
from searchcrawl.frontier.scheduler import Scheduler
from searchcrawl.items import Claim, Outcome
from searchcrawl.politeness.backoff import FAILURES_TO_BLOCK, HostBackoff
from searchcrawl.store.schema import urls
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import Settled
from tests.filled_store import FilledStore
from tests.unit.frontier.test_frontier import build_frontier

DEAD = "dead.acme.test:80"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that fails gets the next request at once."""
    monkeypatch.setattr(HostBackoff, "pause_seconds", lambda *_: 0.0)


def claimed(filled: FilledStore, count: int) -> list[Claim]:
    """Rows that the process holds."""
    filled.admit(*(f"/{number}.html" for number in range(count)))
    return filled.database.write(
        url_table.claim,
        filled.run.source_id,
        1,
        limit=count,
        now_ms=clock.now_ms(),
        horizon_ms=filled.run.row.horizon_ms,
        forced=False,
    )


def opened(filled: FilledStore, waiting: WriterQueue) -> tuple[Scheduler, Frontier]:
    crawler: Any = SimpleNamespace(engine=None)
    spider: Any = SimpleNamespace(handle_response=lambda _: None, handle_failure=lambda _: None)
    frontier = build_frontier(filled, waiting)
    scheduler = Scheduler(crawler, filled.run, frontier)
    scheduler.open(spider)
    # The rows were claimed here: claiming knows of none outstanding, and would find the run over.
    frontier.claiming.hold()
    return scheduler, frontier


def fail_one_by_one(scheduler: Scheduler, frontier: Frontier, claims: list[Claim]) -> None:
    """All claims are redirected to a host that is dead; it gets requests until it is blocked."""
    for claim in claims:
        meta = {"claim": claim, "download_slot": DEAD}
        scheduler.enqueue_request(Request(f"http://{DEAD}/", meta=meta))
    for _ in range(FAILURES_TO_BLOCK):
        request = scheduler.next_request()
        assert request is not None
        frontier.end_visit(Outcome(claim=request.meta["claim"], code=906))


def test_close_when_a_redirected_row_was_blocked_then_it_stays_settled(filled: FilledStore) -> None:
    claims = claimed(filled, FAILURES_TO_BLOCK + 1)
    waiting = WriterQueue()
    waiting.open()

    async def run() -> None:
        scheduler, frontier = opened(filled, waiting)
        fail_one_by_one(scheduler, frontier, claims)
        with filled.database.write_once() as transaction:
            ends = [Settled(url_id=claim.url_id, code=906, due_ms=None, fetched_ms=None) for claim in claims]
            url_table.settle(transaction, ends)
        await scheduler.close("stopped").asFuture(asyncio.get_running_loop())

    asyncio.run(run())

    waiting.take_nowait()
    with pytest.raises(queue.Empty):
        waiting.take_nowait()
    with filled.database.read_once() as transaction:
        assert set(transaction.execute(select(urls.c.fetch_state)).scalars()) == {FetchState.SETTLED}


def test_close_when_a_row_is_blocked_after_the_writer_ended_then_it_goes_back_into_the_table(
    filled: FilledStore,
) -> None:
    claims = claimed(filled, FAILURES_TO_BLOCK + 1)

    async def run() -> None:
        # Its writer has ended.
        scheduler, frontier = opened(filled, WriterQueue())
        fail_one_by_one(scheduler, frontier, claims)
        await scheduler.close("stopped").asFuture(asyncio.get_running_loop())

    asyncio.run(run())

    with filled.database.read_once() as transaction:
        states = list(transaction.execute(select(urls.c.fetch_state)).scalars())
    assert sorted(states) == [FetchState.TODO, *[FetchState.FETCHING] * FAILURES_TO_BLOCK]


@pytest.mark.parametrize(
    ("delay_seconds", "expected"),
    [
        (30.0, [60, 90, 120]),
        pytest.param(
            1500.0,
            [3000, 3600, 3600],
            id="a row that waits longer is claimed at once, and the next ones wait no longer",
        ),
    ],
)
def test_redirect_when_too_many_wait_at_a_host_then_others_begin_anew_one_after_the_other(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch, delay_seconds: float, expected: list[int]
) -> None:
    monkeypatch.setattr("searchcrawl.frontier.window.REDIRECTED_ROWS", 1)
    claims = claimed(filled, 4)
    waiting = WriterQueue()
    waiting.open()

    async def run() -> list[Outcome]:
        scheduler, frontier = opened(filled, waiting)
        frontier.window.hosts.set_crawl_delay(DEAD, delay_seconds)
        for claim in claims:
            scheduler.enqueue_request(Request(f"http://{DEAD}/", meta={"claim": claim, "download_slot": DEAD}))
        put_off = []
        for _ in claims[1:]:
            item = waiting.take_nowait()
            assert isinstance(item, Outcome)
            put_off.append(item)
        frontier.stop_handing_out()
        await scheduler.close("stopped").asFuture(asyncio.get_running_loop())
        return put_off

    before_ms = clock.now_ms()
    put_off = asyncio.run(run())

    assert [outcome.claim.url_id for outcome in put_off] == [claim.url_id for claim in claims[1:]]
    moments = [(outcome.again_ms or 0) - before_ms for outcome in put_off]
    assert [round(moment / 30_000) * 30 for moment in moments] == expected
