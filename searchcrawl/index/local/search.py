"""Answers queries from the embedded index: hits in their order, snippets, facets.

The library sorts only by fields of its schema, and leaves documents with equal values in any order. So if many
documents share a value, it is first asked for the values of the found documents in order, and then for the documents of
each value, until there are enough. This takes two requests, and one more for each value that is needed.

As in Solr, the first of several values in the order asked for counts, the id decides between equal ones, and documents
without a value come last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson
import tantivy
from tantivy import Occur

from searchcrawl.index.forms import CJK_RUN
from searchcrawl.index.local.near_fields import NearFields
from searchcrawl.index.local.query import QueryBuilder, find_column, find_sort_field, format_facet_value, has_ties
from searchcrawl.index.local.snippet import build_hit_pattern, cut_snippet
from searchcrawl.index.query import parse, positive_terms
from searchcrawl.index.receiver import Hit, SearchAnswer, SearchQuery
from searchcrawl.index.snippets import has_mark, leave_out_title
from searchcrawl.index.stems import find_beginnings
from searchcrawl.index_fields import find_analysed

#: The most values that the library counts at once.
_MAX_VALUES: Final = 60_000
_MAX_FACET_VALUES: Final = 100
_SPELLED_FIELDS: Final = ("title", "content")
#: One of the first letters of a misspelled word is that of the right one, which is so much shorter or longer at most.
_SPELLED_LETTERS: Final = 2
_MOST_SPELLED: Final = 10_000


def search(searcher: tantivy.Searcher | None, queries: QueryBuilder, query: SearchQuery) -> SearchAnswer:
    """Answers a query; ``searcher`` is None where there is no index yet.

    Raises UnsupportedByIndex for a field that cannot be a filter, a facet or an order.
    """
    order_by = find_sort_field(query.sort)
    columns = {name: find_column(name) for name in query.facets}
    if searcher is None:
        return SearchAnswer(total=0, facets={name: {} for name in columns})
    languages = find_languages(searcher)
    wanted = queries.build(query, languages)
    total, found = _find(searcher, queries, wanted, query, order_by)
    facets = {name: _count_values(searcher, wanted, name, path) for name, path in columns.items()}
    return SearchAnswer(total=total, hits=_read_hits(searcher, queries, found, query, languages), facets=facets)


def find_languages(searcher: tantivy.Searcher) -> list[str]:
    """The languages of LANGUAGES that documents of the index have."""
    return sorted(find_analysed(str(tag) for tag, _ in searcher.terms_with_prefix("languages", "")))


def find_spellings(searcher: tantivy.Searcher, word: str) -> list[str]:
    """The words of texts that are as long as this one, and begin as it does; the most frequent ones of very many."""
    found = {
        term
        for field in _SPELLED_FIELDS
        for letter in dict.fromkeys(word[:_SPELLED_LETTERS])
        for term, _ in searcher.terms_with_prefix(field, letter, limit=_MOST_SPELLED)
    }
    return sorted(term for term in found if abs(len(term) - len(word)) <= _SPELLED_LETTERS)


def count_documents(searcher: tantivy.Searcher, wanted: tantivy.Query) -> int:
    """How many documents a query finds."""
    return _read_count(searcher.search(wanted, limit=1))


def count_by_source(searcher: tantivy.Searcher, wanted: tantivy.Query) -> dict[str, int]:
    """How many of the documents that a query finds each source has; of 60,000 sources at most."""
    if not searcher.num_docs:
        return {}
    buckets = _count_by_value(searcher, wanted, find_column("source"), _MAX_VALUES)
    return {str(bucket["key"]): int(bucket["doc_count"]) for bucket in buckets}


def find_by_id(
    searcher: tantivy.Searcher, wanted: tantivy.Query, *, limit: int, offset: int = 0
) -> list[tuple[str, tantivy.DocAddress]]:
    """Id and address of found documents, by rising id."""
    found = searcher.search(
        wanted, limit=limit, offset=offset, count=False, order_by_field="id", order=tantivy.Order.Asc
    ).hits
    return [(str(document_id), address) for document_id, address in found]


def read_fields(searcher: tantivy.Searcher, address: tantivy.DocAddress) -> dict[str, Any]:
    """The fields of a document as they were delivered."""
    fields: dict[str, Any] = orjson.loads(searcher.doc(address)["stored"][0])
    return fields


def _find(
    searcher: tantivy.Searcher, queries: QueryBuilder, wanted: tantivy.Query, query: SearchQuery, order_by: str | None
) -> tuple[int, list[tuple[float, tantivy.DocAddress]]]:
    """The number of documents, with score (0 if they are sorted) and address of the requested ones."""
    skips_all = query.rows < 1 or query.start >= searcher.num_docs
    descending = (query.sort or "").startswith("-")
    if order_by is not None and has_ties(order_by):
        if skips_all:
            return count_documents(searcher, wanted), []
        end = min(query.start + query.rows, searcher.num_docs)
        found = _sort_by_values(searcher, queries, wanted, order_by, descending=descending, limit=end)
        return count_documents(searcher, wanted), [(0.0, address) for address in found[query.start :]]
    result = searcher.search(
        wanted,
        limit=1 if skips_all else min(query.rows, searcher.num_docs),
        offset=0 if skips_all else query.start,
        order_by_field=None if order_by is None else find_column(order_by),
        order=tantivy.Order.Desc if order_by is None or descending else tantivy.Order.Asc,
    )
    hits = [] if skips_all else result.hits
    return _read_count(result), [(float(key) if order_by is None else 0.0, address) for key, address in hits]


def _sort_by_values(
    searcher: tantivy.Searcher,
    queries: QueryBuilder,
    wanted: tantivy.Query,
    field: str,
    *,
    descending: bool,
    limit: int,
) -> list[tantivy.DocAddress]:
    """The first documents that ``wanted`` finds, by the values of ``field``."""
    found: dict[tuple[int, int], tantivy.DocAddress] = {}

    def add(query: tantivy.Query, occur: Occur) -> None:
        both = tantivy.Query.boolean_query([(Occur.Must, wanted), (occur, query)])
        for _, address in find_by_id(searcher, both, limit=limit):
            found.setdefault((address.segment_ord, address.doc), address)

    path = find_column(field)
    for value in _read_values(searcher, wanted, path, descending=descending, first=limit):
        if len(found) >= limit:
            break
        add(queries.with_value(field, value), Occur.Must)
    if len(found) < limit:
        add(tantivy.Query.exists_query(path), Occur.MustNot)
    return list(found.values())[:limit]


def _read_values(
    searcher: tantivy.Searcher, wanted: tantivy.Query, path: str, *, descending: bool, first: int
) -> Iterator[Any]:
    """The values of the found documents in order: ``first`` of them at once, then more as they are needed."""
    size = max(first, 1)
    done = 0
    while True:
        size = min(size, _MAX_VALUES)
        buckets = _count_by_value(searcher, wanted, path, size, order={"_key": "desc" if descending else "asc"})
        for bucket in buckets[done:]:
            yield bucket["key"]
        if len(buckets) < size or size == _MAX_VALUES:
            return
        done = len(buckets)
        size *= 4


def _count_by_value(
    searcher: tantivy.Searcher, wanted: tantivy.Query, path: str, size: int, **more: Any
) -> list[dict[str, Any]]:
    """The values of a column among the found documents, with how many documents have each."""
    terms = {"field": path, "size": size, "segment_size": size, **more}
    buckets: list[dict[str, Any]] = searcher.aggregate(wanted, {"values": {"terms": terms}})["values"]["buckets"]
    return buckets


def _count_values(searcher: tantivy.Searcher, wanted: tantivy.Query, name: str, path: str) -> dict[str, int]:
    """The most frequent values of a field, and how many of the found documents have each."""
    # All values are read: which of many equally frequent ones are shown is decided here, as Solr does.
    buckets = _count_by_value(searcher, wanted, path, _MAX_VALUES)
    frequent = sorted(buckets, key=lambda bucket: (-bucket["doc_count"], bucket["key"]))[:_MAX_FACET_VALUES]
    return {format_facet_value(name, bucket): int(bucket["doc_count"]) for bucket in frequent}


def _read_hits(
    searcher: tantivy.Searcher,
    queries: QueryBuilder,
    found: list[tuple[float, tantivy.DocAddress]],
    query: SearchQuery,
    languages: Sequence[str],
) -> list[Hit]:
    pattern = build_hit_pattern(
        positive_terms(parse(query.words, query.attributes)),
        is_stop_word=lambda word: not queries.tokens(word),
        cjk=CJK_RUN,
        find_beginnings=lambda word: find_beginnings(word, languages),
    )
    hits = []
    for score, address in found:
        document = searcher.doc(address)
        if not query.has_snippets:
            hits.append(Hit(id=document["id"][0], score=score, snippet="", fields=NearFields(document["stored"][0])))
            continue
        fields = orjson.loads(document["stored"][0])
        text = str(fields.pop("content", "") or fields.get("description", ""))
        snippet = _cut(text, str(fields.get("title", "")), pattern)
        hits.append(Hit(id=document["id"][0], score=score, snippet=snippet, fields=fields))
    return hits


def _cut(text: str, title: str, pattern: re.Pattern[str] | None) -> str:
    has_hit = pattern.search if pattern is not None else has_mark
    return cut_snippet(leave_out_title(text, title, has_hit=has_hit), pattern)


def _read_count(result: tantivy.SearchResult) -> int:
    return int(result.count)  # type: ignore[attr-defined]  # tantivy's stub leaves it out
