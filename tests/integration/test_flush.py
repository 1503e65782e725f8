"""What waits, pushed to the index between runs: a real store, cache and local index (E2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from searchcrawl import clock
from searchcrawl.exceptions import IndexUnavailable, SourceBusy
from searchcrawl.operations import redelivery
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.documents import document_table
from tests.filled_store import CachedStore
from tests.redelivering import (
    NAMES,
    Hurrying,
    Solid,
    Watched,
    away,
    flush,
    release,
    resend,
    seal,
    sent,
)


def test_flush_when_documents_wait_then_they_are_sent_and_the_counts_of_the_run_stay(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    cached.end(exit_code=6)

    done = flush(cached)

    assert done == sent(4)
    assert cached.indexed_urls() == list(NAMES)
    assert (cached.status()["waiting"], cached.status()["counts"]["indexed"]) == (0, 0)
    assert cached.verify()["ok"]


@pytest.mark.parametrize("send", [flush, resend])
def test_command_when_it_sends_documents_then_the_index_may_hurry_from_the_first_on(
    cached: CachedStore, send: Callable[..., dict[str, Any]]
) -> None:
    index = Hurrying(cached)
    cached.fetch(*NAMES)
    cached.end(exit_code=6)

    send(cached, index)

    assert index.hurried == [0]
    assert cached.indexed_urls() == list(NAMES)


def test_flush_when_a_run_was_cut_off_then_what_is_sent_counts_in_it(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    cached.run.write_counted(lambda _: {"fetched": 4})
    release(cached)

    flush(cached)

    assert (cached.status()["counts"]["indexed"], cached.status()["counts"]["fetched"]) == (4, 4)


def test_flush_when_nothing_waits_then_the_index_is_not_asked(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    cached.send()
    cached.end()
    flush(cached)
    receiver = Watched(cached, away)

    done = flush(cached, receiver)

    assert done == sent(0)
    assert receiver.ended == []


def test_flush_when_a_source_never_ran_then_there_is_nothing_to_send(cached: CachedStore) -> None:
    other = cached.source.model_copy(update={"name": "other"})

    done = redelivery.flush(cached.project, other, cached.database, cached.index)

    assert done == {**sent(0), "source": "other"}


@pytest.mark.parametrize("act", [flush, resend])
def test_redelivery_when_the_source_is_being_crawled_then_it_is_busy(
    cached: CachedStore, act: Callable[[CachedStore], Any]
) -> None:
    cached.fetch("/a")

    with pytest.raises(SourceBusy):
        act(cached)

    assert cached.indexed_urls() == []


@pytest.mark.parametrize("act", [flush, resend])
def test_redelivery_when_the_index_is_away_then_documents_wait_and_go_in_later(
    cached: CachedStore, act: Callable[..., Any]
) -> None:
    cached.fetch(*NAMES)
    cached.end(exit_code=6)
    receiver = Watched(cached, away)

    with pytest.raises(IndexUnavailable):
        act(cached, receiver)

    assert receiver.ended == ["failed"]
    assert cached.status()["waiting"] == 4
    assert flush(cached) == sent(4)
    assert cached.verify()["ok"]


def test_flush_when_a_dead_process_left_batches_then_they_are_sent_and_committed(cached: CachedStore) -> None:
    cached.fetch("/a", "/b")
    sealed = seal(cached)
    cached.fetch("/c")
    acknowledged = seal(cached)
    with cached.database.write_once() as transaction:
        batch_table.note_accepted(transaction, acknowledged, [cached.ids["/c"]])
        batch_table.set_state(transaction, acknowledged.number, batch_table.BatchState.ACKNOWLEDGED)
    cached.end(exit_code=6)
    receiver = Solid(cached)

    done = flush(cached, receiver)

    assert done == sent(2)
    assert [batch.crawl_version for batch in receiver.batches] == [sealed.crawl_version]
    assert receiver.commits == 2


def test_flush_when_removals_were_under_way_then_they_are_finished_and_undecided_ones_wait(
    cached: CachedStore,
) -> None:
    cached.fetch(*NAMES)
    cached.send()
    with cached.database.write_once() as transaction:
        document_table.mark_evidence(transaction, [cached.ids["/a"], cached.ids["/b"]], "404")
        removal_table.seal(
            transaction, cached.run.source_id, cached.run.id, clock.now_ms(), [cached.ids["/a"]], counted=True
        )
    cached.end(exit_code=6)

    done = flush(cached)

    assert done == sent(0, removed=1)
    assert cached.indexed_urls() == ["/b", "/c", "/d"]


def test_redelivery_when_told_of_its_progress_then_hears_how_many_of_how_many(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    cached.send()
    cached.fetch("/e")
    cached.end()
    heard: list[tuple[int, int]] = []

    redelivery.resend(
        cached.project, cached.source, cached.database, cached.index, on_progress=lambda *numbers: heard.append(numbers)
    )

    assert heard == [(1, 5), (5, 5)]
