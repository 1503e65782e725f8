"""Documents that the index refused, once their pages are gone (D8)."""

from __future__ import annotations

import pytest

from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import url_queries
from tests.unit.store.support_store import NOW_MS, SOURCE, add, document, store
from tests.unit.store.test_deliveries import mark, present, seal


@pytest.mark.parametrize("in_index", [True, False])
def test_refused_document_when_its_page_is_gone_then_it_is_refused_no_more(database: Database, in_index: bool) -> None:
    ids = present(database, ["a"]) if in_index else add(database, ["a"])
    store(database, ids, body=b"newer")
    batch = seal(database)
    assert batch is not None
    with database.write_once() as transaction:
        batch_table.note_refused(transaction, batch, [(ids[0], "immense term")])
        before = url_queries.count_refused_documents(transaction, SOURCE)
    mark(database, ids)
    with database.write_once() as transaction:
        if in_index:
            removal_table.seal(transaction, SOURCE, 1, NOW_MS, ids, counted=False)
            removal_table.note_removed(transaction, ids)
        after = url_queries.count_refused_documents(transaction, SOURCE)

    assert (before, after) == (1, 0)
    assert document(database, ids[0]).index_error is None
