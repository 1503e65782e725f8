"""Documents on their way: sealed, acknowledged, refused, removed, held back (D8)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from searchcrawl.codes import Code
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.documents import document_table, duplicate_key_table
from searchcrawl.store.documents.document_table import Confirmed
from searchcrawl.store.engine.database import Database
from searchcrawl.store.removal_table import Before
from searchcrawl.store.states import BatchState, DocumentState
from tests.unit.store.support_store import NOW_MS, SOURCE, add, document, settle, states, store

NONE, CACHED, SENDING, PRESENT = (
    DocumentState.NONE,
    DocumentState.CACHED,
    DocumentState.SENDING,
    DocumentState.PRESENT,
)
WITHHELD, REMOVING, QUARANTINED = DocumentState.WITHHELD, DocumentState.REMOVING, DocumentState.QUARANTINED


def seal(database: Database, now_ms: int = NOW_MS) -> SealedBatch | None:
    with database.write_once() as transaction:
        return batch_table.seal_documents(transaction, SOURCE, 1, now_ms)


def sealed(database: Database, names: Sequence[str]) -> tuple[list[int], SealedBatch]:
    """Documents in a batch."""
    ids = add(database, names)
    settle(database, ids)
    store(database, ids)
    batch = seal(database)
    assert batch is not None
    return ids, batch


def accept(database: Database, batch: SealedBatch, ids: Sequence[int]) -> None:
    with database.write_once() as transaction:
        batch_table.note_accepted(transaction, batch, ids)


def present(database: Database, names: Sequence[str]) -> list[int]:
    """Documents in the index."""
    ids, batch = sealed(database, names)
    accept(database, batch, ids)
    return ids


def leaving(database: Database) -> list[int]:
    with database.read_once() as transaction:
        return [row.url_id for row in removal_table.find_candidates(transaction, SOURCE, before=Before(0, 0))]


def mark(database: Database, ids: Sequence[int]) -> None:
    with database.write_once() as transaction:
        document_table.mark_evidence(transaction, ids, "404")


def confirm(database: Database, ids: Sequence[int], *, send_again: bool = False) -> None:
    with database.write_once() as transaction:
        document_table.confirm(transaction, [Confirmed(url_id=url_id, send_again=send_again) for url_id in ids])


def test_seal_when_documents_are_cached_then_all_are_in_one_batch_and_none_is_left(database: Database) -> None:
    ids, batch = sealed(database, ["a", "b"])

    with database.read_once() as transaction:
        rows = batch_table.find_without_receipt(transaction, batch.number, after=0, limit=9)
    assert states(database, ids) == [SENDING, SENDING]
    assert [row.url_id for row in rows] == ids
    assert seal(database) is None


def test_crawl_version_when_the_clock_goes_back_then_it_rises_all_the_same(database: Database) -> None:
    _, first = sealed(database, ["a"])
    ids = add(database, ["b"])
    store(database, ids)

    second = seal(database, NOW_MS - 500)

    assert second is not None
    assert second.crawl_version > first.crawl_version
    assert second.number > first.number


def test_accept_when_acknowledged_then_present_in_that_version(database: Database) -> None:
    ids, batch = sealed(database, ["a", "b"])

    accept(database, batch, ids[:1])

    assert states(database, ids) == [PRESENT, SENDING]
    assert [document(database, url_id).indexed_version for url_id in ids] == [batch.crawl_version, None]
    with database.read_once() as transaction:
        assert document_table.count_totals(transaction, SOURCE) == {"documents": 1, "waiting": 1, "quarantined": 0}


def test_accept_when_the_document_changed_meanwhile_then_the_newer_one_still_waits(database: Database) -> None:
    ids, batch = sealed(database, ["a"])
    store(database, ids, body=b"newer")

    accept(database, batch, ids)

    assert states(database, ids) == [CACHED]
    assert document(database, ids[0]).indexed_version == batch.crawl_version


def test_accept_when_the_page_may_not_be_indexed_any_more_then_it_leaves(database: Database) -> None:
    ids, batch = sealed(database, ["a"])
    store(database, ids, state=NONE, code=952, segment=None)

    accept(database, batch, ids)

    assert leaving(database) == ids


def test_refuse_when_the_index_says_why_then_set_aside_with_the_reason(database: Database) -> None:
    ids, batch = sealed(database, ["a"])

    with database.write_once() as transaction:
        batch_table.note_refused(transaction, batch, [(ids[0], "immense term")])

    assert states(database, ids) == [WITHHELD]
    assert document(database, ids[0]).index_error == "immense term"
    store(database, ids, body=b"other")
    assert (states(database, ids), document(database, ids[0]).index_error) == ([CACHED], None)


def test_leaving_when_evidence_comes_then_only_documents_of_the_index_wait_for_the_end(database: Database) -> None:
    known = present(database, ["a"])
    fresh = add(database, ["b"])
    store(database, fresh)

    mark(database, known + fresh)

    assert leaving(database) == known
    assert states(database, known + fresh) == [PRESENT, NONE]


def test_leaving_when_the_page_answers_again_then_it_stays(database: Database) -> None:
    ids = present(database, ["a"])
    mark(database, ids)

    confirm(database, ids)

    assert leaving(database) == []
    assert states(database, ids) == [PRESENT]


def test_removal_when_sealed_and_acknowledged_then_no_longer_in_the_index(database: Database) -> None:
    ids = present(database, ["a"])
    mark(database, ids)

    with database.write_once() as transaction:
        batch = removal_table.seal(transaction, SOURCE, 1, NOW_MS, ids, counted=True)
    under_way = states(database, ids)
    with database.read_once() as transaction:
        [again] = removal_table.find_under_way(transaction, SOURCE)
        left = removal_table.find_without_receipt(transaction, SOURCE, again.number)
    with database.write_once() as transaction:
        removal_table.note_removed(transaction, ids)

    assert under_way == [REMOVING]
    assert (again, [row.url_id for row in left]) == (batch, ids)
    assert states(database, ids) == [NONE]
    assert document(database, ids[0]).indexed_version is None
    assert leaving(database) == []


def test_removed_when_the_page_is_back_unchanged_then_its_record_is_sent_again(database: Database) -> None:
    ids = present(database, ["a"])
    with database.write_once() as transaction:
        removal_table.seal(transaction, SOURCE, 1, NOW_MS, ids, counted=True)
        removal_table.note_removed(transaction, ids)

    confirm(database, ids)

    assert states(database, ids) == [CACHED]


def test_removed_when_the_page_came_back_while_it_was_being_removed_then_it_is_still_sent(database: Database) -> None:
    ids = present(database, ["a"])
    with database.write_once() as transaction:
        removal_table.seal(transaction, SOURCE, 1, NOW_MS, ids, counted=True)
    confirm(database, ids)

    with database.write_once() as transaction:
        removal_table.note_removed(transaction, ids)

    assert states(database, ids) == [CACHED]
    assert document(database, ids[0]).indexed_version is None


def test_removed_when_the_page_came_back_and_is_in_a_batch_already_then_it_stays_there(database: Database) -> None:
    ids = present(database, ["a"])
    with database.write_once() as transaction:
        removal_table.seal(transaction, SOURCE, 1, NOW_MS, ids, counted=True)
    confirm(database, ids)
    batch = seal(database)
    assert batch is not None

    with database.write_once() as transaction:
        removal_table.note_removed(transaction, ids)

    with database.read_once() as transaction:
        waiting = batch_table.find_without_receipt(transaction, batch.number, after=0, limit=10)
    assert [one.url_id for one in waiting] == ids


def test_lost_when_a_page_is_back_and_its_record_is_gone_then_it_is_named(database: Database) -> None:
    ids = present(database, ["a", "b"])
    with database.write_once() as transaction:
        removal_table.seal(transaction, SOURCE, 1, NOW_MS, ids[:1], counted=True)
        removal_table.note_removed(transaction, ids[:1])
        batch_table.forget_segment(transaction, SOURCE, 1)
    confirm(database, ids)

    with database.read_once() as transaction:
        assert document_table.find_lost(transaction, ids) == {ids[0]}


def test_quarantine_when_held_back_then_in_the_index_until_somebody_decides(database: Database) -> None:
    ids = present(database, ["a", "b"])
    mark(database, ids)

    with database.write_once() as transaction:
        removal_table.quarantine(transaction, ids, 7)
    with database.read_once() as transaction:
        held = [(row.url_id, row.run) for row in removal_table.list_waiting(transaction, SOURCE, after=0)]
        totals = document_table.count_totals(transaction, SOURCE)
    with database.write_once() as transaction:
        removal_table.reject(transaction, ids[:1])
    confirm(database, ids[1:])

    assert held == [(ids[0], 7), (ids[1], 7)]
    assert totals == {"documents": 2, "waiting": 0, "quarantined": 2}
    assert states(database, ids) == [PRESENT, PRESENT]
    assert leaving(database) == []


@pytest.mark.parametrize("back", ["rejected", "confirmed"])
def test_quarantine_when_a_newer_version_had_not_been_sent_then_it_is_afterwards(database: Database, back: str) -> None:
    ids = present(database, ["a"])
    store(database, ids, body=b"newer", last_changed_ms=NOW_MS + 5)
    mark(database, ids)
    with database.write_once() as transaction:
        removal_table.quarantine(transaction, ids, 1)

    if back == "confirmed":
        confirm(database, ids)
    else:
        with database.write_once() as transaction:
            removal_table.reject(transaction, ids)

    assert states(database, ids) == [CACHED]
    assert document(database, ids[0]).leaving == 0


def test_quarantine_when_a_page_with_noindex_is_unchanged_then_it_waits_on_with_its_run(database: Database) -> None:
    ids = present(database, ["a"])
    store(database, ids, state=NONE, code=952, segment=None)
    with database.write_once() as transaction:
        removal_table.quarantine(transaction, ids, 7)

    confirm(database, ids)

    assert states(database, ids) == [QUARANTINED]
    assert document(database, ids[0]).quarantine_run == 7


def test_confirm_when_another_indexed_value_differs_then_the_record_is_sent_again(database: Database) -> None:
    ids = present(database, ["a"])

    confirm(database, ids, send_again=True)

    assert states(database, ids) == [CACHED]


def test_surplus_when_copy_and_survivor_are_both_indexed_then_the_copy_may_go(database: Database) -> None:
    ids = present(database, ["a", "b"])

    with database.write_once() as transaction:
        duplicate_key_table.set_results(transaction, [(ids[1], Code.DUPLICATE, ids[0], WITHHELD)])
    with database.read_once() as transaction:
        surplus = [row.url_id for row in removal_table.find_new_copies(transaction, SOURCE, before=Before(0, 0))]
        duplicates = duplicate_key_table.find_duplicates(transaction, ids)

    assert surplus == ids[1:]
    assert duplicates == {ids[0]: [("http://a.test:80/b", None, 1)]}


def test_surplus_when_the_survivor_is_not_indexed_yet_then_the_copy_stays(database: Database) -> None:
    copy = present(database, ["b"])
    survivor = add(database, ["a"])
    store(database, survivor)

    with database.write_once() as transaction:
        duplicate_key_table.set_results(transaction, [(copy[0], Code.DUPLICATE, survivor[0], WITHHELD)])
    with database.read_once() as transaction:
        assert removal_table.find_new_copies(transaction, SOURCE, before=Before(0, 0)) == []


@pytest.mark.parametrize("refused", [False, True])
def test_surplus_when_the_index_lacks_the_present_text_of_the_survivor_then_the_copy_stays(
    database: Database, refused: bool
) -> None:
    survivor, copy = present(database, ["a", "b"])

    store(database, [survivor])
    with database.write_once() as transaction:
        duplicate_key_table.set_results(transaction, [(copy, Code.DUPLICATE, survivor, WITHHELD)])
        if refused:
            batch = batch_table.seal_documents(transaction, SOURCE, 1, NOW_MS)
            assert batch is not None
            batch_table.note_refused(transaction, batch, [(survivor, "no")])
    with database.read_once() as transaction:
        assert removal_table.find_new_copies(transaction, SOURCE, before=Before(0, 0)) == []


def test_unfinished_when_a_process_died_then_batches_go_on_from_where_they_stood(database: Database) -> None:
    _, first = sealed(database, ["a"])
    _, second = sealed(database, ["b"])
    _, third = sealed(database, ["c"])
    with database.write_once() as transaction:
        batch_table.set_state(transaction, first.number, BatchState.COMMITTED)
        batch_table.set_state(transaction, second.number, BatchState.ACKNOWLEDGED)

    with database.read_once() as transaction:
        found = batch_table.find_unfinished(transaction, SOURCE)

    assert [(batch.number, batch.crawl_version, batch.state) for batch in found] == [
        (second.number, second.crawl_version, BatchState.ACKNOWLEDGED),
        (third.number, third.crawl_version, BatchState.SEALED),
    ]


def test_segments_when_documents_wait_then_theirs_are_in_use(database: Database) -> None:
    waiting = add(database, ["a"])
    store(database, waiting, segment=2)
    ids, batch = sealed(database, ["b"])
    accept(database, batch, [*ids, *waiting])
    store(database, add(database, ["c"]), segment=3)

    with database.read_once() as transaction:
        before = batch_table.find_segments_in_use(transaction, SOURCE)
    with database.write_once() as transaction:
        batch_table.set_state(transaction, batch.number, BatchState.COMMITTED)
        after = batch_table.find_segments_in_use(transaction, SOURCE)

    assert (before, after) == ({1, 2, 3}, {3})


def test_lost_records_when_the_document_is_indexed_then_its_page_is_wanted_and_its_body_known(
    database: Database,
) -> None:
    ids = present(database, ["a"])
    store(database, ids, body=b"newer")

    with database.write_once() as transaction:
        batch_table.mark_records_lost(transaction, ids)

    found = document(database, ids[0])
    assert (found.state, found.segment, found.body_digest) == (DocumentState.RECORD_LOST, None, b"newer")
    assert found.indexed_version is not None


def test_receipt_when_the_document_was_put_back_meanwhile_then_the_old_text_follows_or_nothing_is_believed(
    database: Database,
) -> None:
    ids = present(database, ["a", "b"])
    with database.write_once() as transaction:
        batch_table.set_documents(transaction, ids[1:], segment=None)
        # The batch with the new texts, which both have left.
        later = batch_table.add_batch(transaction, SOURCE, 1, NOW_MS)
    accept(database, later, ids)

    assert states(database, ids) == [CACHED, PRESENT]
    assert [document(database, url_id).body_digest is None for url_id in ids] == [False, True]
