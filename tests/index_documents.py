"""Documents and batches for tests of both indexes, and what an index says about them."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

import orjson
import pytest

from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.receiver import Batch, SearchIndex, SearchQuery
from searchcrawl.items import IndexedDocument, Removal

T = TypeVar("T")


def document(name: str, **fields: Any) -> IndexedDocument:
    return IndexedDocument(id=name, fields={"source": "site", "url": f"http://example.com/{name}", **fields})


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
