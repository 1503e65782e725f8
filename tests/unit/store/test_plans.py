"""How SQLite reads large tables: what is counted or walked through must not look each row up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, make_url, select
from sqlalchemy.dialects import postgresql, sqlite

from searchcrawl.store import batch_table, log_table, receiver_table, removal_table, sitemap_table
from searchcrawl.store.documents import (
    comparison_table,
    document_queries,
    document_table,
    duplicate_key_table,
    shared_copy_table,
)
from searchcrawl.store.documents.duplicate_key_table import DuplicateKeys
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.engine.dialect import load_dialect
from searchcrawl.store.log_table import LogPlace
from searchcrawl.store.removal_table import Before
from searchcrawl.store.runs import run_table
from searchcrawl.store.schema import urls
from searchcrawl.store.sitemap_table import Dates
from searchcrawl.store.statements import unindexed
from searchcrawl.store.urls import review_table, url_queries, url_queue, url_table
from searchcrawl.store.urls.url_queries import RowFilter
from tests.statements import find_engines
from tests.unit.store.support_store import NOW_MS, SOURCE


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Database]:
    database = Database("sqlite:///store.db", tmp_path)
    yield database
    database.close()


@contextmanager
def plans(database: Database) -> Iterator[list[str]]:
    """The steps of the plans of all statements of the block, filled in at its end."""
    said: list[tuple[str, Sequence[object]]] = []

    def note(_connection: Connection, _cursor: object, statement: str, values: Sequence[object], *_: object) -> None:
        if statement.startswith(("SELECT", "UPDATE")):
            said.append((statement, values))

    steps: list[str] = []
    engines = find_engines(database)
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield steps
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)
    with database.read_once() as transaction:
        for statement, values in said:
            rows = transaction.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", tuple(values))
            steps.extend(row[3] for row in rows)


@pytest.mark.parametrize(
    "count",
    [
        lambda transaction: document_table.count_totals(transaction, SOURCE),
        lambda transaction: url_queue.count_todo(transaction, SOURCE, NOW_MS),
        lambda transaction: url_queries.count_indexed_without_record(transaction, SOURCE),
        lambda transaction: url_queries.count_warned_urls(transaction, SOURCE),
    ],
    ids=["totals", "todo", "without record", "warned"],
)
def test_count_when_sqlite_plans_then_an_index_is_enough(
    sqlite_store: Database, count: Callable[[Transaction], object]
) -> None:
    with plans(sqlite_store) as steps, sqlite_store.read_once() as transaction:
        count(transaction)

    assert steps
    assert [step for step in steps if "COVERING INDEX" not in step and "TEMP B-TREE" not in step] == []


@pytest.mark.parametrize("unreviewed", [None, (5, 20)])
def test_claims_when_sqlite_plans_then_those_of_a_host_and_what_is_due_have_an_index_each(
    sqlite_store: Database, unreviewed: tuple[int, int] | None
) -> None:
    with plans(sqlite_store) as steps, sqlite_store.write_once() as transaction:
        url_table.claim(
            transaction, SOURCE, 1, limit=9, now_ms=NOW_MS, horizon_ms=NOW_MS, forced=False, unreviewed=unreviewed
        )
        url_queue.find_due(transaction, SOURCE, NOW_MS, after=url_queue.FIRST, limit=9)

    assert [step for step in steps if " urls " in step] == [
        "SEARCH urls USING INDEX ix_urls_todo (source_id=? AND host_id=? AND lap=?)",
        "SEARCH urls USING INDEX ix_urls_due (source_id=? AND host_id=? AND due_ms>? AND due_ms<?)",
        "SEARCH urls USING COVERING INDEX ix_urls_due_hosts (source_id=? AND (due_ms,host_id)>(?,?) AND due_ms<?)",
    ]


def test_refused_documents_when_sqlite_plans_then_only_those_are_looked_at(sqlite_store: Database) -> None:
    with plans(sqlite_store) as steps, sqlite_store.read_once() as transaction:
        url_queries.count_refused_documents(transaction, SOURCE)

    assert steps == ["SEARCH documents USING INDEX ix_documents_refused (source_id=?)"]


def test_same_bytes_when_sqlite_plans_then_only_documents_that_have_them_are_looked_at(sqlite_store: Database) -> None:
    digests = [bytes([number]) * 32 for number in range(64)]

    with plans(sqlite_store) as steps, sqlite_store.read_once() as transaction:
        document_queries.find_same_bytes(transaction, SOURCE, digests)

    assert steps == [
        "SEARCH documents USING INDEX ix_documents_content (source_id=? AND content_digest=?)",
        "SEARCH urls USING INTEGER PRIMARY KEY (rowid=?)",
    ]


def test_titles_when_documents_are_sampled_by_id_then_no_others_are_looked_at(sqlite_store: Database) -> None:
    with plans(sqlite_store) as steps, sqlite_store.read_once() as transaction:
        for is_sent in (True, False):
            document_queries.load_sampled(transaction, SOURCE, [1, 2, 3], ("text/html",), is_sent=is_sent)

    assert {step for step in steps if step.startswith(("SEARCH", "SCAN"))} == {
        "SEARCH documents USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH urls USING INTEGER PRIMARY KEY (rowid=?)",
    }


def test_segment_when_it_is_given_up_then_no_other_documents_are_looked_at(sqlite_store: Database) -> None:
    with plans(sqlite_store) as steps, sqlite_store.write_once() as transaction:
        batch_table.find_segments_in_use(transaction, SOURCE)
        batch_table.forget_segment(transaction, SOURCE, 1)

    assert [step for step in steps if step.startswith(("SCAN documents", "SEARCH documents"))] == [
        "SEARCH documents USING INDEX ix_documents_pending (source_id=? AND state=?)",
        "SEARCH documents USING INDEX ix_documents_batch_id (batch_id=?)",
        "SEARCH documents USING INDEX ix_documents_segment (segment=? AND source_id=?)",
    ]


def test_dates_when_sitemaps_were_read_then_only_what_they_list_is_looked_at(sqlite_store: Database) -> None:
    dates = Dates(source_id=SOURCE, run_id=1, horizon_ms=NOW_MS, urls=["http://a.test/sitemap.xml"], now_ms=NOW_MS)

    with plans(sqlite_store) as steps, sqlite_store.write_once() as transaction:
        sitemap_table.put_off(transaction, dates)
        sitemap_table.bring_forward(transaction, dates)

    listed = "SEARCH urls USING INDEX ix_urls_sitemap_id (sitemap_id=?)"
    assert [step for step in steps if "urls" in step] == [listed, listed]


def test_children_when_an_index_was_read_then_only_its_own_are_looked_at(sqlite_store: Database) -> None:
    with sqlite_store.write_once() as transaction:
        run_table.find_or_add_source(transaction, "demo")
        named = [f"http://a.test/{number}.xml" for number in range(1500)]
        sitemap_table.add(transaction, SOURCE, named, parent_id=1)

    with plans(sqlite_store) as steps, sqlite_store.write_once() as transaction:
        sitemap_table.find_children(transaction, 1)
        gone = sitemap_table.find_other_children(transaction, 1, ())
        assert len(gone) == 1500
        sitemap_table.forget(transaction, gone)

    walks = [step for step in steps if step.startswith(("SCAN", "SEARCH"))]
    assert {step.partition(" (")[0] for step in walks} == {
        "SEARCH sitemaps USING INDEX ix_sitemaps_parent_id",
        "SEARCH sitemaps USING COVERING INDEX ix_sitemaps_parent_id",
        "SEARCH urls USING INDEX ix_urls_sitemap_id",
    }
    # Not one for each of them.
    assert len(walks) < 20


def test_whole_source_when_sqlite_plans_then_the_rows_come_by_their_ids(sqlite_store: Database) -> None:
    with plans(sqlite_store) as steps:
        list(islice(url_queries.list_urls(sqlite_store, SOURCE, RowFilter(code=404)), 5))
        list(url_queries.list_indexed(sqlite_store, SOURCE))
        with sqlite_store.write_once() as transaction:
            run_table.count_urls(transaction, SOURCE, without=[955])
            review_table.load_rows_after(transaction, SOURCE, 0, 99)

    walks = [step for step in steps if step.startswith(("SCAN urls", "SEARCH urls")) and "rowid=?" not in step]
    assert walks == [
        "SEARCH urls USING INTEGER PRIMARY KEY (rowid>?)",
        "SCAN urls",
        "SEARCH urls USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    ]


def test_change_log_when_sqlite_plans_then_only_what_is_asked_for_is_read(sqlite_store: Database) -> None:
    with sqlite_store.write_once() as transaction:
        source_id = run_table.find_or_add_source(transaction, "demo")
        receiver_table.keep(transaction, source_id, ["second"])
    with plans(sqlite_store) as steps, sqlite_store.read_once() as transaction:
        log_table.find_page(transaction, source_id, LogPlace(5, 5))
        log_table.find_later(transaction, source_id, "second")
        log_table.count_waiting(transaction, source_id, LogPlace(5, 5))
        log_table.find_segments_unread(transaction, source_id)
        log_table.find_left(transaction, source_id)
        log_table.find_tombstones(transaction, source_id, after=5, up_to=9)

    assert [step for step in steps if step.startswith("SCAN")] == []
    assert {step for step in steps if " documents " in step} == {
        "SEARCH documents USING INDEX ix_documents_log (source_id=? AND seq=? AND url_id>?)",
        "SEARCH documents USING INDEX ix_documents_log (source_id=? AND seq>?)",
        "SEARCH documents USING COVERING INDEX ix_documents_log (source_id=? AND seq>?)",
        "SEARCH documents USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH documents USING INDEX ix_documents_left (source_id=?)",
    }


def test_scanned_when_the_store_keeps_statistics_then_the_column_is_not_hidden() -> None:
    load_dialect(make_url("sqlite://"))
    query = select(urls.c.id).where(unindexed(urls.c.source_id) == 1)

    assert "WHERE +urls.source_id = " in str(query.compile(dialect=sqlite.dialect()))
    assert "WHERE urls.source_id = " in str(query.compile(dialect=postgresql.dialect()))


def test_removals_when_sqlite_plans_then_only_those_are_looked_at(sqlite_store: Database) -> None:
    with plans(sqlite_store) as steps, sqlite_store.read_once() as transaction:
        removal_table.find_candidates(transaction, SOURCE, before=Before(1, 0), after=1)
        removal_table.find_new_copies(transaction, SOURCE, before=Before(1, 0))
        removal_table.find_under_way(transaction, SOURCE)
        removal_table.find_without_receipt(transaction, SOURCE, 1)
        removal_table.list_waiting(transaction, SOURCE, after=1)
        removal_table.count_recent(transaction, SOURCE, since_ms=NOW_MS)

    by_id = "(source_id=? AND url_id>?)"
    assert [step for step in steps if step.startswith(("SCAN", "SEARCH documents", "SEARCH batches", "USE TEMP"))] == [
        f"SEARCH documents USING INDEX ix_documents_leaving {by_id}",
        f"SEARCH documents USING INDEX ix_documents_surplus {by_id}",
        f"SEARCH documents USING INDEX ix_documents_surplus {by_id}",
        "SEARCH batches USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH documents USING INDEX ix_documents_pending (source_id=? AND state=?)",
        "USE TEMP B-TREE FOR DISTINCT",
        "SEARCH documents USING INDEX ix_documents_batch_id (batch_id=? AND rowid>?)",
        f"SEARCH documents USING INDEX ix_documents_quarantined {by_id}",
        "SEARCH batches USING INDEX ix_batches_removals (source_id=?)",
    ]


def test_copies_when_sqlite_plans_then_those_of_a_content_and_near_copies_have_an_index_each(
    sqlite_store: Database,
) -> None:
    with plans(sqlite_store) as steps, sqlite_store.read_once() as transaction:
        DuplicateKeys(transaction, SOURCE).find_survivors([b"one", b"two"])
        duplicate_key_table.find_near(transaction, SOURCE, limit=10)
        duplicate_key_table.find_signed(transaction, SOURCE, after=0)

    assert [re.sub(" COVERING", "", step) for step in steps if "documents" in step] == [
        "SEARCH documents USING INDEX ix_documents_copies (source_id=? AND copy_digest=?)",
        "SEARCH documents USING INDEX ix_documents_near (source_id=? AND near_digest=?)",
        "SEARCH documents USING INDEX ix_documents_near (source_id=? AND near_digest>?)",
        "SEARCH documents USING INDEX ix_documents_signed (source_id=? AND url_id>?)",
    ]


def test_shared_copies_when_sqlite_plans_then_only_copies_and_documents_of_the_same_text_are_looked_at(
    sqlite_store: Database,
) -> None:
    with plans(sqlite_store) as steps, sqlite_store.read_once() as transaction:
        shared_copy_table.load_foreign(transaction, SOURCE, after=0)
        shared_copy_table.find_shared(transaction, SOURCE, [SOURCE + 1, SOURCE + 2], after=b"")

    assert [
        step
        for step in steps
        if step.startswith(("SCAN documents", "SCAN other", "SEARCH documents", "SEARCH other ", "USE TEMP"))
    ] == [
        "SEARCH documents USING INDEX ix_documents_copies_of (source_id=? AND url_id>?)",
        "SEARCH other USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
        "SEARCH documents USING INDEX ix_documents_copies (source_id=? AND copy_digest>?)",
        "SEARCH other USING INDEX ix_documents_copies (source_id=? AND copy_digest=?)",
    ]


def test_sample_when_sqlite_plans_then_no_table_is_read_as_a_whole(sqlite_store: Database) -> None:
    with plans(sqlite_store) as steps, sqlite_store.read_once() as transaction:
        comparison_table.sample(transaction, SOURCE)
        comparison_table.sample_removed(transaction, SOURCE)
        comparison_table.knows_version(transaction, SOURCE, 5)

    assert {step for step in steps if step.startswith("SEARCH urls")} >= {
        "SEARCH urls USING INDEX sqlite_autoindex_urls_1 (source_id=? AND key>?)"
    }
    assert [
        step for step in steps if step.startswith(("SCAN urls", "SCAN documents", "SCAN batches", "SCAN runs"))
    ] == []
