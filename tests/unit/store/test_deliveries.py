"""Documents on their way: sealed, acknowledged, refused, removed, held back (D8)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from searchcrawl.codes import Code
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.documents import document_table, duplicate_key_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.removal_table import Before
from searchcrawl.store.states import BatchState, DocumentState
from searchcrawl.store.urls import url_queries
from tests.unit.store.support_store import (
    NOW_MS,
    SOURCE,
    add,
    candidates,
    confirm,
    document,
    mark,
    present,
    sealed,
    states,
    store,
)

NONE, CACHED, SENDING, PRESENT, WITHHELD, REMOVING, QUARANTINED, RECORD_LOST = DocumentState


def seal(database: Database, now_ms: int = NOW_MS) -> SealedBatch | None:
    return database.write(batch_table.seal_documents, SOURCE, 1, now_ms)


def accept(database: Database, batch: SealedBatch, ids: Sequence[int]) -> None:
    database.write(batch_table.note_accepted, batch, ids)


def test_seal_when_documents_are_cached_then_all_are_in_one_batch_and_none_is_left(database: Database) -> None:
    ids, batch = sealed(database, "a", "b")

    rows = database.read(batch_table.find_without_receipt, batch.number, after=0, limit=9)
    assert states(database, ids) == [SENDING, SENDING]
    assert [row.url_id for row in rows] == ids
    assert seal(database) is None


def test_crawl_version_when_the_clock_goes_back_then_it_rises_all_the_same(database: Database) -> None:
    _, first = sealed(database, "a")
    ids = add(database, ["b"])
    store(database, ids)

    second = seal(database, NOW_MS - 500)

    assert second is not None
    assert second.crawl_version > first.crawl_version
    assert second.number > first.number


def test_accept_when_acknowledged_then_present_in_that_version(database: Database) -> None:
    ids, batch = sealed(database, "a", "b")

    accept(database, batch, ids[:1])

    assert states(database, ids) == [PRESENT, SENDING]
    assert [document(database, url_id).indexed_version for url_id in ids] == [batch.crawl_version, None]
    assert database.read(document_table.count_totals, SOURCE) == {"documents": 1, "waiting": 1, "quarantined": 0}


def test_accept_when_the_document_changed_meanwhile_then_the_newer_one_still_waits(database: Database) -> None:
    ids, batch = sealed(database, "a")
    store(database, ids, body=b"newer")

    accept(database, batch, ids)

    assert states(database, ids) == [CACHED]
    assert document(database, ids[0]).indexed_version == batch.crawl_version


def test_accept_when_the_page_may_not_be_indexed_any_more_then_it_leaves(database: Database) -> None:
    ids, batch = sealed(database, "a")
    store(database, ids, state=NONE, code=952, segment=None)

    accept(database, batch, ids)

    assert candidates(database) == ids


def test_refuse_when_the_index_says_why_then_set_aside_with_the_reason(database: Database) -> None:
    ids, batch = sealed(database, "a")

    database.write(batch_table.note_refused, batch, [(ids[0], "immense term")])

    assert states(database, ids) == [WITHHELD]
    assert document(database, ids[0]).index_error == "immense term"
    store(database, ids, body=b"other")
    assert (states(database, ids), document(database, ids[0]).index_error) == ([CACHED], None)


def test_leaving_when_evidence_comes_then_only_documents_of_the_index_wait_for_the_end(database: Database) -> None:
    known = present(database, "a")
    fresh = add(database, ["b"])
    store(database, fresh)

    mark(database, known + fresh)

    assert candidates(database) == known
    assert states(database, known + fresh) == [PRESENT, NONE]


def test_leaving_when_the_page_answers_again_then_it_stays(database: Database) -> None:
    ids = present(database, "a")
    mark(database, ids)

    confirm(database, ids)

    assert candidates(database) == []
    assert states(database, ids) == [PRESENT]


def test_removal_when_sealed_and_acknowledged_then_no_longer_in_the_index(database: Database) -> None:
    ids = present(database, "a")
    mark(database, ids)

    batch = database.write(removal_table.seal, SOURCE, 1, NOW_MS, ids, counted=True)
    under_way = states(database, ids)
    [again] = database.read(removal_table.find_under_way, SOURCE)
    left = database.read(removal_table.find_without_receipt, SOURCE, again.number)
    database.write(removal_table.note_removed, ids)

    assert under_way == [REMOVING]
    assert (again, [row.url_id for row in left]) == (batch, ids)
    assert states(database, ids) == [NONE]
    assert document(database, ids[0]).indexed_version is None
    assert candidates(database) == []


def test_removed_when_the_page_is_back_unchanged_then_its_record_is_sent_again(database: Database) -> None:
    ids = present(database, "a")
    database.write(removal_table.seal, SOURCE, 1, NOW_MS, ids, counted=True)
    database.write(removal_table.note_removed, ids)

    confirm(database, ids)

    assert states(database, ids) == [CACHED]


def test_removed_when_the_page_came_back_while_it_was_being_removed_then_it_is_still_sent(database: Database) -> None:
    ids = present(database, "a")
    database.write(removal_table.seal, SOURCE, 1, NOW_MS, ids, counted=True)
    confirm(database, ids)

    database.write(removal_table.note_removed, ids)

    assert states(database, ids) == [CACHED]
    assert document(database, ids[0]).indexed_version is None


def test_removed_when_the_page_came_back_and_is_in_a_batch_already_then_it_stays_there(database: Database) -> None:
    ids = present(database, "a")
    database.write(removal_table.seal, SOURCE, 1, NOW_MS, ids, counted=True)
    confirm(database, ids)
    batch = seal(database)
    assert batch is not None

    database.write(removal_table.note_removed, ids)

    waiting = database.read(batch_table.find_without_receipt, batch.number, after=0, limit=10)
    assert [one.url_id for one in waiting] == ids


def test_lost_when_a_page_is_back_and_its_record_is_gone_then_it_is_named(database: Database) -> None:
    ids = present(database, "a", "b")
    database.write(removal_table.seal, SOURCE, 1, NOW_MS, ids[:1], counted=True)
    database.write(removal_table.note_removed, ids[:1])
    database.write(batch_table.forget_segment, SOURCE, 1)
    confirm(database, ids)

    assert database.read(document_table.find_lost, ids) == {ids[0]}


def test_quarantine_when_held_back_then_in_the_index_until_somebody_decides(database: Database) -> None:
    ids = present(database, "a", "b")
    mark(database, ids)

    database.write(removal_table.quarantine, ids, 7)
    held = [(row.url_id, row.run) for row in database.read(removal_table.list_waiting, SOURCE, after=0)]
    totals = database.read(document_table.count_totals, SOURCE)
    database.write(removal_table.reject, ids[:1])
    confirm(database, ids[1:])

    assert held == [(ids[0], 7), (ids[1], 7)]
    assert totals == {"documents": 2, "waiting": 0, "quarantined": 2}
    assert states(database, ids) == [PRESENT, PRESENT]
    assert candidates(database) == []


@pytest.mark.parametrize("back", ["rejected", "confirmed"])
def test_quarantine_when_a_newer_version_had_not_been_sent_then_it_is_afterwards(database: Database, back: str) -> None:
    ids = present(database, "a")
    store(database, ids, body=b"newer", last_changed_ms=NOW_MS + 5)
    mark(database, ids)
    database.write(removal_table.quarantine, ids, 1)

    if back == "confirmed":
        confirm(database, ids)
    else:
        database.write(removal_table.reject, ids)

    assert states(database, ids) == [CACHED]
    assert document(database, ids[0]).leaving == 0


def test_quarantine_when_a_page_with_noindex_is_unchanged_then_it_waits_on_with_its_run(database: Database) -> None:
    ids = present(database, "a")
    store(database, ids, state=NONE, code=952, segment=None)
    database.write(removal_table.quarantine, ids, 7)

    confirm(database, ids)

    assert states(database, ids) == [QUARANTINED]
    assert document(database, ids[0]).quarantine_run == 7


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("is_new", [False, True])
def test_surplus_when_the_index_lacks_the_present_text_of_the_survivor_then_the_copy_stays(
    database: Database, refused: bool, is_new: bool
) -> None:
    (copy,) = present(database, "b")
    (survivor,) = add(database, ["a"]) if is_new else present(database, "a")

    store(database, [survivor])
    with database.write_once() as transaction:
        duplicate_key_table.set_results(transaction, [(copy, Code.DUPLICATE, survivor, WITHHELD)])
        if refused:
            batch = batch_table.seal_documents(transaction, SOURCE, 1, NOW_MS)
            assert batch is not None
            batch_table.note_refused(transaction, batch, [(survivor, "no")])
    assert database.read(removal_table.find_new_copies, SOURCE, before=Before(0, 0)) == []


def test_unfinished_when_a_process_died_then_batches_go_on_from_where_they_stood(database: Database) -> None:
    _, first = sealed(database, "a")
    _, second = sealed(database, "b")
    _, third = sealed(database, "c")
    database.write(batch_table.set_state, first.number, BatchState.COMMITTED)
    database.write(batch_table.set_state, second.number, BatchState.ACKNOWLEDGED)

    found = database.read(batch_table.find_unfinished, SOURCE)

    assert [(batch.number, batch.crawl_version, batch.state) for batch in found] == [
        (second.number, second.crawl_version, BatchState.ACKNOWLEDGED),
        (third.number, third.crawl_version, BatchState.SEALED),
    ]


def test_segments_when_documents_wait_then_theirs_are_in_use(database: Database) -> None:
    waiting = add(database, ["a"])
    store(database, waiting, segment=2)
    ids, batch = sealed(database, "b")
    accept(database, batch, [*ids, *waiting])
    store(database, add(database, ["c"]), segment=3)

    before = database.read(batch_table.find_segments_in_use, SOURCE)
    database.write(batch_table.set_state, batch.number, BatchState.COMMITTED)
    after = database.write(batch_table.find_segments_in_use, SOURCE)

    assert (before, after) == ({1, 2, 3}, {3})


def test_lost_records_when_the_document_is_indexed_then_its_page_is_wanted_and_its_body_known(
    database: Database,
) -> None:
    ids = present(database, "a")
    store(database, ids, body=b"newer")

    database.write(batch_table.mark_records_lost, ids)

    found = document(database, ids[0])
    assert (found.state, found.segment, found.body_digest) == (RECORD_LOST, None, b"newer")
    assert found.indexed_version is not None


def test_receipt_when_the_document_was_put_back_meanwhile_then_the_old_text_follows_or_nothing_is_believed(
    database: Database,
) -> None:
    ids = present(database, "a", "b")
    with database.write_once() as transaction:
        batch_table.set_documents(transaction, ids[1:], segment=None)
        # The batch with the new texts, which both have left.
        later = batch_table.add_batch(transaction, SOURCE, 1, NOW_MS)
    accept(database, later, ids)

    assert states(database, ids) == [CACHED, PRESENT]
    assert [document(database, url_id).body_digest is None for url_id in ids] == [False, True]


@pytest.mark.parametrize("in_index", [True, False])
def test_refused_document_when_its_page_is_gone_then_it_is_refused_no_more(database: Database, in_index: bool) -> None:
    ids = present(database, "a") if in_index else add(database, ["a"])
    store(database, ids, body=b"newer")
    batch = seal(database)
    assert batch is not None
    database.write(batch_table.note_refused, batch, [(ids[0], "immense term")])
    before = database.write(url_queries.count_refused_documents, SOURCE)
    mark(database, ids)
    with database.write_once() as transaction:
        if in_index:
            removal_table.seal(transaction, SOURCE, 1, NOW_MS, ids, counted=False)
            removal_table.note_removed(transaction, ids)
        after = url_queries.count_refused_documents(transaction, SOURCE)

    assert (before, after) == (1, 0)
    assert document(database, ids[0]).index_error is None
