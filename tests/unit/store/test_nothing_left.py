"""What is forgotten or deleted leaves nothing in a table or column that was added later."""

from __future__ import annotations

from searchcrawl.store.run_schema import ALL_TABLES, leases
from searchcrawl.store.runs import deletion
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.urls import forget_table

#: What an emptied document keeps: whose it is, how far its removal is, and what receivers were told.
KEPT = {
    "url_id",
    "source_id",
    "state",
    "indexed_version",
    "indexed_since",
    "batch_id",
    "code",
    "content_length",
    "leaving",
    "seq",
    "shown",
    "first_seq",
}
#: What a refused row keeps: the URL, where and in which run it was found, and that it is refused.
KEPT_OF_ROW = {
    "id",
    "source_id",
    "key",
    "url",
    "host_id",
    "depth",
    "referrer_id",
    "first_seen_ms",
    "sitemap_id",
    "version",
    "facts",
    "run_id",
}
SET_ANEW = {"fetch_state", "code", "rule", "attempts", "failed_runs"}


def test_tables_when_a_source_is_deleted_then_each_that_names_it_is_emptied() -> None:
    named = {table for table in ALL_TABLES.tables.values() if "source_id" in table.c or "url_id" in table.c}

    assert named - {urls, leases, *deletion.OF_URL, *deletion.OF_SOURCE} == set()


def test_columns_when_a_document_is_forgotten_then_each_is_emptied_or_known_to_stay() -> None:
    assert {column.name for column in documents.c} - set(forget_table.EMPTY) == KEPT


def test_columns_when_a_row_is_forgotten_then_each_is_emptied_or_known_to_stay() -> None:
    written = set(forget_table.REFUSE.compile().params) | {"rule"}

    assert {column.name for column in urls.c} - written - SET_ANEW == KEPT_OF_ROW
