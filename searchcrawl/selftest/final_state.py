"""What a crawl came to, in a form that can be compared: rows, index and cache, without times and numbers; its counters.

An SQLite store is read past the code under test: by the driver alone, and without a write.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from searchcrawl.bodies import digest_body
from searchcrawl.cache.opening import use_cache
from searchcrawl.codes import Code, CodeClass, facts_of
from searchcrawl.exceptions import CacheError, DamagedRecord, UnsupportedByIndex
from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchIndex, SearchQuery
from searchcrawl.items import Place
from searchcrawl.sources.project import Project
from searchcrawl.store.states import PENDING, DocumentState, FetchState

#: Gives the rows of a query by the names of their columns; none while the store has no tables.
Select = Callable[[str], list[dict[str, Any]]]

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
#: Counters that make up the number of all URLs.
_PARTS: Final = ("to_fetch", "fetched", "fetch_failures", "rejected")
#: What the counters of the last run are compared with.
_LAST_RUN: Final = "SELECT id, source_id, horizon_ms, ended_ms, counts FROM runs ORDER BY id DESC LIMIT 1"
_COUNTED_ROWS: Final = "SELECT source_id, fetch_state, due_ms, code, redirects, failed_runs, run_id FROM urls"
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
    index = open_index(project)
    if not isinstance(index, SearchIndex):
        raise UnsupportedByIndex(f"{type(index).__name__} cannot list its documents")
    with closing(index):
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
                digests[row["url"]] = digest_body(page.body).hexdigest()
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


def find_wrong_sums(counts: Mapping[str, int]) -> list[str]:
    """What does not add up in the counters of a run."""
    parts = {name: counts[name] for name in _PARTS}
    wrong = [f"{name} is {number}" for name, number in parts.items() if number < 0]
    if counts["discovered"] != sum(parts.values()):
        wrong.append(f"discovered is {counts['discovered']}, not the sum of {parts}")
    return wrong


def find_wrong_counters(select: Select) -> list[str]:
    """What is wrong with the counters of the last run of any source, after ``kill -9`` as well.

    Those of a run that goes on are compared with the table; rows may have changed since another one ended.
    """
    found = select(_LAST_RUN)
    if not found:
        return []
    (run,) = found
    counts = orjson.loads(run["counts"])
    if not counts:
        # Killed while the run was begun.
        return []
    wrong = find_wrong_sums(counts)
    if counts.get("miscounted"):
        wrong.append(f"the run says itself that {counts['miscounted']} URLs are counted wrongly")
    if run["ended_ms"] is None:
        rows = [row for row in select(_COUNTED_ROWS) if row["source_id"] == run["source_id"]]
        there = Counter(name for row in rows if (name := _find_class(row, run["id"], run["horizon_ms"])))
        wrong += [
            f"{name} is {counts[name]}, the table has {there[name]}" for name in _PARTS if counts[name] != there[name]
        ]
    return wrong


def _find_class(row: Mapping[str, Any], run_id: int, horizon_ms: int) -> str | None:
    is_due = row["due_ms"] is not None and row["due_ms"] <= horizon_ms
    if row["fetch_state"] != FetchState.SETTLED or is_due:
        return "to_fetch"
    if row["run_id"] != run_id:
        return None
    if row["failed_runs"] or row["code"] == Code.SET_ASIDE:
        return "fetch_failures"
    refused = facts_of(row["code"]).kind is CodeClass.REFUSAL
    return "rejected" if refused and row["redirects"] is None else "fetched"


def select_from_file(path: Path, statement: str) -> list[dict[str, Any]]:
    """Rows of an SQLite file; none where there is no file, or no table yet."""
    names, rows = read_file(path, statement)
    return [dict(zip(names, row, strict=True)) for row in rows]


def read_file(path: Path, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The same as the names of the columns, and the rows."""
    if not path.exists():
        return [], []
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as store:
        try:
            found = store.execute("SELECT 1 FROM sqlite_master WHERE name = 'urls'").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
            # It was cut off before it had a log: the next one to write takes back what there is.
            found = None
        if not found:
            return [], []
        cursor = store.execute(statement)
        return [column[0] for column in cursor.description], cursor.fetchall()
