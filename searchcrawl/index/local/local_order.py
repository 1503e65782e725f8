"""Documents of the embedded index in the order of a field that some of them have the same value of.

The library sorts by fields of the schema only, and equal ones as they happen to lie. So the values that the found documents have are asked
for in their order, and the documents of each value, until there are enough: two questions and one a
value, of which no more are needed than documents are wanted. As in Solr, several values of a document
count by the first in the order asked for, equal ones by the id, and documents without a value come last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import tantivy
from tantivy import Occur

#: The library counts no more values at once.
MAX_VALUES: Final = 60_000


def in_order(
    searcher: tantivy.Searcher,
    wanted: tantivy.Query,
    path: str,
    term: Callable[[Any], tantivy.Query],
    *,
    descending: bool,
    wanted_documents: int,
) -> list[tantivy.DocAddress]:
    """The first documents that ``wanted`` finds, by the values of ``path``; ``term`` is the query of one value."""
    found: dict[tuple[int, int], tantivy.DocAddress] = {}

    def add(query: tantivy.Query, occur: Occur) -> None:
        both = tantivy.Query.boolean_query([(Occur.Must, wanted), (occur, query)])
        hits = searcher.search(
            both, limit=wanted_documents, count=False, order_by_field="id", order=tantivy.Order.Asc
        ).hits
        for _, address in hits:
            found.setdefault((address.segment_ord, address.doc), address)

    for value in _values(searcher, wanted, path, descending=descending, first=wanted_documents):
        if len(found) >= wanted_documents:
            break
        add(term(value), Occur.Must)
    if len(found) < wanted_documents:
        add(tantivy.Query.exists_query(path), Occur.MustNot)
    return list(found.values())[:wanted_documents]


def _values(
    searcher: tantivy.Searcher, wanted: tantivy.Query, path: str, *, descending: bool, first: int
) -> Iterator[Any]:
    """The values of the found documents in order; more are asked for while there are more."""
    size = max(first, 1)
    given = 0
    while True:
        size = min(size, MAX_VALUES)
        terms = {
            "field": path,
            "size": size,
            "segment_size": size,
            "order": {"_key": "desc" if descending else "asc"},
        }
        buckets = searcher.aggregate(wanted, {"values": {"terms": terms}})["values"]["buckets"]
        for bucket in buckets[given:]:
            yield bucket["key"]
        if len(buckets) < size or size == MAX_VALUES:
            return
        given = len(buckets)
        size *= 4
