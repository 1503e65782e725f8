"""What a query costs beside its words: whether the index has lost documents is looked at for all sources together."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import event
from sqlalchemy.engine import Engine

from searchcrawl.index.receiver import SearchQuery
from searchcrawl.queries.search import ask
from tests.filled_store import FilledStore

SOURCES: Final = [f"source{number}" for number in range(8)]


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements of all databases meanwhile."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def fill(folder: Path, store_url: str) -> FilledStore:
    for name in SOURCES:
        store = FilledStore(folder, store_url, name)
        store.fetch(*(f"/{name}/{number}" for number in range(30)))
        store.send()
        store.commit()
        store.end()
        store.close()
    return store


def test_search_when_there_are_many_sources_then_the_look_at_the_index_costs_little_for_each(
    tmp_path: Path, store_url: str
) -> None:
    store = fill(tmp_path, store_url)

    with counted() as of_all:
        found = ask(store.project, SearchQuery(words="*"))
    with counted() as of_one:
        ask(store.project, SearchQuery(words="*", source=SOURCES[0]))

    assert (found["total"], found["notes"]) == (30 * len(SOURCES), [])
    assert len(of_all) < 3 * len(of_one)


def test_search_when_the_index_has_lost_all_sources_then_each_is_named(tmp_path: Path, store_url: str) -> None:
    store = fill(tmp_path, store_url)
    shutil.rmtree(store.project.index_dir)

    notes = ask(store.project, SearchQuery(words="*"))["notes"]

    assert [name for name in SOURCES if any(f"searchcrawl resend {name}" in note for note in notes)] == SOURCES
