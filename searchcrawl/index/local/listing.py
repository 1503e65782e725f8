"""Every document of the embedded index by rising id, in bounded memory and linear time (L4).

The library sorts all that a query finds for each page of it. So the ids of a source, which end in a hash, are taken by
their first hexadecimal digits, some thousands at a time. Other ids are few, if any.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from typing import Any, Final

import tantivy
from tantivy import Occur

from searchcrawl.index.local.query import QueryBuilder
from searchcrawl.index.local.search import count_by_source, count_documents, find_by_id, read_fields

Listed = tuple[str, dict[str, Any]]

_PAGE_DOCUMENTS: Final = 5000
_DIGITS: Final = "0123456789abcdef"
#: The hash at the end of an id.
_HASH_DIGITS: Final = 32
#: The name of a source; what others wrote into the index may have another value there.
_NAME: Final = re.compile(r"[a-z0-9_-]{1,100}")


def list_documents(searcher: tantivy.Searcher, queries: QueryBuilder, source: str) -> Iterator[Listed]:
    """Id and stored fields of the documents of a source, without tombstones."""
    wanted = queries.documents(source)
    others = tantivy.Query.boolean_query([(Occur.Must, wanted), (Occur.MustNot, queries.with_hashes(source, ""))])
    hashed = _list_hashed(searcher, queries, wanted, source, "", count_documents(searcher, wanted))
    yield from heapq.merge(hashed, _list_in_pages(searcher, others), key=lambda listed: listed[0])


def list_all_documents(searcher: tantivy.Searcher, queries: QueryBuilder) -> Iterator[Listed]:
    """Id and stored fields of the documents of all sources, without tombstones."""
    everything = queries.documents(None)
    counts = {name: count for name, count in count_by_source(searcher, everything).items() if _NAME.fullmatch(name)}
    # The ids of a source begin with its name and a colon, which no name has.
    names = sorted(counts, key=lambda name: f"{name}:")
    hashed = (
        listed
        for name in names
        for listed in _list_hashed(searcher, queries, queries.documents(name), name, "", counts[name])
    )
    # Of each source, because a document of another one may have an id like these.
    of_sources = [_both(queries.documents(name), queries.with_hashes(name, "")) for name in names]
    others = tantivy.Query.boolean_query([(Occur.Must, everything), *((Occur.MustNot, each) for each in of_sources)])
    yield from heapq.merge(hashed, _list_in_pages(searcher, others), key=lambda listed: listed[0])


def _list_in_pages(searcher: tantivy.Searcher, wanted: tantivy.Query) -> Iterator[Listed]:
    """Id and stored fields of what a query finds; each page costs as much as all that it finds."""
    for offset in range(0, searcher.num_docs, _PAGE_DOCUMENTS):
        page = find_by_id(searcher, wanted, limit=_PAGE_DOCUMENTS, offset=offset)
        for document_id, address in page:
            yield document_id, read_fields(searcher, address)
        if len(page) < _PAGE_DOCUMENTS:
            return


def _list_hashed(
    searcher: tantivy.Searcher, queries: QueryBuilder, wanted: tantivy.Query, source: str, digits: str, expected: int
) -> Iterator[Listed]:
    """The documents whose hashes begin with ``digits``, about ``expected`` of them."""
    if expected <= _PAGE_DOCUMENTS or len(digits) == _HASH_DIGITS:
        here = _both(wanted, queries.with_hashes(source, digits))
        found = searcher.search(here, limit=2 * _PAGE_DOCUMENTS, count=False).hits
        if len(found) < 2 * _PAGE_DOCUMENTS or len(digits) == _HASH_DIGITS:
            listed = [(str(searcher.doc(address)["id"][0]), address) for _, address in found]
            for document_id, address in sorted(listed, key=lambda each: each[0]):
                yield document_id, read_fields(searcher, address)
            return
    for digit in _DIGITS:
        yield from _list_hashed(searcher, queries, wanted, source, digits + digit, expected // len(_DIGITS))


def _both(one: tantivy.Query, other: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.boolean_query([(Occur.Must, one), (Occur.Must, other)])
