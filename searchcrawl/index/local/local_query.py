"""Turns queries, filters and sort orders into those of the embedded index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import tantivy
from tantivy import Occur

from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.attribute_fields import name_and_suffix, number_from, number_of, number_text, sortable
from searchcrawl.index.local import local_schema
from searchcrawl.index.query import AllOf, AnyOf, Everything, Query, Term, parse
from searchcrawl.index.receiver import SearchQuery

_INTEGER = re.compile(r"-?[0-9]{1,18}")


class QueryBuilder:
    """Builds tantivy queries for one schema."""

    def __init__(self, schema: tantivy.Schema) -> None:
        self._schema = schema
        self._analyzer = local_schema.analyzer()

    def query(self, asked: SearchQuery) -> tantivy.Query:
        """What ``asked`` finds: its words, within its filters, without tombstones."""
        words = self._clause(parse(asked.words, asked.attributes))
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
        known = name_and_suffix(term.field) if term.field is not None else None
        if term.field is not None and known is not None and known[1] in {"_l", "_dt"}:
            return self.attribute_term(term.field, attribute_value(term.field, term.text))
        tokens = tokens_of(self._analyzer, term.text)
        if not tokens:
            return None
        if term.field is not None and known is not None:
            return self._tokens(local_schema.attribute_path(term.field, words=True), tokens)
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
        return self.attribute_term(name, attribute_value(name, value))

    def attribute_term(self, field: str, value: str | datetime | None) -> tantivy.Query:
        """What has this value of an attribute, as it is indexed; None has nobody."""
        if value is None:
            return tantivy.Query.empty_query()
        return self._term(local_schema.attribute_path(field), value)

    def value_term(self, field: str, key: Any) -> tantivy.Query:
        """What has a value, of an attribute or of another field, that the library told of it."""
        if name_and_suffix(field) is not None:
            return self.attribute_term(field, indexed_value(field, key))
        return self._term(field, int(key) if field in local_schema.NUMBERS else key)

    def _term(self, field: str, value: Any) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, field, value)


def tokens_of(analyzer: tantivy.TextAnalyzer, text: str) -> list[tuple[int, str]]:
    """Position and text of each word that analysis leaves, from position 0 on."""
    found = analyzer.pre_tokenize(local_schema.spaced(text)).tokens
    return [(token.position - found[0].position, token.text) for token in found]


def whole_field(name: str) -> str | None:
    """The field with the whole values of the field ``name``, None where it is that of an attribute.

    UnsupportedByIndex for a text that is only kept as words, and for what is no field.
    """
    if name_and_suffix(name) is not None:
        return None
    if name not in {"id", *local_schema.NAMES, *local_schema.EXACT}:
        raise UnsupportedByIndex(f"{name!r} cannot be a filter, a facet or an order")
    if name in {"id", *local_schema.NAMES}:
        return name
    return local_schema.EXACT.get(name)


def sort_field(sort: str | None) -> str | None:
    """The field that orders as asked, None where the score does; UnsupportedByIndex where there is none."""
    if sort is None or sort in {"score", "-score"}:
        return None
    name = sort.removeprefix("-")
    return name if name_and_suffix(name) else column(name)


def has_ties(field: str) -> bool:
    """Whether documents may well have equal values of a field to sort by: then the id decides, as in Solr."""
    named = {"source", "host", "mimetype", "language", *local_schema.EXACT.values(), *local_schema.NUMBERS}
    return field in named or name_and_suffix(field) is not None


def column(name: str) -> str:
    """The column with the values of a field, also of an attribute; UnsupportedByIndex where there is none."""
    if name in {*local_schema.DATES, *local_schema.NUMBERS}:
        return name
    return whole_field(name) or local_schema.attribute_path(name)


def attribute_value(field: str, text: str) -> str | datetime | None:
    """A text as a value of an attribute's field is indexed; None where it can be none."""
    known = name_and_suffix(field)
    if known is None:
        raise UnsupportedByIndex(f"{field!r} cannot be a filter, a facet or an order")
    if known[1] == "_l":
        number = number_of(text)
        return None if number is None else sortable(number)
    return local_schema.moment(text) if known[1] == "_dt" else local_schema.marked(text)


def indexed_value(field: str, key: Any) -> str | datetime | None:
    """A value of an attribute's column as a query asks for it."""
    return local_schema.moment(key) if field.endswith("_dt") else str(key)


def facet_value(name: str, bucket: Mapping[str, Any]) -> str:
    """A value as facets show it."""
    key = bucket.get("key_as_string", bucket["key"])
    known = name_and_suffix(name)
    if known and known[1] == "_l":
        return number_text(number_from(key))
    if isinstance(key, int | float):
        return number_text(key)
    return str(key).removeprefix(local_schema.TEXT_MARK) if known and known[1] != "_dt" else str(key)


def _any_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(Occur.Should, query) for query in queries])


def _unscored(query: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.const_score_query(query, 0.0)
