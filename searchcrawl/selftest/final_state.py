"""What a crawl came to, in a form that can be compared: rows, index and cache, without times and numbers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import orjson

from searchcrawl.cache.opening import use_cache
from searchcrawl.cache.segment import Place
from searchcrawl.exceptions import CacheError, DamagedRecord, UnsupportedByIndex
from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchIndex, SearchQuery
from searchcrawl.selftest.stored import Select
from searchcrawl.sources.project import Project
from searchcrawl.store.states import PENDING, DocumentState, FetchState

_ROWS: Final = """
    SELECT urls.url, urls.fetch_state, urls.code, urls.depth, urls.rule, urls.redirects,
           documents.indexed_version IS NOT NULL AS in_index, documents.state AS document_state,
           survivor.url AS copy_of, listing.url AS sitemap, urls.lastmod_ms,
           CASE WHEN documents.answered_key IS NULL THEN 0 ELSE 1 END AS from_another_url,
           (SELECT sum(length(targets)) FROM unfollowed_links WHERE url_id = urls.id) AS unfollowed_bytes
    FROM urls LEFT JOIN documents ON documents.url_id = urls.id
    LEFT JOIN urls AS survivor ON survivor.id = documents.duplicate_of
    LEFT JOIN sitemaps AS listing ON listing.id = urls.sitemap_id
"""
_RECORDS: Final = """
    SELECT urls.url, documents.segment, documents.record_offset, documents.response_bytes, documents.fields_bytes
    FROM documents JOIN urls ON urls.id = documents.url_id WHERE documents.segment IS NOT NULL
"""
_RUNS: Final = "SELECT id, ended_ms, counts FROM runs ORDER BY id"
_OF_A_MOMENT: Final = ("crawled_at", "first_seen", "crawl_version", "source", "id")
#: So many documents of a source are compared field by field.
_MOST: Final = 1000
#: Of a value that differs.
_SHOWN: Final = 100
#: A removal that waits for a person is at its place.
_UNDER_WAY: Final = PENDING - {DocumentState.QUARANTINED.value}
#: How a document that is in the index twice, and one that no search finds, are described.
_TWICE: Final = "in the index twice"
_NOT_FOUND: Final = "not found by any search"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalState:
    """By URL: the rows of the table, the stored fields of documents with their checksum, the digests of pages in the cache.

    ``broken`` says, a line each, what must not be, whatever else was expected.
    """

    rows: Mapping[str, Mapping[str, Any]]
    index: Mapping[str, Mapping[str, Any]]
    cache: Mapping[str, str]
    broken: tuple[str, ...] = ()


def read_state(project: Project, source: str, select: Select) -> FinalState:
    """The state of a project with one source."""
    rows = {row.pop("url"): {**row, "in_index": bool(row["in_index"])} for row in select(_ROWS)}
    index, odd = _read_index(project, source)
    cache, damaged = _read_cache(project, source, select)
    return FinalState(rows=rows, index=index, cache=cache, broken=(*odd, *damaged))


def _read_index(project: Project, source: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    with closing(_open(project)) as index:
        scanned = list(index.scan(source))
        found = index.search(SearchQuery(words="*", source=source, rows=_MOST)).hits
    times = Counter(entry.url for entry in scanned)
    odd = [f"document {url}: {_TWICE}" for url, number in times.items() if number > 1]
    stored = {hit.id: hit.fields for hit in found}
    odd += [f"document {entry.url}: {_NOT_FOUND}" for entry in scanned if entry.id not in stored]
    odd += [f"document {id_}: found, and not in the index" for id_ in stored.keys() - {entry.id for entry in scanned}]
    documents = {entry.url: {"checksum": entry.checksum, **stored.get(entry.id, {})} for entry in scanned}
    return {
        url: {name: value for name, value in fields.items() if name not in _OF_A_MOMENT}
        for url, fields in documents.items()
    }, odd


def _open(project: Project) -> SearchIndex:
    index = open_index(project)
    if not isinstance(index, SearchIndex):
        raise UnsupportedByIndex(f"{type(index).__name__} cannot list its documents")
    return index


def _read_cache(project: Project, source: str, select: Select) -> tuple[dict[str, str], list[str]]:
    """The digest of each page that a row names a record of, and the records that cannot be read."""
    digests, damaged = {}, []
    with use_cache(project, source) as cache:
        for row in select(_RECORDS):
            place = Place(row["segment"], row["record_offset"], row["response_bytes"], row["fields_bytes"])
            try:
                page = cache.read_page(place, url=row["url"])
            except (CacheError, DamagedRecord) as error:
                damaged.append(f"record of {row['url']}: {error}")
            else:
                digests[row["url"]] = hashlib.sha256(page.body).hexdigest()
    return digests, damaged


def differences(expected: FinalState, found: FinalState, *, with_cache: bool = True) -> list[str]:
    """A line for each value of a row, document or record that differs."""
    lines = _differ("row", expected.rows, found.rows) + _differ("document", expected.index, found.index)
    if with_cache:
        records = [{url: {"digest": digest} for url, digest in each.cache.items()} for each in (expected, found)]
        lines += _differ("record", *records)
    return lines


def _differ(what: str, expected: Mapping[str, Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = []
    for url in sorted(expected.keys() | found.keys()):
        before, after = expected.get(url), found.get(url)
        if before is None or after is None:
            lines.append(f"{what} {url}: {'not expected' if before is None else 'missing'}")
            continue
        lines += [
            f"{what} {url}: {name} {_show(before.get(name))} expected, {_show(after.get(name))} found"
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        ]
    return lines


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def inconsistencies(state: FinalState) -> list[str]:
    """What must hold of any finished run: all rows settled, the index has what the rows say once, nothing on its way."""
    present = {url for url, row in state.rows.items() if row["in_index"]}
    lines = [f"not settled: {url}" for url, row in state.rows.items() if row["fetch_state"] != FetchState.SETTLED]
    lines += [f"on its way: {url}" for url, row in state.rows.items() if row["document_state"] in _UNDER_WAY]
    lines += [f"in rows or index only: {url}" for url in sorted(present ^ set(state.index))]
    return [*lines, *state.broken]


def fetching(select: Select) -> set[str]:
    """URLs of rows that a process has in hand, or had when it died."""
    return {row["url"] for row in select(f"SELECT url FROM urls WHERE fetch_state = {int(FetchState.FETCHING)}")}  # noqa: S608  # a number


def ended_runs(select: Select) -> int:
    """How many runs have ended."""
    return sum(run["ended_ms"] is not None for run in select(_RUNS))


def last_counts(select: Select) -> dict[str, int]:
    """The counts of the latest run; none before the first one."""
    runs = select(_RUNS)
    counts: dict[str, int] = orjson.loads(runs[-1]["counts"]) if runs else {}
    return counts
