"""One word from two axes."""

from __future__ import annotations

from typing import Any, Final

import pytest

from searchcrawl.store.states import DocumentState, FetchState
from searchcrawl.store.urls.url_queries import ListedUrl
from searchcrawl.store.urls.url_state import UrlState, derive_url_state

#: The redirects of a page that was requested.
LED: Final = '[{"url":"http://a.example/","code":302}]'


def row(**values: Any) -> ListedUrl:
    defaults: dict[str, Any] = dict.fromkeys(ListedUrl.__slots__)
    return ListedUrl(
        **{
            **defaults,
            "url_id": 1,
            "url": "http://a.example/",
            "depth": 1,
            "first_seen_ms": 1,
            "fetch_state": FetchState.SETTLED,
            "last_fetched_ms": 2,
            **values,
        }
    )


def document(state: DocumentState, *, code: int = 200, **values: Any) -> ListedUrl:
    return row(**{"code": code, "document_state": state, "document_code": 200, **values})


@pytest.mark.parametrize(
    ("listed", "state"),
    [
        (row(code=0, fetch_state=FetchState.TODO), "todo"),
        (row(code=503, fetch_state=FetchState.TODO), "todo"),
        (document(DocumentState.PRESENT, fetch_state=FetchState.FETCHING), "fetching"),
        (document(DocumentState.CACHED), "cached"),
        (document(DocumentState.SENDING), "sending"),
        (document(DocumentState.PRESENT, indexed_version=1), "indexed"),
        (document(DocumentState.WITHHELD, code=909, document_code=909), "duplicate"),
        (document(DocumentState.WITHHELD, index_error="no such field"), "failed"),
        (row(code=964), "duplicate"),
        (document(DocumentState.NONE, code=911, document_code=911), "excluded"),
        (document(DocumentState.NONE, code=952, document_code=952), "excluded"),
        (document(DocumentState.PRESENT, code=911, indexed_version=1), "excluded"),
        (row(code=953), "excluded"),
        (row(code=954, rule="scope.include_hosts: no include matches"), "excluded"),
        (row(code=955, rule="scope.include_hosts: no include matches", last_fetched_ms=None), "rejected"),
        (row(code=1004, rule="scope.max_url_length: max_url_length = 2048", last_fetched_ms=None), "rejected"),
        (row(code=951, rule="Disallow: /tmp/", last_fetched_ms=None), "rejected"),
        (row(code=955, rule="scope.exclude_urls: */a", redirects=LED), "excluded"),
        (row(code=951, rule="Disallow: /tmp/", redirects=LED), "excluded"),
        (row(code=951, rule="robots.unavailable"), "failed"),
        (row(code=404), "failed"),
        (row(code=908), "failed"),
        (row(code=902, last_fetched_ms=None), "failed"),
        (document(DocumentState.PRESENT, code=503, indexed_version=1), "failed"),
        (document(DocumentState.CACHED, code=503), "failed"),
        (document(DocumentState.NONE, code=503), "failed"),
        # A document that leaves is gone once its removal is decided.
        (document(DocumentState.REMOVING, code=404, indexed_version=1), "gone"),
        (document(DocumentState.NONE, code=404), "gone"),
        (document(DocumentState.NONE, code=955, rule="scope.exclude_urls: */a", last_fetched_ms=5), "gone"),
        (document(DocumentState.NONE, code=951, rule="Disallow: /"), "gone"),
        (document(DocumentState.NONE, code=954), "gone"),
        (document(DocumentState.NONE, code=403), "failed"),
        (document(DocumentState.QUARANTINED, code=404, indexed_version=1), "failed"),
        (document(DocumentState.QUARANTINED, code=952, document_code=952, indexed_version=1), "excluded"),
        (document(DocumentState.QUARANTINED, code=951, rule="Disallow: /", indexed_version=1), "rejected"),
    ],
)
def test_derive_url_state_when_both_axes_are_known_then_one_word(listed: ListedUrl, state: str) -> None:
    assert derive_url_state(listed, (404, 410)) == UrlState(state)


def test_derive_url_state_when_a_status_does_not_remove_then_the_missing_document_failed() -> None:
    listed = document(DocumentState.NONE, code=410)

    assert derive_url_state(listed, (404,)) == UrlState.FAILED
    assert derive_url_state(listed, (404, 410)) == UrlState.GONE
