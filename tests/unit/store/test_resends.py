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
from tests.unit.store.support_store import NOW_MS, SOURCE, add, sealed, settle, states, store

EVERYTHING = 10**9


def present(database: Database, names: Sequence[str]) -> list[int]:
    """Documents in the index."""
    ids, batch = sealed(database, *names)
    database.write(batch_table.note_accepted, batch, ids)
    database.write(batch_table.set_state, batch.number, BatchState.COMMITTED)
    return ids


def begin(database: Database) -> None:
    database.write(batch_table.begin_resend, SOURCE, NOW_MS)


def seal(database: Database, *, after: int = 0, max_bytes: int = EVERYTHING) -> Chunk | None:
    return database.write(batch_table.seal_resend, SOURCE, 1, NOW_MS, after=after, max_bytes=max_bytes)


def shipped(database: Database, chunk: Chunk | None) -> list[int]:
    assert chunk is not None
    rows = database.read(batch_table.find_without_receipt, chunk.batch.number, after=0, limit=1000)
    return [row.url_id for row in rows]


def accept(database: Database, chunk: Chunk | None, ids: Sequence[int]) -> None:
    assert chunk is not None
    database.write(batch_table.note_accepted, chunk.batch, ids)


def left(database: Database) -> int:
    return database.read(batch_table.count_to_resend, SOURCE)


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
    run = database.write(run_table.start, SOURCE, fingerprint="", now_ms=NOW_MS)
    database.write(document_table.mark_evidence, ids, "404")
    database.write(removal_table.quarantine, ids[:1], run.id)
    begin(database)

    chunk = seal(database)
    sent = shipped(database, chunk)
    accept(database, chunk, ids)

    assert sent == ids
    assert states(database, ids) == [DocumentState.QUARANTINED, DocumentState.PRESENT]
    assert shipped(database, chunk) == []
    assert [row.url_id for row in database.read(removal_table.list_waiting, SOURCE, after=0)] == ids[:1]
    assert [row.url_id for row in database.read(removal_table.find_candidates, SOURCE, before=Before(0, 0))] == ids[1:]


def test_seal_when_a_waiting_removal_is_refused_then_it_still_waits_and_is_not_sent_for_ever(
    database: Database,
) -> None:
    ids = present(database, ["a"])
    database.write(removal_table.quarantine, ids, 1)
    begin(database)
    chunk = seal(database)
    assert chunk is not None

    database.write(batch_table.note_refused, chunk.batch, [(ids[0], "immense")])

    assert states(database, ids) == [DocumentState.QUARANTINED]
    assert shipped(database, chunk) == []
    assert seal(database, after=chunk.last) is None


def prepare(database: Database) -> None:
    after: int | None = 0
    while after is not None:
        after = database.write(batch_table.prepare_resend, SOURCE, after=after)


def test_prepare_when_a_document_was_refused_then_it_is_to_be_sent(database: Database) -> None:
    ids = add(database, ["a"])
    settle(database, ids)
    store(database, ids)
    batch = database.write(batch_table.seal_documents, SOURCE, 1, NOW_MS)
    assert batch is not None
    database.write(batch_table.note_refused, batch, [(ids[0], "immense")])

    begin(database)
    prepare(database)

    assert states(database, ids) == [DocumentState.CACHED]


def test_prepare_when_records_are_gone_then_these_documents_alone_are_to_be_fetched(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_table, "_PREPARED_ROWS", 2)
    ids = present(database, [f"gone{number}" for number in range(5)])
    database.write(batch_table.forget_segment, SOURCE, 1)
    kept = present(database, ["kept"])
    begin(database)

    prepare(database)
    prepare(database)

    assert states(database, ids) == [DocumentState.RECORD_LOST] * 5
    assert states(database, kept) == [DocumentState.PRESENT]
    assert database.read(comparison_table.count_to_fetch, SOURCE) == 5
    assert database.read(url_queue.count_todo, SOURCE, 0) == 5


def test_seal_when_records_are_gone_then_they_are_counted_and_left_alone(database: Database) -> None:
    ids = present(database, ["a", "b"])
    database.write(batch_table.forget_segment, SOURCE, 1)
    begin(database)

    gone = database.read(url_queries.count_indexed_without_record, SOURCE)

    assert (gone, seal(database)) == (2, None)
    assert states(database, ids) == [DocumentState.PRESENT] * 2
