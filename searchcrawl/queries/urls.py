"""The URL table as ``urls`` shows it: an object for each row, with one word for the state of its URL."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from searchcrawl import clock, urls
from searchcrawl.codes import WITH_DOCUMENT, Code, CodeClass, facts_of, is_refusal
from searchcrawl.rules.display import DisplayMap
from searchcrawl.rules.lifecycle import is_evidence
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_display_map
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.states import DocumentState, FetchState
from searchcrawl.store.urls import url_queries
from searchcrawl.store.urls.url_queries import ListedUrl, RowFilter


class UrlState(StrEnum):
    """The state of a URL, drawn from both axes of its row."""

    #: to be fetched
    TODO = "todo"
    #: handed out to the running process
    FETCHING = "fetching"
    #: fetched, and in no delivery yet
    CACHED = "cached"
    #: in a delivery without a receipt
    SENDING = "sending"
    #: the index acknowledged it as it is
    INDEXED = "indexed"
    #: fetched, but not to be indexed: empty, noindex, moved, led to what a rule refuses
    EXCLUDED = "excluded"
    #: a rule refused it, without a request
    REJECTED = "rejected"
    #: another URL has the same content, or is the canonical one
    DUPLICATE = "duplicate"
    #: the last fetch failed, or the index refuses the document; the known document may still be in the index
    FAILED = "failed"
    #: was a document; its removal is under way or done
    GONE = "gone"


#: The state of a row whose last visit was answered, by the class of its code.
_STATE_BY_CLASS: Final = {
    CodeClass.COPY: UrlState.DUPLICATE,
    CodeClass.EXCLUDED: UrlState.EXCLUDED,
    CodeClass.DISPLAY: UrlState.EXCLUDED,
    CodeClass.REDIRECT: UrlState.EXCLUDED,
}
#: The state of a row with 200.
_STATE_BY_DOCUMENT: Final = {
    DocumentState.NONE: UrlState.GONE,
    DocumentState.CACHED: UrlState.CACHED,
    DocumentState.SENDING: UrlState.SENDING,
    DocumentState.PRESENT: UrlState.INDEXED,
    DocumentState.WITHHELD: UrlState.DUPLICATE,
    DocumentState.QUARANTINED: UrlState.INDEXED,
    DocumentState.RECORD_LOST: UrlState.TODO,
}


#: Codes of documents that were known before they were removed.
_WAS_DOCUMENT: Final = WITH_DOCUMENT - {Code.DISPLAY_URL_CLASH}


def derive_url_state(row: ListedUrl, remove_on: Collection[int]) -> UrlState:
    """The state of a row; ``remove_on`` are the statuses that remove a document of the source."""
    if row.fetch_state != FetchState.SETTLED:
        return UrlState.TODO if row.fetch_state in {FetchState.TODO, FetchState.SUSPECT} else UrlState.FETCHING
    if row.document_state == DocumentState.REMOVING or _was_removed(row, remove_on):
        return UrlState.GONE
    by_class = _STATE_BY_CLASS.get(facts_of(row.code).kind)
    if by_class is not None:
        return by_class
    if row.rule is not None and is_refusal(row.code, row.rule):
        # A page that led to a URL which a rule refuses was requested itself.
        return UrlState.REJECTED if row.redirects is None else UrlState.EXCLUDED
    if row.code != 200 or row.document_state is None:
        return UrlState.FAILED
    if row.document_state == DocumentState.WITHHELD and row.index_error is not None:
        return UrlState.FAILED
    return _STATE_BY_DOCUMENT[row.document_state]


def _was_removed(row: ListedUrl, remove_on: Collection[int]) -> bool:
    known = row.document_state == DocumentState.NONE and row.document_code in _WAS_DOCUMENT
    return known and row.indexed_version is None and is_evidence(row.code, row.rule, remove_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFilter:
    """Which rows are listed; None lists all. ``rule`` is the rule, its key, or both as ``KEY: RULE``.

    ``host`` is a host with or without port, ``since_ms`` the earliest last visit (first discovery, where it was
    never visited).
    """

    state: UrlState | None = None
    code: int | None = None
    rule: str | None = None
    host: str | None = None
    since_ms: int | None = None


def list_urls(database: Database, source: Source, wanted: UrlFilter) -> Iterator[dict[str, Any]]:
    """The rows of a source as ``urls --json`` prints them, by rising row id, in constant memory; raises StoreError."""

    def find(transaction: Transaction) -> tuple[int | None, list[int] | None]:
        host_ids = None if wanted.host is None else url_queries.find_host_ids(transaction, wanted.host.lower())
        return run_table.find_source(transaction, source.name), host_ids

    source_id, host_ids = database.read(find)
    if source_id is None:
        return
    row_filter = RowFilter(code=wanted.code, rule=wanted.rule, host_ids=host_ids, since_ms=wanted.since_ms)
    display = build_display_map(source)
    for row in url_queries.list_urls(database, source_id, row_filter):
        state = derive_url_state(row, source.lifecycle.remove_on)
        if wanted.state in {None, state}:
            yield _build_object(row, source.name, state, display)


def _build_object(row: ListedUrl, source: str, state: UrlState, display: DisplayMap | None) -> dict[str, Any]:
    clash = row.code == Code.DISPLAY_URL_CLASH
    other = None if clash else row.duplicate_of
    modified = clock.from_http_date(row.last_modified)
    return {
        "url": row.url if display is None else display.show(row.url, row.display_url),
        "access_url": row.url,
        "state": state.value,
        "in_index": row.indexed_version is not None,
        "code": row.code,
        "rule": row.rule,
        "depth": row.depth,
        "referrer": row.referrer,
        # An identity has no default port and no user info, and always a path: no parser is needed.
        "host": row.url.split("/", 3)[2],
        "first_seen": clock.iso(row.first_seen_ms),
        "last_fetched": clock.iso(row.last_fetched_ms),
        "last_changed": clock.iso(row.last_changed_ms),
        "next_due": clock.iso(row.due_ms),
        "etag": row.etag,
        "last_modified": None if modified is None else clock.iso(clock.to_ms(modified)),
        "checksum": row.fields_digest.hex() if row.fields_digest else None,
        "duplicate_of": other if other is None or display is None else display.show(other, row.duplicate_display),
        "document_id": None if row.document_state is None else urls.document_id(source, row.url),
        "batch": row.batch_id,
        "redirects": [] if row.redirects is None else orjson.loads(row.redirects),
        "error": f"its display URL is that of {row.duplicate_of}" if clash else row.error or row.index_error,
    }
