"""What a crawl came to, in a form that can be compared: rows and index, without times and numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.sources.loading import load_project
from tests.stored_rows import query

_ROWS: Final = """
    SELECT urls.url, urls.fetch_state, urls.code, urls.depth, urls.rule, documents.indexed_version IS NOT NULL,
           documents.state, survivor.url, listing.url, urls.lastmod_ms
    FROM urls LEFT JOIN documents ON documents.url_id = urls.id
    LEFT JOIN urls AS survivor ON survivor.id = documents.duplicate_of
    LEFT JOIN sitemaps AS listing ON listing.id = urls.sitemap_id
"""
_OF_A_MOMENT: Final = ("crawled_at", "first_seen", "crawl_version", "source", "id")


@dataclass(frozen=True)
class FinalState:
    """Rows by URL: fetch state, code, depth, rule, in index, document state, copy of, sitemap and lastmod; and the index by URL."""

    rows: Mapping[str, tuple[Any, ...]]
    index: Mapping[str, Mapping[str, Any]]


def read_state(folder: Path, source: str) -> FinalState:
    """The state of a project with one source."""
    rows = {row[0]: row[1:] for row in query(folder, _ROWS)}
    return FinalState(rows, read_index(folder, source))


def read_index(folder: Path, source: str) -> dict[str, dict[str, Any]]:
    """The documents of a source by URL: their stored fields and their checksum."""
    index = open_index(load_project(folder))
    try:
        scanned = list(index.scan(source))
        found = index.search(SearchQuery(words="*", source=source, rows=1000)).hits
    finally:
        index.close()
    assert len({entry.url for entry in scanned}) == len(scanned), "a URL is in the index twice"
    stored = {hit.id: hit.fields for hit in found}
    # A document that is not found, or found without a scan, is a difference too.
    documents = {entry.url: {"checksum": entry.checksum, **stored.pop(entry.id, {"found": False})} for entry in scanned}
    documents.update({key: {"scanned": False} for key in stored})
    return {
        url: {name: value for name, value in fields.items() if name not in _OF_A_MOMENT}
        for url, fields in documents.items()
    }


def differences(expected: FinalState, found: FinalState) -> list[str]:
    """A line for each row and document that differs."""
    return [
        f"{what} {key}: {before.get(key)} expected, {after.get(key)} found"
        for what, before, after in (
            ("row", expected.rows, found.rows),
            ("document", expected.index, found.index),
        )
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def inconsistencies(state: FinalState) -> list[str]:
    """What must hold of any finished run: all rows settled, the index has what the rows say, nothing on its way."""
    present = {url for url, row in state.rows.items() if row[4]}
    lines = [f"not settled: {url}" for url, row in state.rows.items() if row[0] != 2]
    lines += [f"on its way: {url}" for url, row in state.rows.items() if row[5] in (1, 2, 5)]
    return lines + [f"in rows or index only: {url}" for url in sorted(present ^ set(state.index))]


def fetching(folder: Path) -> set[str]:
    """URLs of rows that a process has in hand, or had when it died."""
    return {row[0] for row in query(folder, "SELECT url FROM urls WHERE fetch_state = 1")}


def settled(folder: Path) -> set[str]:
    """URLs of rows whose visit is over."""
    return {row[0] for row in query(folder, "SELECT url FROM urls WHERE fetch_state = 2")}


def ended_runs(folder: Path) -> int:
    """How many runs have ended, by the store."""
    rows = query(folder, "SELECT count(*) FROM runs WHERE ended_ms IS NOT NULL")
    return int(rows[0][0]) if rows else 0


def last_counts(folder: Path) -> dict[str, int]:
    """The counts of the latest run."""
    counts: dict[str, int] = json.loads(query(folder, "SELECT counts FROM runs ORDER BY id DESC LIMIT 1")[0][0])
    return counts
