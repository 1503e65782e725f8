"""Values that change while the removal of a document waits: they go out if it stays (B7, L3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.documents import document_queries, document_table
from searchcrawl.store.documents.document_table import Confirmed
from searchcrawl.store.engine.database import Database
from searchcrawl.store.states import DocumentState
from tests.unit.store.support_store import NOW_MS, SOURCE, document, present, states

CACHED, QUARANTINED, PRESENT = DocumentState.CACHED, DocumentState.QUARANTINED, DocumentState.PRESENT
RECORD_LOST = DocumentState.RECORD_LOST


def leave(database: Database, ids: list[int]) -> None:
    """Its page is gone."""
    with database.write_once() as transaction:
        document_table.mark_evidence(transaction, ids, "404")


def hold(database: Database, ids: list[int]) -> None:
    """The run ends, and the removal waits."""
    with database.write_once() as transaction:
        removal_table.quarantine(transaction, ids, 7)


def change(database: Database, ids: list[int]) -> list[int]:
    """It has another depth now; returns what is to be fetched."""
    with database.write_once() as transaction:
        return document_table.send_again(transaction, ids)


def come_back(database: Database, ids: list[int], *, send_again: bool = False) -> None:
    """Its page is there again, as it was."""
    with database.write_once() as transaction:
        document_table.confirm(transaction, [Confirmed(url_id=url_id, send_again=send_again) for url_id in ids])


def lose_record(database: Database, ids: list[int]) -> None:
    with database.write_once() as transaction:
        batch_table.forget_segment(transaction, SOURCE, document(database, ids[0]).segment)


def reject(database: Database, ids: list[int]) -> None:
    with database.write_once() as transaction:
        removal_table.reject(transaction, ids)


@pytest.mark.parametrize("back", [come_back, reject])
def test_held_when_a_value_changed_then_it_is_sent_once_the_document_stays(
    database: Database, back: Callable[[Database, list[int]], None]
) -> None:
    ids = present(database, "a")
    leave(database, ids)
    hold(database, ids)
    assert change(database, ids) == []
    assert states(database, ids) == [QUARANTINED]

    back(database, ids)

    assert states(database, ids) == [CACHED]


@pytest.mark.parametrize(("differs", "after"), [(False, PRESENT), (True, CACHED)])
def test_held_when_its_page_is_found_again_then_it_is_sent_if_the_visit_finds_another_value(
    database: Database, *, differs: bool, after: DocumentState
) -> None:
    ids = present(database, "a")
    leave(database, ids)
    hold(database, ids)

    come_back(database, ids, send_again=differs)

    assert states(database, ids) == [after]


def test_held_when_its_record_is_gone_too_then_its_page_is_fetched_only_if_it_stays(database: Database) -> None:
    ids = present(database, "a")
    lose_record(database, ids)
    leave(database, ids)
    hold(database, ids)

    wanted = change(database, ids)
    come_back(database, ids)

    assert wanted == []
    with database.read_once() as transaction:
        assert document_table.find_lost(transaction, ids) == set(ids)
    assert states(database, ids) == [RECORD_LOST]


def test_held_when_it_was_sent_again_with_the_new_value_then_once_is_enough(database: Database) -> None:
    ids = present(database, "a")
    leave(database, ids)
    hold(database, ids)
    change(database, ids)
    with database.write_once() as transaction:
        batch_table.begin_resend(transaction, SOURCE, NOW_MS + 5)
        sealed = batch_table.seal_resend(transaction, SOURCE, 1, NOW_MS + 5, after=0, max_bytes=1_000_000)
        assert sealed is not None
        batch_table.note_accepted(transaction, sealed.batch, ids)

    come_back(database, ids)

    assert states(database, ids) == [PRESENT]


def test_common_text_when_a_removal_waits_then_the_document_is_looked_at_as_well(database: Database) -> None:
    ids = present(database, "a")
    leave(database, ids)
    hold(database, ids)

    with database.read_once() as transaction:
        found = document_queries.find_sent(transaction, SOURCE, None, after=0)
    change(database, ids)
    with database.read_once() as transaction:
        again = document_queries.find_sent(transaction, SOURCE, None, after=0)

    assert ([row.url_id for row in found], again) == (ids, [])
