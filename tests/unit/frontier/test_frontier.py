"""Nothing is requested that could not be written down, or that another process may be requesting (X-S4, X-S9)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.commit.group_commit import WriterQueue
from searchcrawl.exceptions import StoreLocked
from searchcrawl.frontier.claiming import Claiming
from searchcrawl.frontier.frontier import Frontier
from searchcrawl.frontier.window import Window
from searchcrawl.politeness.host_registry import HostRegistry
from tests.filled_store import FilledStore

_LIMIT_SECONDS = 20.0


@pytest.fixture
def filled(filled: FilledStore) -> FilledStore:
    filled.admit("/a", "/b")
    return filled


def build_frontier(filled: FilledStore, waiting: WriterQueue | None = None) -> Frontier:
    """The frontier of a source without traps."""
    return Frontier(
        filled.run,
        Window(HostRegistry(host_concurrency=4, delay_seconds=0.0)),
        waiting or WriterQueue(),
        build_claims=partial(
            Claiming,
            traps=TrapWatch(filled.run.source_id, trap_after=0, max_urls_per_pattern=0),
            may_claim=lambda: True,
            may_revisit=lambda: True,
            has_sent=lambda: True,
        ),
    )


@pytest.fixture
def frontier(filled: FilledStore) -> Iterator[Frontier]:
    """One whose window is filled."""
    came = threading.Event()
    frontier = build_frontier(filled)
    frontier.start(came.set)
    assert came.wait(_LIMIT_SECONDS)
    yield frontier
    frontier.close()


def test_next_claim_when_the_lease_was_not_renewed_in_time_then_none_until_it_is(
    filled: FilledStore, frontier: Frontier
) -> None:
    filled.run.lease_until_ms = 0
    without = frontier.next_claim()
    filled.run.renew_lease()

    assert without is None
    assert frontier.next_claim() is not None


def test_next_claim_when_the_store_is_away_then_none_until_it_is_back(filled: FilledStore, frontier: Frontier) -> None:
    outage_retry = filled.run.database.outage_retry
    outage_retry._seconds = _LIMIT_SECONDS
    over = threading.Event()

    def locked() -> None:
        if not over.is_set():
            raise StoreLocked("locked")

    outage = threading.Thread(target=outage_retry.attempt, args=[locked])
    outage.start()
    while not outage_retry.away:
        over.wait(0.01)
    without = frontier.next_claim()
    over.set()
    outage.join()

    assert without is None
    assert frontier.next_claim() is not None
