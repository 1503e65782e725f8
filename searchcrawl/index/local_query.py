"""Turns queries, filters and sort orders into those of the embedded index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import tantivy
from tantivy import Occur

from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index import local_schema
from searchcrawl.index.query import AllOf, AnyOf, Everything, Query, Term, parse
from searchcrawl.index.receiver import SearchQuery

_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


class QueryBuilder:
    """Builds tantivy queries for one schema."""

    def __init__(self, schema: tantivy.Schema) -> None:
        self._schema = schema
        self._analyzer = local_schema.analyzer()

    def query(self, asked: SearchQuery) -> tantivy.Query:
        """What ``asked`` finds: its words, within its filters, without tombstones."""
        words = self._clause(parse(asked.words))
        if words is None:
            return tantivy.Query.empty_query()
        parts = [(Occur.Must, words), *((Occur.Must, _unscored(each)) for each in self._filters(asked))]
        return tantivy.Query.boolean_query([*parts, (Occur.MustNot, self._term("tombstone", True))])

    def living(self, source: str | None) -> tantivy.Query:
        """Every document of a source (None: of all), without tombstones."""
        wanted = tantivy.Query.all_query() if source is None else self._term("source", source)
        return tantivy.Query.boolean_query([(Occur.Must, wanted), (Occur.MustNot, self._term("tombstone", True))])

    def tombstones(self) -> tantivy.Query:
        """Every tombstone."""
        return self._term("tombstone", True)

    def ids(self, ids: Sequence[str]) -> tantivy.Query:
        """The documents and tombstones with these ids."""
        return tantivy.Query.term_set_query(self._schema, "id", ids)

    def _clause(self, node: Query) -> tantivy.Query | None:
        """The query of a node, or None where analysis leaves nothing of it."""
        match node:
            case Everything():
                return _unscored(tantivy.Query.all_query())
            case Term():
                return self._words(node)
            case AnyOf(clauses=clauses):
                kept = [query for clause in clauses if (query := self._clause(clause)) is not None]
                return tantivy.Query.boolean_query([(Occur.Should, query) for query in kept]) if kept else None
            case AllOf(required=required, excluded=excluded):
                wanted = [query for clause in required if (query := self._clause(clause)) is not None]
                refused = [query for term in excluded if (query := self._words(term)) is not None]
                if not wanted:
                    return None
                return tantivy.Query.boolean_query(
                    [*((Occur.Must, query) for query in wanted), *((Occur.MustNot, query) for query in refused)]
                )
            case _:
                return None

    def _words(self, term: Term) -> tantivy.Query | None:
        if term.field == "source":
            return self._term("source", term.text)
        tokens = tokens_of(self._analyzer, term.text)
        if not tokens:
            return None
        if term.field is not None:
            return self._tokens(local_schema.WORDS.get(term.field, term.field), tokens)
        each = [
            tantivy.Query.boost_query(self._tokens(name, tokens), weight) for name, weight in local_schema.TEXTS.items()
        ]
        return tantivy.Query.disjunction_max_query(each, tie_breaker=0.1)

    def _tokens(self, field: str, tokens: Sequence[tuple[int, str]]) -> tantivy.Query:
        if len(tokens) == 1:
            return tantivy.Query.term_query(self._schema, field, tokens[0][1])
        return tantivy.Query.phrase_query(self._schema, field, list(tokens))

    def _filters(self, asked: SearchQuery) -> Iterator[tantivy.Query]:
        if asked.source is not None:
            yield self._term("source", asked.source)
        if asked.groups:
            yield _any_of([self._term("groups", group) for group in asked.groups])
        for name, value in asked.filters:
            yield self._filter(name, value)

    def _filter(self, name: str, value: str) -> tantivy.Query:
        if name in local_schema.DATES:
            moment = local_schema.moment(value)
            return tantivy.Query.empty_query() if moment is None else self._term(name, moment)
        if name in local_schema.NUMBERS:
            return self._term(name, int(value)) if _INTEGER.fullmatch(value) else tantivy.Query.empty_query()
        if (field := whole_field(name)) is not None:
            return self._term(field, value)
        return _any_of([self._term(path, found) for path, found in _attribute_values(name, value)])

    def _term(self, field: str, value: Any) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, field, value)


def tokens_of(analyzer: tantivy.TextAnalyzer, text: str) -> list[tuple[int, str]]:
    """Position and text of each word that analysis leaves, from position 0 on."""
    found = analyzer.pre_tokenize(local_schema.spaced(text)).tokens
    return [(token.position - found[0].position, token.text) for token in found]


def whole_field(name: str) -> str | None:
    """The field with the whole values of the field ``name``, None where it is an attribute or unknown.

    UnsupportedByIndex for a text that is only kept as words.
    """
    if name in local_schema.TEXTS and name not in local_schema.EXACT:
        raise UnsupportedByIndex(f"{name!r} cannot be a filter, a facet or an order")
    if name in {"id", *local_schema.NAMES}:
        return name
    return local_schema.EXACT.get(name)


def sort_field(sort: str | None) -> str | None:
    """The field that orders as asked, None where the score does; UnsupportedByIndex where there is none."""
    if sort is None or sort in {"score", "-score"}:
        return None
    name = sort.removeprefix("-")
    if name in {*local_schema.DATES, *local_schema.NUMBERS}:
        return name
    field = whole_field(name)
    if field is None:
        raise UnsupportedByIndex(f"the local index cannot sort by {name!r}")
    return field


def facet_paths(name: str) -> list[str]:
    """The columns whose values are those of the facet ``name``."""
    if name in {*local_schema.DATES, *local_schema.NUMBERS}:
        return [name]
    field = whole_field(name)
    return [field] if field is not None else list(_attribute_paths(name))


def _attribute_paths(name: str) -> Iterator[str]:
    escaped = name.replace("\\", "\\\\").replace(".", "\\.")
    for suffix in local_schema.ATTRIBUTE_SUFFIXES:
        yield f"attributes.{escaped}{suffix}"


def _attribute_values(name: str, value: str) -> Iterator[tuple[str, Any]]:
    """Where an attribute may have the value: text that looks like a moment is indexed as one."""
    for path in _attribute_paths(name):
        yield path, value
        if (moment := local_schema.moment(value)) is not None:
            yield path, moment
        if _NUMBER.fullmatch(value):
            yield path, float(value)
        if _INTEGER.fullmatch(value):
            yield path, int(value)


def _any_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(Occur.Should, query) for query in queries])


def _unscored(query: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.const_score_query(query, 0.0)
