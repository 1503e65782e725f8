"""Documents and batches for a real Solr, and what it says about them."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

import orjson
import pytest

from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.receiver import Batch, SearchQuery
from searchcrawl.index.solr.receiver import SolrReceiver
from searchcrawl.items import IndexedDocument, Removal

T = TypeVar("T")


def document(name: str, **fields: Any) -> IndexedDocument:
    return IndexedDocument(id=name, fields={"source": "site", "url": f"http://example.com/{name}", **fields})


def batch(*documents: IndexedDocument, version: int = 1, removed: tuple[str, ...] = ()) -> Batch:
    removals = [Removal(id=name, url=f"http://example.com/{name}", code=404) for name in removed]
    return Batch(number=version, source="site", crawl_version=version, documents=documents, removals=removals)


def put(receiver: SolrReceiver, *documents: IndexedDocument) -> None:
    assert all(receipt.accepted for receipt in receiver.deliver(batch(*documents)))
    receiver.commit()


def found(receiver: SolrReceiver, words: str, **asked: Any) -> set[str]:
    return {hit.id for hit in receiver.search(SearchQuery(words=words, rows=1000, **asked)).hits}


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
