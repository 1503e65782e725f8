"""Which rows are named, and what is noted of those that are not (lifecycle.orphans)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import update

from searchcrawl.rules.lifecycle import ORPHAN, ORPHAN_RULE
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.schema import documents
from searchcrawl.store.states import DocumentState, Leaving
from searchcrawl.store.urls import orphan_table, url_table
from tests.unit.store.support_store import (
    NOW_MS,
    SOURCE,
    cached,
    candidates,
    claim,
    confirm,
    document,
    row,
    settle,
    states,
    store,
)


def present(database: Database, names: Sequence[str]) -> list[int]:
    """Documents in the index."""
    ids = cached(database, *names)
    with database.write_once() as transaction:
        values = {"state": int(DocumentState.PRESENT), "indexed_version": 7}
        transaction.execute(update(documents).where(documents.c.url_id.in_(ids)).values(values))
    return ids


def mark(database: Database, ids: Sequence[int]) -> None:
    database.write(orphan_table.mark, ids)


def test_mark_when_an_orphan_is_visited_and_good_then_it_still_leaves(database: Database) -> None:
    ids = present(database, ["a", "b"])

    mark(database, ids[:1])
    confirm(database, ids)

    assert candidates(database) == ids[:1]
    assert (document(database, ids[0]).leaving, document(database, ids[0]).evidence) == (Leaving.ORPHAN, ORPHAN)


def test_quarantine_when_an_orphan_is_visited_and_good_then_its_removal_waits_on(database: Database) -> None:
    ids = present(database, ["a"])
    mark(database, ids)
    database.write(removal_table.quarantine, ids, 7)

    confirm(database, ids)

    assert states(database, ids) == [DocumentState.QUARANTINED]
    assert document(database, ids[0]).quarantine_run == 7


def test_named_when_the_removal_waits_then_it_is_dropped(database: Database) -> None:
    ids = present(database, ["a", "b"])
    mark(database, ids)
    database.write(removal_table.quarantine, ids[:1], 7)

    database.write(orphan_table.note_named, ids, due_ms=NOW_MS)

    assert states(database, ids) == [DocumentState.PRESENT] * 2
    assert candidates(database) == []
    assert database.read(removal_table.list_waiting, SOURCE, after=0) == []


@pytest.mark.parametrize("changed", [True, False])
def test_rejected_when_an_orphan_is_good_or_changes_then_the_rejection_is_remembered(
    database: Database, *, changed: bool
) -> None:
    ids = present(database, ["a"])
    mark(database, ids)
    database.write(removal_table.quarantine, ids, 7)
    database.write(removal_table.reject, ids)

    if changed:
        store(database, ids, body=b"newer")
    else:
        confirm(database, ids)

    assert [each.run for each in database.read(removal_table.list_rejected, SOURCE, after=0)] == [7]


def test_removed_when_it_was_an_orphan_then_it_is_not_visited_until_it_is_named(database: Database) -> None:
    ids = present(database, ["orphan", "gone"])
    mark(database, ids[:1])
    database.write(document_table.mark_evidence, ids[1:], "404")
    database.write(removal_table.seal, SOURCE, 1, NOW_MS, ids, counted=True)
    database.write(removal_table.note_removed, ids)

    parked = [(row(database, url_id).due_ms, row(database, url_id).rule) for url_id in ids]
    database.write(orphan_table.note_named, ids, due_ms=5)

    assert parked == [(None, ORPHAN_RULE), (NOW_MS, None)]
    assert (row(database, ids[0]).due_ms, row(database, ids[0]).rule) == (5, None)
    assert document(database, ids[1]).evidence == "404"


@pytest.mark.parametrize(("has_record", "after"), [(True, DocumentState.CACHED), (False, DocumentState.RECORD_LOST)])
def test_named_when_a_visit_is_under_way_then_the_end_of_the_run_has_the_document_back(
    database: Database, *, has_record: bool, after: DocumentState
) -> None:
    ids = present(database, ["orphan"])
    mark(database, ids)
    database.write(removal_table.seal, SOURCE, 1, NOW_MS, ids, counted=True)
    database.write(removal_table.note_removed, ids)
    database.write(url_table.reopen, ids)
    assert claim(database) == ids
    if not has_record:
        database.write(batch_table.forget_segment, SOURCE, 1)

    # The visit is written before the page that names it.
    confirm(database, ids)
    database.write(orphan_table.note_named, ids, due_ms=0)
    settle(database, ids)
    between = document(database, ids[0]).evidence
    sends = database.write(orphan_table.note_named, ids, due_ms=NOW_MS + 9)

    assert (between, document(database, ids[0]).evidence) == (ORPHAN, None)
    assert (states(database, ids), sends) == ([after], has_record)
    assert row(database, ids[0]).due_ms == (NOW_MS if has_record else NOW_MS + 9)
    assert document(database, ids[0]).removed_run is None


def test_unmark_when_a_process_died_then_nothing_is_left_of_its_marks(database: Database) -> None:
    ids = present(database, ["a"])
    mark(database, ids)

    database.write(orphan_table.unmark, ids)

    assert (candidates(database), document(database, ids[0]).evidence) == ([], None)
