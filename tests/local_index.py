"""Documents, batches and short queries for tests of the embedded index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import Batch, SearchQuery
from searchcrawl.items import IndexedDocument, Removal


def document(name: str, content: str = "", **fields: Any) -> IndexedDocument:
    return IndexedDocument(
        id=f"demo:{name}",
        fields={"url": f"http://a.example/{name}", "title": f"Page {name}", "content": content, **fields},
    )


def removal(name: str) -> Removal:
    return Removal(id=f"demo:{name}", url=f"http://a.example/{name}", code=404)


def batch(version: int, *documents: IndexedDocument, removals: Sequence[Removal] = (), source: str = "demo") -> Batch:
    return Batch(number=version, source=source, crawl_version=version, documents=documents, removals=removals)


def found(receiver: LocalReceiver, words: str, **asked: Any) -> list[str]:
    return [hit.id.removeprefix("demo:") for hit in receiver.search(SearchQuery(words=words, **asked)).hits]


def named(receiver: LocalReceiver, words: str, **asked: Any) -> set[str]:
    return set(found(receiver, words, **asked))
