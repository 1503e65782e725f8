"""Values that change while the removal of a document waits: they go out if it stays (B7, L3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.documents import document_queries, document_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.states import DocumentState
from tests.unit.store.support_store import NOW_MS, SOURCE, confirm, document, mark, present, states

CACHED, QUARANTINED, PRESENT = DocumentState.CACHED, DocumentState.QUARANTINED, DocumentState.PRESENT
RECORD_LOST = DocumentState.RECORD_LOST


def hold(database: Database, ids: list[int]) -> None:
    """The run ends, and the removal waits."""
    database.write(removal_table.quarantine, ids, 7)


def change(database: Database, ids: list[int]) -> list[int]:
    """It has another depth now; returns what is to be fetched."""
    return database.write(document_table.send_again, ids)


def lose_record(database: Database, ids: list[int]) -> None:
    database.write(batch_table.forget_segment, SOURCE, document(database, ids[0]).segment)


def reject(database: Database, ids: list[int]) -> None:
    database.write(removal_table.reject, ids)


@pytest.mark.parametrize("back", [confirm, reject])
def test_held_when_a_value_changed_then_it_is_sent_once_the_document_stays(
    database: Database, back: Callable[[Database, list[int]], None]
) -> None:
    ids = present(database, "a")
    mark(database, ids)
    hold(database, ids)
    assert change(database, ids) == []
    assert states(database, ids) == [QUARANTINED]

    back(database, ids)

    assert states(database, ids) == [CACHED]


def test_held_when_its_record_is_gone_too_then_its_page_is_fetched_only_if_it_stays(database: Database) -> None:
    ids = present(database, "a")
    lose_record(database, ids)
    mark(database, ids)
    hold(database, ids)

    wanted = change(database, ids)
    confirm(database, ids)

    assert wanted == []
    assert database.read(document_table.find_lost, ids) == set(ids)
    assert states(database, ids) == [RECORD_LOST]


def test_held_when_it_was_sent_again_with_the_new_value_then_once_is_enough(database: Database) -> None:
    ids = present(database, "a")
    mark(database, ids)
    hold(database, ids)
    change(database, ids)
    with database.write_once() as transaction:
        batch_table.begin_resend(transaction, SOURCE, NOW_MS + 5)
        sealed = batch_table.seal_resend(transaction, SOURCE, 1, NOW_MS + 5, after=0, max_bytes=1_000_000)
        assert sealed is not None
        batch_table.note_accepted(transaction, sealed.batch, ids)

    confirm(database, ids)

    assert states(database, ids) == [PRESENT]


def test_common_text_when_a_removal_waits_then_the_document_is_looked_at_as_well(database: Database) -> None:
    ids = present(database, "a")
    mark(database, ids)
    hold(database, ids)

    found = database.read(document_queries.find_sent, SOURCE, None, after=0)
    change(database, ids)
    again = database.read(document_queries.find_sent, SOURCE, None, after=0)

    assert ([row.url_id for row in found], again) == (ids, [])
