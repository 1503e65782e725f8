"""Documents and batches for tests of both indexes, and what an index says about them."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson
import pytest

from searchcrawl.delivery.documents import build_indexed_document
from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.receiver import Batch, SearchIndex, SearchQuery
from searchcrawl.items import IndexedDocument, Removal
from searchcrawl.store.batch_table import BatchDocument

T = TypeVar("T")


def document(name: str, **fields: Any) -> IndexedDocument:
    return IndexedDocument(id=name, fields={"source": "site", "url": f"http://example.com/{name}", **fields})


def page(number: int, *, anchors: Sequence[str] = (), **record: Any) -> IndexedDocument:
    """A document as a delivery makes it of the record of a page."""
    row = BatchDocument(
        url_id=number,
        url=f"http://site.test/{number}",
        depth=0,
        segment=1,
        record_offset=0,
        response_bytes=0,
        fields_bytes=0,
        fields_digest=bytes(32),
        mimetype="text/html",
        content_length=1,
        last_modified=None,
        first_seen_ms=0,
        last_fetched_ms=0,
    )
    return build_indexed_document(row, record, source="site", duplicates=(), anchors=anchors)


def batch(*documents: IndexedDocument, version: int = 1, removed: tuple[str, ...] = (), source: str = "site") -> Batch:
    removals = [Removal(id=name, url=f"http://example.com/{name}", code=404) for name in removed]
    return Batch(number=version, source=source, crawl_version=version, documents=documents, removals=removals)


def put(index: SearchIndex, *documents: IndexedDocument, version: int = 1, source: str = "site") -> None:
    assert all(receipt.accepted for receipt in index.deliver(batch(*documents, version=version, source=source)))
    index.commit()


def listed(index: SearchIndex, words: str, **asked: Any) -> list[str]:
    return [hit.id for hit in index.search(SearchQuery(words=words, **{"rows": 1000, **asked})).hits]


def found(index: SearchIndex, words: str, **asked: Any) -> set[str]:
    return set(listed(index, words, **asked))


def when_up(call: Callable[[], T]) -> T:
    """What ``call`` gives once Solr has read its log back, asked again as a delivery does."""
    for _ in range(300):
        try:
            return call()
        except IndexUnavailable as error:
            if error.retry_after_seconds != 1:
                raise
            time.sleep(0.1)
    pytest.fail("Solr did not come back")


def answer(url: str, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/{path}", timeout=10) as response:
        return dict(orjson.loads(response.read()))
