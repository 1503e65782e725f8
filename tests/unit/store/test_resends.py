"""Which documents a resend still has to send, a batch at a time, on each store (E7)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.batch_table import Chunk
from searchcrawl.store.documents import comparison_table, document_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.removal_table import Before
from searchcrawl.store.runs import run_table
from searchcrawl.store.states import BatchState, DocumentState
from searchcrawl.store.urls import url_queries, url_queue
from tests.unit.store.support_store import NOW_MS, SOURCE, add, settle, states, store

EVERYTHING = 10**9


def present(database: Database, names: Sequence[str]) -> list[int]:
    """Documents in the index."""
    ids = add(database, names)
    settle(database, ids)
    store(database, ids)
    with database.write_once() as transaction:
        batch = batch_table.seal_documents(transaction, SOURCE, 1, NOW_MS)
        assert batch is not None
        batch_table.note_accepted(transaction, batch, ids)
        batch_table.set_state(transaction, batch.number, BatchState.COMMITTED)
    return ids


def begin(database: Database) -> None:
    with database.write_once() as transaction:
        batch_table.begin_resend(transaction, SOURCE, NOW_MS)


def seal(database: Database, *, after: int = 0, max_bytes: int = EVERYTHING) -> Chunk | None:
    with database.write_once() as transaction:
        return batch_table.seal_resend(transaction, SOURCE, 1, NOW_MS, after=after, max_bytes=max_bytes)


def shipped(database: Database, chunk: Chunk | None) -> list[int]:
    assert chunk is not None
    with database.read_once() as transaction:
        rows = batch_table.find_without_receipt(transaction, chunk.batch.number, after=0, limit=1000)
        return [row.url_id for row in rows]


def accept(database: Database, chunk: Chunk | None, ids: Sequence[int]) -> None:
    assert chunk is not None
    with database.write_once() as transaction:
        batch_table.note_accepted(transaction, chunk.batch, ids)


def left(database: Database) -> int:
    with database.read_once() as transaction:
        return batch_table.count_to_resend(transaction, SOURCE)


def test_seal_when_no_resend_was_asked_for_then_there_is_nothing(database: Database) -> None:
    present(database, ["a", "b"])

    assert (left(database), seal(database)) == (0, None)


def test_seal_when_all_is_in_the_index_then_batches_follow_each_other_with_rising_versions(database: Database) -> None:
    ids = present(database, ["a", "b", "c"])
    begin(database)

    first = seal(database, max_bytes=1)
    second = seal(database, after=ids[0])

    assert (shipped(database, first), shipped(database, second)) == (ids[:1], ids[1:])
    assert first is not None
    assert second is not None
    assert first.batch.crawl_version < second.batch.crawl_version
    assert seal(database, after=second.last) is None
    assert set(states(database, ids)) == {DocumentState.SENDING}


def test_seal_when_begun_anew_after_a_crash_then_what_has_a_receipt_is_not_sent_again(database: Database) -> None:
    ids = present(database, ["a", "b", "c"])
    begin(database)
    accept(database, seal(database, max_bytes=1), ids[:1])

    assert left(database) == 2
    assert shipped(database, seal(database)) == ids[1:]


def test_seal_when_removals_wait_then_these_go_along_and_keep_their_state(database: Database) -> None:
    ids = present(database, ["a", "b"])
    with database.write_once() as transaction:
        run = run_table.start(transaction, SOURCE, fingerprint="", now_ms=NOW_MS)
        document_table.mark_evidence(transaction, ids, "404")
        removal_table.quarantine(transaction, ids[:1], run.id)
    begin(database)

    chunk = seal(database)
    sent = shipped(database, chunk)
    accept(database, chunk, ids)

    assert sent == ids
    assert states(database, ids) == [DocumentState.QUARANTINED, DocumentState.PRESENT]
    assert shipped(database, chunk) == []
    with database.read_once() as transaction:
        assert [row.url_id for row in removal_table.list_waiting(transaction, SOURCE, after=0)] == ids[:1]
        assert [row.url_id for row in removal_table.find_candidates(transaction, SOURCE, before=Before(0, 0))] == ids[
            1:
        ]


def test_seal_when_a_waiting_removal_is_refused_then_it_still_waits_and_is_not_sent_for_ever(
    database: Database,
) -> None:
    ids = present(database, ["a"])
    with database.write_once() as transaction:
        removal_table.quarantine(transaction, ids, 1)
    begin(database)
    chunk = seal(database)
    assert chunk is not None

    with database.write_once() as transaction:
        batch_table.note_refused(transaction, chunk.batch, [(ids[0], "immense")])

    assert states(database, ids) == [DocumentState.QUARANTINED]
    assert shipped(database, chunk) == []
    assert seal(database, after=chunk.last) is None


def prepare(database: Database) -> None:
    after: int | None = 0
    while after is not None:
        with database.write_once() as transaction:
            after = batch_table.prepare_resend(transaction, SOURCE, after=after)


def test_prepare_when_a_document_was_refused_then_it_is_to_be_sent(database: Database) -> None:
    ids = add(database, ["a"])
    settle(database, ids)
    store(database, ids)
    with database.write_once() as transaction:
        batch = batch_table.seal_documents(transaction, SOURCE, 1, NOW_MS)
        assert batch is not None
        batch_table.note_refused(transaction, batch, [(ids[0], "immense")])

    begin(database)
    prepare(database)

    assert states(database, ids) == [DocumentState.CACHED]


def test_prepare_when_records_are_gone_then_these_documents_alone_are_to_be_fetched(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_table, "_PREPARED_ROWS", 2)
    ids = present(database, [f"gone{number}" for number in range(5)])
    with database.write_once() as transaction:
        batch_table.forget_segment(transaction, SOURCE, 1)
    kept = present(database, ["kept"])
    begin(database)

    prepare(database)
    prepare(database)

    assert states(database, ids) == [DocumentState.RECORD_LOST] * 5
    assert states(database, kept) == [DocumentState.PRESENT]
    with database.read_once() as transaction:
        assert comparison_table.count_to_fetch(transaction, SOURCE) == 5
        assert url_queue.count_todo(transaction, SOURCE, 0) == 5


def test_seal_when_records_are_gone_then_they_are_counted_and_left_alone(database: Database) -> None:
    ids = present(database, ["a", "b"])
    with database.write_once() as transaction:
        batch_table.forget_segment(transaction, SOURCE, 1)
    begin(database)

    with database.read_once() as transaction:
        gone = url_queries.count_indexed_without_record(transaction, SOURCE)

    assert (gone, seal(database)) == (2, None)
    assert states(database, ids) == [DocumentState.PRESENT] * 2


@pytest.mark.parametrize("ended", [True, False])
def test_version_when_a_resend_ended_then_there_is_none(database: Database, *, ended: bool) -> None:
    begin(database)
    with database.write_once() as transaction:
        if ended:
            batch_table.end_resend(transaction, SOURCE)

    with database.read_once() as transaction:
        assert (batch_table.find_resend_version(transaction, SOURCE) is None) == ended
