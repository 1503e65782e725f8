"""The URL table as ``urls`` shows it: an object for each row, with one word for the state of its URL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from searchcrawl import clock, urls
from searchcrawl.codes import Code
from searchcrawl.items import CANONICAL_ETAG
from searchcrawl.rules.recrawl import UNTIL_LISTED_MS
from searchcrawl.rules.rewriting import DisplayMap
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_display_map
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_queries
from searchcrawl.store.urls.url_queries import ListedUrl, RowFilter
from searchcrawl.store.urls.url_state import UrlState, derive_url_state


def list_urls(
    database: Database,
    source: Source,
    *,
    state: UrlState | None = None,
    code: int | None = None,
    rule: str | None = None,
    host: str | None = None,
    since_ms: int | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows of a source as ``urls --json`` prints them, by rising row id, in constant memory; raises StoreError.

    ``rule`` is the rule, its key, or both as ``KEY: RULE``; ``host`` is a host with or without port, ``since_ms`` the
    earliest last visit (first discovery, where it was never visited).
    """

    def find(transaction: Transaction) -> tuple[int | None, list[int] | None]:
        host_ids = None if host is None else url_queries.find_host_ids(transaction, host.lower())
        return run_table.find_source(transaction, source.name), host_ids

    source_id, host_ids = database.read(find)
    if source_id is None:
        return
    row_filter = RowFilter(code=code, rule=rule, host_ids=host_ids, since_ms=since_ms)
    display = build_display_map(source)
    for row in url_queries.list_urls(database, source_id, row_filter):
        found = derive_url_state(row, source.lifecycle.remove_on)
        if state in {None, found}:
            yield _build_object(row, source.name, found, display)


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
        "next_due": None if row.due_ms == UNTIL_LISTED_MS else clock.iso(row.due_ms),
        "etag": None if row.etag == CANONICAL_ETAG else row.etag,
        "last_modified": None if modified is None else clock.iso(clock.to_ms(modified)),
        "checksum": row.fields_digest.hex() if row.fields_digest else None,
        "duplicate_of": other if other is None or display is None else display.show(other, row.duplicate_display),
        "document_id": None if row.document_state is None else urls.document_id(source, row.url),
        "batch": row.batch_id,
        "redirects": [] if row.redirects is None else orjson.loads(row.redirects),
        "error": f"its display URL is that of {row.duplicate_of}" if clash else row.error or row.index_error,
    }
