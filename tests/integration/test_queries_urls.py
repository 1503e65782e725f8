"""The URL table as users see it, from a real store."""

from __future__ import annotations

import hashlib
from typing import Any

from searchcrawl import clock, urls
from searchcrawl.queries.urls import list_urls
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.documents import duplicate_key_table
from searchcrawl.store.states import DocumentState, FetchState
from searchcrawl.store.urls.url_state import UrlState
from tests.filled_store import SITE, FilledStore


def paths(filled: FilledStore, **wanted: Any) -> list[str]:
    return [row["url"].removeprefix(SITE) for row in filled.rows(**wanted)]


def test_list_urls_when_each_kind_is_there_then_every_state_is_found(filled: FilledStore) -> None:
    filled.fetch("/indexed", "/failed", "/gone", "/held", "/removing")
    filled.send()
    filled.settle("/failed", 503, error="503 Service Unavailable")
    filled.hold_back("/held")
    with filled.database.write_once() as transaction:
        ids = [filled.ids["/gone"]]
        removal_table.seal(transaction, filled.run.source_id, filled.run.id, clock.now_ms(), ids, counted=True)
        removal_table.note_removed(transaction, ids)
        ids = [filled.ids["/removing"]]
        removal_table.seal(transaction, filled.run.source_id, filled.run.id, clock.now_ms(), ids, counted=True)
    filled.settle("/gone", 404)
    filled.fetch("/sent")
    filled.database.write(batch_table.seal_documents, filled.run.source_id, filled.run.id, clock.now_ms())
    filled.fetch("/cached")
    filled.fetch("/noindex", code=952)
    filled.admit("/todo", "/fetching")
    filled.settle("/fetching", 0, state=FetchState.FETCHING)
    filled.admit("/outside", code=955, rule="scope.include_hosts: no include matches")

    found = {row["url"].removeprefix(SITE): (row["state"], row["in_index"]) for row in filled.rows()}

    assert found == {
        "/indexed": ("indexed", True),
        "/failed": ("failed", True),
        "/gone": ("gone", False),
        "/held": ("failed", True),
        "/removing": ("gone", True),
        "/sent": ("sending", False),
        "/cached": ("cached", False),
        "/noindex": ("excluded", False),
        "/todo": ("todo", False),
        "/fetching": ("fetching", False),
        "/outside": ("rejected", False),
    }


def test_list_urls_when_a_document_is_indexed_then_all_its_fields_are_shown(filled: FilledStore) -> None:
    filled.fetch("/")
    filled.admit("/page", referrer="/")
    filled.fetch("/page")
    filled.settle("/page", 200, redirects='[{"url":"http://www.acme.test:8000/page","code":302}]')
    filled.send()

    row = filled.rows()[1]

    assert row.pop("first_seen") <= row.pop("last_fetched")
    assert row == {
        "url": f"{SITE}/page",
        "access_url": f"{SITE}/page",
        "state": "indexed",
        "in_index": True,
        "code": 200,
        "rule": None,
        "depth": 1,
        "referrer": f"{SITE}/",
        "host": "www.acme.test:8000",
        "last_changed": "1970-01-01T00:00:00.001Z",
        "next_due": "1970-01-01T00:00:00.001Z",
        "etag": None,
        "last_modified": "2024-01-01T00:00:00.000Z",
        "checksum": hashlib.sha256(b"/page").hexdigest(),
        "duplicate_of": None,
        "document_id": urls.document_id("demo", f"{SITE}/page"),
        "batch": 1,
        "redirects": [{"url": f"{SITE}/page", "code": 302}],
        "error": None,
    }


def test_list_urls_when_the_index_refuses_a_document_then_it_failed_with_that_reason(filled: FilledStore) -> None:
    filled.fetch("/page")
    with filled.database.write_once() as transaction:
        batch = batch_table.seal_documents(transaction, filled.run.source_id, filled.run.id, clock.now_ms())
        assert batch is not None
        batch_table.note_refused(transaction, batch, [(filled.ids["/page"], "unknown field 'x'")])

    [row] = filled.rows()

    assert (row["state"], row["in_index"], row["error"]) == ("failed", False, "unknown field 'x'")


def test_list_urls_when_a_copy_is_known_then_its_survivor_is_named(filled: FilledStore) -> None:
    filled.fetch("/first", "/second")
    filled.database.write(
        duplicate_key_table.set_results, [(filled.ids["/second"], 909, filled.ids["/first"], DocumentState.WITHHELD)]
    )
    filled.settle("/second", 909)

    row = filled.rows()[1]

    assert (row["state"], row["duplicate_of"]) == ("duplicate", f"{SITE}/first")


def test_list_urls_when_filtered_then_only_those_wanted(filled: FilledStore) -> None:
    filled.admit("/a", code=955, rule="scope.exclude_urls: */a")
    filled.admit("/b", code=955, rule="scope.exclude_hosts: acme_test")
    filled.admit("/d", code=951, rule="Disallow: /d")
    filled.admit("/c")
    filled.settle("/c", 404)

    assert paths(filled, code=404) == ["/c"]
    assert paths(filled, state=UrlState.REJECTED) == ["/a", "/b", "/d"]
    assert paths(filled, rule="scope.exclude_urls") == ["/a"]
    assert paths(filled, rule="*/a") == ["/a"]
    assert paths(filled, rule="scope.exclude_hosts: acme_test") == ["/b"]
    assert paths(filled, rule="scope.exclude_hosts: acmeXtest") == []
    assert paths(filled, rule="robots.txt") == paths(filled, rule="Disallow: /d") == ["/d"]
    assert paths(filled, host="www.acme.test") == ["/a", "/b", "/d", "/c"]
    assert paths(filled, host="WWW.acme.test:8000") == ["/a", "/b", "/d", "/c"]
    assert paths(filled, host="www.acme.test:80") == []
    assert paths(filled, host="acme.test") == []
    assert paths(filled, since_ms=clock.now_ms() + 60_000) == []
    assert paths(filled, since_ms=clock.now_ms() - 60_000, code=404) == ["/c"]


def test_list_urls_when_there_are_several_pages_of_rows_then_each_comes_once(filled: FilledStore) -> None:
    wanted = [f"/{number}" for number in range(2500)]
    filled.admit(*wanted)

    assert paths(filled) == wanted


def test_list_urls_when_the_source_never_ran_then_there_are_none(filled: FilledStore) -> None:
    never = filled.source.model_copy(update={"name": "never"})

    assert list(list_urls(filled.database, never)) == []
