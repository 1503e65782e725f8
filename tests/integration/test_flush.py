"""What waits, pushed to the index between runs: a real store, cache and local index (E2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from searchcrawl import clock
from searchcrawl.exceptions import IndexUnavailable, SourceBusy
from searchcrawl.operations import redelivery
from searchcrawl.store.batches import batch_table, removal_table
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
    status,
    verified,
)


@pytest.fixture
def filled(tmp_path: Path, store_url: str) -> Iterator[CachedStore]:
    store = CachedStore(tmp_path, store_url)
    yield store
    store.close()


def test_flush_when_documents_wait_then_they_are_sent_and_the_counts_of_the_run_stay(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.end(exit_code=6)

    done = flush(filled)

    assert done == sent(4)
    assert filled.indexed_urls() == list(NAMES)
    assert (status(filled)["waiting"], status(filled)["counts"]["indexed"]) == (0, 0)
    assert verified(filled)["ok"]


@pytest.mark.parametrize("send", [flush, resend])
def test_command_when_it_sends_documents_then_the_index_may_hurry_from_the_first_on(
    filled: CachedStore, send: Callable[..., dict[str, Any]]
) -> None:
    index = Hurrying(filled)
    filled.fetch(*NAMES)
    filled.end(exit_code=6)

    send(filled, index)

    assert index.hurried == [0]
    assert filled.indexed_urls() == list(NAMES)


def test_flush_when_a_run_was_cut_off_then_what_is_sent_counts_in_it(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.run.write_counted(lambda _: {"fetched": 4})
    release(filled)

    flush(filled)

    assert (status(filled)["counts"]["indexed"], status(filled)["counts"]["fetched"]) == (4, 4)


def test_flush_when_nothing_waits_then_the_index_is_not_asked(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    flush(filled)
    receiver = Watched(filled, away)

    done = flush(filled, receiver)

    assert done == sent(0)
    assert receiver.ended == []


def test_flush_when_a_source_never_ran_then_there_is_nothing_to_send(filled: CachedStore) -> None:
    other = filled.source.model_copy(update={"name": "other"})

    done = redelivery.flush(filled.project, other, filled.database, filled.index)

    assert done == {**sent(0), "source": "other"}


@pytest.mark.parametrize("act", [flush, resend])
def test_redelivery_when_the_source_is_being_crawled_then_it_is_busy(
    filled: CachedStore, act: Callable[[CachedStore], Any]
) -> None:
    filled.fetch("/a")

    with pytest.raises(SourceBusy):
        act(filled)

    assert filled.indexed_urls() == []


@pytest.mark.parametrize("act", [flush, resend])
def test_redelivery_when_the_index_is_away_then_documents_wait_and_go_in_later(
    filled: CachedStore, act: Callable[..., Any]
) -> None:
    filled.fetch(*NAMES)
    filled.end(exit_code=6)
    receiver = Watched(filled, away)

    with pytest.raises(IndexUnavailable):
        act(filled, receiver)

    assert receiver.ended == ["failed"]
    assert status(filled)["waiting"] == 4
    assert flush(filled) == sent(4)
    assert verified(filled)["ok"]


def test_flush_when_a_dead_process_left_batches_then_they_are_sent_and_committed(filled: CachedStore) -> None:
    filled.fetch("/a", "/b")
    sealed = seal(filled)
    filled.fetch("/c")
    acknowledged = seal(filled)
    with filled.database.write_once() as transaction:
        batch_table.note_accepted(transaction, acknowledged, [filled.ids["/c"]])
        batch_table.set_state(transaction, acknowledged.number, batch_table.BatchState.ACKNOWLEDGED)
    filled.end(exit_code=6)
    receiver = Solid(filled)

    done = flush(filled, receiver)

    assert done == sent(2)
    assert [batch.crawl_version for batch in receiver.batches] == [sealed.crawl_version]
    assert receiver.commits == 2


def test_flush_when_removals_were_under_way_then_they_are_finished_and_undecided_ones_wait(
    filled: CachedStore,
) -> None:
    filled.fetch(*NAMES)
    filled.send()
    with filled.database.write_once() as transaction:
        document_table.mark_evidence(transaction, [filled.ids["/a"], filled.ids["/b"]], "404")
        removal_table.seal(
            transaction, filled.run.source_id, filled.run.id, clock.now_ms(), [filled.ids["/a"]], counted=True
        )
    filled.end(exit_code=6)

    done = flush(filled)

    assert done == sent(0, removed=1)
    assert filled.indexed_urls() == ["/b", "/c", "/d"]


def test_redelivery_when_told_of_its_progress_then_hears_how_many_of_how_many(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.fetch("/e")
    filled.end()
    heard: list[tuple[int, int]] = []

    redelivery.resend(
        filled.project, filled.source, filled.database, filled.index, on_progress=lambda *numbers: heard.append(numbers)
    )

    assert heard == [(1, 5), (5, 5)]
