"""Pages of joined tables cost the same wherever they begin: PostgreSQL reads no table from its beginning for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import event

from searchcrawl.store.documents import anchor_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import deletion, run_table
from searchcrawl.store.runs.deletion import Over
from searchcrawl.store.urls import orphan_table, url_queries

ROWS: Final = 30_000
#: The longest page has so many rows, and so much is read at most for it.
_PAGE: Final = 5000
_SERIES: Final = f"FROM generate_series(1, {ROWS}) g"
_FILL: Final = {
    "urls (id, source_id, key, url, host_id, depth, fetch_state, first_seen_ms, code)": (
        "g, 1, g, 'http://a.test/' || g, 1, 1, 2, 0, 955"
    ),
    "documents (url_id, source_id, state, code, indexed_version)": "g, 1, 3, 200, 1",
    "outlinks (url_id, links)": "g, decode(repeat('01', 200), 'hex')",
}


@pytest.fixture(scope="module")
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    server = request.getfixturevalue("postgres")
    url = server.create_database("pages_of_joins")
    with closing(Database(url, tmp_path_factory.mktemp("store") / Path())) as database:
        with database.write_once() as transaction:
            run_table.find_or_add_source(transaction, "demo")
            for table, values in _FILL.items():
                transaction.exec_driver_sql(f"INSERT INTO {table} SELECT {values} {_SERIES}")
            transaction.exec_driver_sql("ANALYZE")
        yield database
    server.drop_database("pages_of_joins")


def most_read(database: Database, work: Callable[[Database], object]) -> int:
    """The most rows that any step of the last query of ``work`` has read or thrown away."""
    seen: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if statement.startswith("SELECT"):
            seen.append((statement, parameters))

    engine = database._engine
    event.listen(engine, "before_cursor_execute", note)
    work(database)
    event.remove(engine, "before_cursor_execute", note)
    statement, parameters = seen[-1]
    with database.read_once() as transaction:
        plan = transaction.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters).scalar_one()
    return max(_rows(plan if isinstance(plan, list) else json.loads(plan)))


def _rows(node: Any) -> Iterator[int]:
    if isinstance(node, list):
        for one in node:
            yield from _rows(one)
    elif isinstance(node, dict):
        loops = node.get("Actual Loops", 1)
        yield (node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0)) * loops
        for value in node.values():
            if isinstance(value, list | dict):
                yield from _rows(value)


OVER: Final = Over(source_id=1, before_ms=1, remove_on=[404], kept_run=1)


@pytest.mark.parametrize(
    "work",
    [
        lambda database: database.read(partial(orphan_table.load_links, source_id=1, after=ROWS - _PAGE)),
        lambda database: database.read(partial(orphan_table.load_rows, source_id=1, after=ROWS - _PAGE)),
        lambda database: database.read(partial(deletion.find_over, over=OVER, after=ROWS - _PAGE)),
        lambda database: list(url_queries.list_indexed(database, 1)),
        lambda database: database.read(partial(anchor_table.load_pages, source_id=1, after=ROWS - _PAGE)),
    ],
    ids=["links", "rows", "over", "indexed", "anchors"],
)
def test_page_when_it_begins_near_the_end_then_what_is_before_is_not_read(
    filled: Database, work: Callable[[Database], object]
) -> None:
    assert most_read(filled, work) <= _PAGE + 1
