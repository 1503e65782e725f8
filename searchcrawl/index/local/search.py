"""Answers queries from the embedded index: hits in their order, snippets, facets.

The library sorts only by fields of its schema, and leaves documents with equal values in any order. So if many
documents share a value, it is first asked for the values of the found documents in order, and then for the documents of
each value, until there are enough. This takes two requests, and one more for each value that is needed.

As in Solr, the first of several values in the order asked for counts, the id decides between equal ones, and documents
without a value come last.

A snippet is the passage of a text that best shows why it was found. For near copies a few fields of each document are read:
reading all of it, with its text, takes ten times as long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson
import tantivy
from tantivy import Occur

from searchcrawl.access import COUNT_MARK, PATH_FIELD, AccessTerms, build_prefix, build_terms, read_count
from searchcrawl.index.characters import CJK_RUN, POINTED, POINTS, UNACCENTED
from searchcrawl.index.forms import find_beginnings, fold, most_added
from searchcrawl.index.local.query import (
    MOST_CLAUSES,
    QueryBuilder,
    find_column,
    find_sort_field,
    format_facet_value,
    has_ties,
)
from searchcrawl.index.query import Term, parse, positive_terms
from searchcrawl.index.receiver import SearchAnswer, SearchHit, SearchQuery
from searchcrawl.index.snippets import cut_around, has_mark, leave_out_title
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
    languages = sorted(find_analysed(str(tag) for tag, _ in searcher.terms_with_prefix("languages", "")))
    access = None if query.principals is None else _find_access(searcher, query.principals)
    wanted = queries.build(query, languages, access)
    total, found = _find(searcher, queries, wanted, query, order_by)
    facets = {name: _count_values(searcher, wanted, name, path) for name, path in columns.items()}
    return SearchAnswer(total=total, hits=_read_hits(searcher, queries, found, query, languages), facets=facets)


def _find_access(searcher: tantivy.Searcher, principals: Collection[str]) -> AccessTerms:
    """What somebody with these principals may see."""
    counts = {str(term): documents for term, documents in searcher.terms_with_prefix(PATH_FIELD, COUNT_MARK)}

    def find_few(number: int) -> list[str] | None:
        # One document with many levels would make each search ask for all principals so often.
        having = sum(documents for term, documents in counts.items() if read_count(term) >= number)
        if having >= len(principals):
            return None
        return [str(term) for term, _ in searcher.terms_with_prefix(PATH_FIELD, build_prefix(number))]

    return build_terms(principals, counts, find_few)


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

    def add(within: tantivy.Query, query: tantivy.Query, occur: Occur) -> None:
        both = tantivy.Query.boolean_query([(Occur.Must, within), (occur, query)])
        for _, address in find_by_id(searcher, both, limit=limit):
            found.setdefault((address.segment_ord, address.doc), address)

    path = find_column(field)
    values = _read_values(searcher, wanted, path, descending=descending, first=limit)
    for group in _group(values, most=min(limit, MOST_CLAUSES)):
        if len(found) >= limit:
            break
        having = [queries.with_value(field, bucket["key"]) for bucket in group]
        within = wanted
        if len(having) > 1:
            # What is wanted may take long to find: it is looked for once, and its values among what was found.
            any_of_them = tantivy.Query.boolean_query([(Occur.Should, query) for query in having])
            both = tantivy.Query.boolean_query([(Occur.Must, wanted), (Occur.Must, any_of_them)])
            within = queries.with_ids([each for each, _ in find_by_id(searcher, both, limit=MOST_CLAUSES)])
        for query in having:
            add(within, query, Occur.Must)
    if len(found) < limit:
        add(wanted, tantivy.Query.exists_query(path), Occur.MustNot)
    return list(found.values())[:limit]


def _group(buckets: Iterable[dict[str, Any]], *, most: int) -> Iterator[list[dict[str, Any]]]:
    """Values that follow each other and have ``most`` documents together, or one value alone."""
    group: list[dict[str, Any]] = []
    documents = 0
    for bucket in buckets:
        documents += int(bucket["doc_count"])
        if group and documents > most:
            yield group
            group, documents = [], int(bucket["doc_count"])
        group.append(bucket)
    if group:
        yield group


def _read_values(
    searcher: tantivy.Searcher, wanted: tantivy.Query, path: str, *, descending: bool, first: int
) -> Iterator[dict[str, Any]]:
    """The values of the found documents in order: ``first`` of them at once, then more as they are needed."""
    size = max(first, 1)
    done = 0
    while True:
        size = min(size, _MAX_VALUES)
        buckets = _count_by_value(searcher, wanted, path, size, order={"_key": "desc" if descending else "asc"})
        yield from buckets[done:]
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
) -> list[SearchHit]:
    pattern = build_hit_pattern(
        positive_terms(parse(query.words, query.attributes)),
        is_stop_word=lambda word: not queries.tokens(word),
        find_beginnings=lambda word: find_beginnings(word, languages),
    )
    hits = []
    for score, address in found:
        document = searcher.doc(address)
        if not query.has_snippets:
            hits.append(
                SearchHit(id=document["id"][0], score=score, snippet="", fields=NearFields(document["stored"][0]))
            )
            continue
        fields = orjson.loads(document["stored"][0])
        text = str(fields.pop("content", "") or fields.get("description", ""))
        has_hit = pattern.search if pattern is not None else has_mark
        snippet = cut_snippet(leave_out_title(text, str(fields.get("title", "")), has_hit=has_hit), pattern)
        hits.append(SearchHit(id=document["id"][0], score=score, snippet=snippet, fields=fields))
    return hits


def _read_count(result: tantivy.SearchResult) -> int:
    return int(result.count)  # type: ignore[attr-defined]  # tantivy's stub leaves it out


#: Their values are plain: neither a name of a source nor a signature has a quotation mark or a backslash.
_PLAIN: Final = {name: f'"{name}":"'.encode() for name in ("source", "text_signature")}


class NearFields(Mapping[str, Any]):
    """The fields of a document as they were stored, in JSON; it is read as a whole when another field is asked for."""

    def __init__(self, stored: bytes) -> None:
        self._stored = stored

    def __getitem__(self, name: str) -> Any:
        if (key := _PLAIN.get(name)) is None:
            return self._fields[name]
        # Within a text each quotation mark has a backslash before it, so this is the key.
        at = self._stored.find(key)
        if at < 0:
            raise KeyError(name)
        start = at + len(key)
        return self._stored[start : self._stored.index(b'"', start)].decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    @cached_property
    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = orjson.loads(self._stored)
        return fields


#: Each letter with its forms that have accents.
_ACCENTED: Final = {
    base: "".join(letter for letter in map(chr, range(0xC0, 0x250)) if fold(letter) == base) + base
    for base in "abcdefghijklmnopqrstuvwxyz"
} | {
    base: "".join(letter for letter, other in UNACCENTED.items() if other == base) + base
    for base in set(UNACCENTED.values())
}
_MAX_SEARCHED_CHARS: Final = 500_000
_MAX_HITS: Final = 500
#: How far a full-width letter is from the plain one.
_FULL_WIDTH: Final = 0xFEE0
#: No letter is before the first one of a word, which was read already, and none is after the last one.
_BEGINS: Final = r"(?<![^\W_].)"
_ENDS: Final = r"(?![^\W_])"
#: Among the letters of Arabic and Hebrew: a word may have points between them, and none are before its first one.
_MAY_HAVE_POINTS: Final = rf"[{POINTS}]*+"
_HAS_NO_POINT: Final = rf"(?<![{POINTS}].)"
#: The marks of Thai are no letters for a regular expression.
_WORD: Final = re.compile(r"(?:[^\W_]|[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])+")


class _Piece(NamedTuple):
    """What is looked for: a set with the forms of its first letter, and a pattern of what is around it.

    So the library can look for the first letters of all pieces at once, which takes a tenth of the time.
    """

    first: str
    rest: str


def build_hit_pattern(
    terms: Iterable[Term],
    *,
    is_stop_word: Callable[[str], bool],
    find_beginnings: Callable[[str], Iterable[str]] = lambda _: (),
) -> re.Pattern[str] | None:
    """A pattern that finds the terms in a text: phrases as a whole, then words. None without words.

    What begins or ends with a character of CJK matches there also within a longer word. ``find_beginnings`` gives
    the beginnings of a word's forms; accents make no difference.
    """
    phrases: list[_Piece] = []
    words: list[_Piece] = []
    forms: list[_Piece] = []
    for term in terms:
        found = _WORD.findall(term.text)
        if len(found) > 1:
            first, *others = map(_whole, found)
            phrases.append(
                _Piece(first.first, "".join([first.rest, *(rf"[\W_]+{first}{rest}" for first, rest in others)]))
            )
        if term.prefix and found:
            forms.append(_begin(found.pop(), r"[^\W_]*"))
        words += [_whole(word) for word in found if not is_stop_word(word)]
        if not term.phrase and not term.prefix:
            forms += [_form(beginning) for beginning in find_beginnings(term.text)]
    if not words and not forms:
        return None
    pieces = dict.fromkeys([*phrases, *sorted(words, key=lambda piece: len(piece.rest), reverse=True), *forms])
    firsts = "".join(piece.first[1:-1] for piece in pieces)
    branches = "|".join(f"(?<={first}){rest}" for first, rest in pieces)
    return re.compile(f"[{firsts}](?:{branches})")


def cut_snippet(text: str, pattern: re.Pattern[str] | None) -> str:
    """About 240 characters of plain text with the hits between HIT_START and HIT_END, and … where text was left out.

    Without a hit it is the beginning of the text.
    """
    hits = islice(pattern.finditer(text[:_MAX_SEARCHED_CHARS]), _MAX_HITS) if pattern else ()
    return cut_around(text, [match.span() for match in hits])


def _whole(word: str) -> _Piece:
    return _begin(word, "" if CJK_RUN.match(word[-1]) else _ENDS, is_inside=bool(CJK_RUN.match(word[0])))


def _form(beginning: str) -> _Piece:
    if CJK_RUN.match(beginning):
        return _begin(beginning, "", is_inside=True)
    return _begin(beginning, rf"[^\W_]{{0,{most_added(beginning)}}}{_ENDS}")


def _begin(word: str, rest: str, *, is_inside: bool = False) -> _Piece:
    first, *others = map(_read_letter, word)
    between, before = (_MAY_HAVE_POINTS, _HAS_NO_POINT) if POINTED.search(word) else ("", "")
    begins = "" if is_inside else f"{_BEGINS}{before}"
    return _Piece(first, f"{begins}{''.join(f'{between}{letter}' for letter in others)}{between}{rest}")


@cache
def _read_letter(letter: str) -> str:
    """A set of the letter, with and without accents, small and capital, also in full width."""
    base = UNACCENTED.get(letter) or UNACCENTED.get(fold(letter)) or fold(letter)
    forms = {letter, *_ACCENTED.get(base, base), base}
    forms |= {chr(ord(each) + _FULL_WIDTH) for each in forms if each.isascii()}
    forms |= {other for each in forms for other in (each.lower(), each.upper()) if len(other) == 1}
    return f"[{''.join(map(re.escape, sorted(forms)))}]"
