"""Turns queries, filters and sort orders into those of the embedded index."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import tantivy
from tantivy import Occur

from searchcrawl.access import ALLOW_FIELD, DENY_FIELD, PATH_FIELD, AccessTerms
from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.forms import build_folder, build_stemmer, find_optional, find_required, find_stemmed, find_stems
from searchcrawl.index.local import schema
from searchcrawl.index.query import AllOf, AnyOf, Everything, Query, Range, Term, find_sequence, parse
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.index.sanitising import format_number, parse_number
from searchcrawl.index_fields import (
    DATES,
    FIELDS,
    FIRST_MOMENT,
    FORMS,
    LAST_MOMENT,
    NUMBERS,
    SEQUENCES,
    STEMMED,
    TEXTS,
    WHOLE_VALUES,
    WORDS,
    FieldKind,
    attribute_type,
    find_language_field,
    match_tags,
)

_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
#: So many terms are found sooner one by one than as a set, which takes 0.2 ms in any case; of a hundred both take as long.
MOST_CLAUSES: Final = 50
#: Many documents have the same value of these fields; then the id decides the order, as in Solr.
_SHARED: Final = frozenset(
    field.name
    for field in FIELDS
    if field.kind in (FieldKind.TEXT, FieldKind.NUMBER)
    or (field.kind is FieldKind.NAME and not field.is_unique and not field.is_multi_valued)
)


class QueryBuilder:
    """Builds tantivy queries for the schema of this release."""

    def __init__(self) -> None:
        self._schema = schema.build_schema()
        # In memory and empty: the query language of the library needs one.
        self._parser = tantivy.Index(self._schema)
        self._analyzer = build_stemmer("")

    def build(
        self, query: SearchQuery, languages: Sequence[str] = (), access: AccessTerms | None = None
    ) -> tantivy.Query:
        """The documents with the words of a query, within its filters, without tombstones.

        ``languages`` are those of LANGUAGES that the index holds: words are looked for in their forms, too. ``access``
        is what the user of the query may see; None: everything.
        """
        asked = parse(query.words, query.attributes)
        words = self._clause(asked, languages)
        if words is None:
            return tantivy.Query.empty_query()
        near = [(Occur.Should, each) for each in self._sequences(find_sequence(asked))]
        filters = [*self._filters(query), *self._filters_of_user(access)]
        parts = [(Occur.Must, words), *near, *((Occur.Must, _without_score(each)) for each in filters)]
        return tantivy.Query.boolean_query([*parts, (Occur.MustNot, self.tombstones())])

    def documents(self, source: str | None) -> tantivy.Query:
        """Every document of a source (None: of all), without tombstones."""
        wanted = tantivy.Query.all_query() if source is None else self._term("source", source)
        return tantivy.Query.boolean_query([(Occur.Must, wanted), (Occur.MustNot, self.tombstones())])

    def tombstones(self) -> tantivy.Query:
        """Every tombstone."""
        return self._term("tombstone", True)

    def with_ids(self, ids: Sequence[str]) -> tantivy.Query:
        """The documents and tombstones with these ids."""
        return self._any_of("id", ids)

    def documents_with_ids(self, ids: Sequence[str]) -> tantivy.Query:
        """The documents with these ids, without tombstones."""
        return tantivy.Query.boolean_query([(Occur.Must, self.with_ids(ids)), (Occur.MustNot, self.tombstones())])

    def with_hashes(self, source: str, digits: str) -> tantivy.Query:
        """The documents and tombstones of a source whose ids end in a hash that begins with ``digits``."""
        left = 32 - len(digits)
        return tantivy.Query.regex_query(self._schema, "id", f"{re.escape(source)}:{digits}[0-9a-f]{{{left}}}")

    def with_value(self, field: str, key: Any) -> tantivy.Query:
        """The documents with a value of a field or an attribute; ``key`` is the value in the counts of the library."""
        kind = attribute_type(field)
        if kind is not None:
            return self._with_attribute(field, schema.parse_moment(key) if kind == "date" else str(key))
        return self._term(find_column(field), int(key) if field in NUMBERS else key)

    def tokens(self, text: str) -> list[tuple[int, str]]:
        """Position and text of each word that analysis leaves, from position 0 on."""
        found = self._analyzer.pre_tokenize(schema.prepare_text(text)).tokens
        return [(token.position - found[0].position, token.text) for token in found]

    def _clause(self, node: Query, languages: Sequence[str]) -> tantivy.Query | None:
        """The query of a node, or None where analysis leaves nothing of it."""
        match node:
            case Everything():
                return _without_score(tantivy.Query.all_query())
            case Range():
                return _without_score(self._range(node))
            case Term(prefix=True):
                return self._beginning(node)
            case Term():
                return self._words(node, languages)
            case AnyOf(clauses=clauses):
                kept = [query for clause in clauses if (query := self._clause(clause, languages)) is not None]
                return tantivy.Query.boolean_query([(Occur.Should, query) for query in kept]) if kept else None
            case AllOf(required=repeated, excluded=excluded):
                required = dict.fromkeys(repeated)
                optional = find_optional([each for each in required if isinstance(each, Term)], languages)
                wanted = [
                    self._not_in(query, optional[clause]) if isinstance(clause, Term) and clause in optional else query
                    for clause in required
                    if (query := self._clause(clause, languages)) is not None
                ]
                unwanted = [query for term in excluded if (query := self._clause(term, ())) is not None]
                if not wanted:
                    return None
                return tantivy.Query.boolean_query(
                    [*((Occur.Must, query) for query in wanted), *((Occur.MustNot, query) for query in unwanted)]
                )
            case _:
                return None

    def _range(self, wanted: Range) -> tantivy.Query:
        """The documents with a value in the range."""
        if wanted.fault:
            return tantivy.Query.empty_query()
        if wanted.field in NUMBERS or wanted.field in DATES:
            return self._range_of_field(wanted)
        path = f"{schema.RANGES}.{schema.find_key(wanted.field)}"
        if wanted.low is None and wanted.high is None:
            return tantivy.Query.exists_query(path)
        low = "*" if wanted.low is None else schema.to_integer(wanted.low)
        high = "*" if wanted.high is None else schema.to_integer(wanted.high)
        return self._parser.parse_query(f"{path}:[{low} TO {high}{'}' if wanted.is_below and high != '*' else ']'}")

    def _range_of_field(self, wanted: Range) -> tantivy.Query:
        """The same for a field that every document may have."""
        low: Any = wanted.low
        high: Any = wanted.high
        if wanted.field in DATES:
            if (low is not None and low >= LAST_MOMENT) or (high is not None and high <= FIRST_MOMENT):
                return tantivy.Query.empty_query()
            # All values are between these two, and the library fails on moments far outside.
            low = None if low is not None and low <= FIRST_MOMENT else low
            high = None if high is not None and high >= LAST_MOMENT else high
            kind = tantivy.FieldType.Date
        else:
            low, high = _to_long(math.ceil, low), _to_long(math.floor, high)
            kind = tantivy.FieldType.Integer
        if low is None and high is None:
            return tantivy.Query.exists_query(wanted.field)
        if low is not None and high is not None and low > high:
            return tantivy.Query.empty_query()
        below = wanted.is_below and high is not None
        return tantivy.Query.range_query(self._schema, wanted.field, kind, low, high, True, not below)

    def _sequences(self, words: str | None) -> Iterator[tantivy.Query]:
        """The documents in which the words follow each other: they come first."""
        tokens = self.tokens(words) if words else []
        if len(tokens) > 1:
            for path, weight in SEQUENCES.items():
                yield tantivy.Query.boost_query(self._phrase(path, tokens), weight)

    def _not_in(self, query: tantivy.Query, languages: Sequence[str]) -> tantivy.Query:
        """What ``query`` finds, and all documents in some languages, in which it is a stop word."""
        tags = tantivy.Query.regex_query(self._schema, "languages", match_tags(languages))
        return tantivy.Query.boolean_query([(Occur.Should, query), (Occur.Should, _without_score(tags))])

    def _words(self, term: Term, languages: Sequence[str] = ()) -> tantivy.Query | None:
        """The documents with a term; without ``languages`` only as it was typed."""
        field = term.field
        if field == "source":
            return self._term("source", term.text)
        tokens = self.tokens(term.text)
        if not tokens:
            return None
        each = [
            tantivy.Query.boost_query(self._phrase(path, tokens), weight) for path, weight in _find_word_paths(field)
        ]
        each += self._forms(term, [name for name in FORMS if field in {None, name}], languages)
        return each[0] if len(each) == 1 else tantivy.Query.disjunction_max_query(each, tie_breaker=0.1)

    def _beginning(self, term: Term) -> tantivy.Query | None:
        """The documents with a word that begins so, and with the phrase of the words before it (full-te*)."""
        if term.field == "source":
            return tantivy.Query.regex_query(self._schema, "source", f"{re.escape(term.text)}.*")
        words = build_folder().analyze(schema.prepare_text(term.text))
        if not words:
            return None
        *before, last = words
        each = [
            # A prefix query of the library takes 50 words at most, this one all.
            tantivy.Query.boost_query(
                tantivy.Query.fuzzy_term_query(self._schema, path, last, distance=0, prefix=True), weight
            )
            for path, weight in _find_word_paths(term.field)
        ]
        part = self._words(Term(text=" ".join(before), field=term.field, phrase=True)) if before else None
        found = tantivy.Query.disjunction_max_query(each, tie_breaker=0.1)
        return tantivy.Query.boolean_query([(Occur.Must, query) for query in (part, found) if query is not None])

    def _forms(self, term: Term, names: Sequence[str], languages: Sequence[str]) -> Iterator[tantivy.Query]:
        """The documents with another form of a word in one of the fields ``names``, for each field of a language."""
        if term.phrase or not names:
            return
        for language in languages:
            wanted = self._read_forms(term.text, language)
            for name in names if wanted else ():
                path = find_language_field(name, language)
                parts = [(Occur.Must, self._any_term(path, each)) for each in wanted]
                yield tantivy.Query.boost_query(tantivy.Query.boolean_query(parts), FORMS[name])

    def _read_forms(self, text: str, language: str) -> list[tuple[str, ...]]:
        """What a document must have of a word's forms in a language, one of each tuple; empty where there are none."""
        if language in STEMMED:
            word = find_stemmed(text)
            return [] if word is None or not (stems := find_stems(word, language)) else [stems]
        return find_required(schema.normalise(text), language)

    def _any_term(self, path: str, terms: Sequence[str]) -> tantivy.Query:
        each = [(Occur.Should, self._term(path, term)) for term in terms]
        return each[0][1] if len(each) == 1 else tantivy.Query.boolean_query(each)

    def _phrase(self, path: str, tokens: Sequence[tuple[int, str]]) -> tantivy.Query:
        if len(tokens) == 1:
            return tantivy.Query.term_query(self._schema, path, tokens[0][1])
        return tantivy.Query.phrase_query(self._schema, path, list(tokens))

    def _filters(self, query: SearchQuery) -> Iterator[tantivy.Query]:
        if query.source is not None:
            yield self._term("source", query.source)
        if query.groups:
            yield tantivy.Query.boolean_query([(Occur.Should, self._term("groups", group)) for group in query.groups])
        for name, value in query.filters:
            yield self._filter(name, value)

    def _filters_of_user(self, wanted: AccessTerms | None) -> Iterator[tantivy.Query]:
        """What a user may see; nothing for None."""
        if wanted is None:
            return
        parts = [
            (Occur.Must, self._any_of(ALLOW_FIELD, wanted.principals)),
            (Occur.MustNot, self._any_of(DENY_FIELD, wanted.principals)),
            (Occur.Must, self._any_of(PATH_FIELD, wanted.numbers)),
        ]
        for number, terms in enumerate(wanted.levels, 1):
            # What has a level that the user does not pass: few documents have many levels, most pass the others.
            reaching = self._any_of(PATH_FIELD, wanted.numbers[number:])
            stopped = [(Occur.Must, reaching), (Occur.MustNot, self._any_of(PATH_FIELD, terms))]
            parts.append((Occur.MustNot, tantivy.Query.boolean_query(stopped)))
        yield tantivy.Query.boolean_query(parts)

    def _any_of(self, field: str, terms: Sequence[str]) -> tantivy.Query:
        """The documents that have one of some terms, of which there may be thousands."""
        if not terms:
            return tantivy.Query.empty_query()
        if len(terms) <= MOST_CLAUSES:
            return self._any_term(field, terms)
        return tantivy.Query.term_set_query(self._schema, field, terms)

    def _filter(self, name: str, value: str) -> tantivy.Query:
        kind = attribute_type(name)
        if kind is not None:
            return self._with_attribute(name, _parse_attribute(kind, value))
        if name in DATES:
            moment = schema.parse_moment(value)
            return tantivy.Query.empty_query() if moment is None else self._term(name, moment)
        if name in NUMBERS:
            return self._term(name, int(value)) if _INTEGER.fullmatch(value) else tantivy.Query.empty_query()
        return self._term(find_column(name), value)

    def _with_attribute(self, field: str, value: str | datetime | None) -> tantivy.Query:
        """The documents with this indexed value of an attribute; no documents for None."""
        if value is None:
            return tantivy.Query.empty_query()
        return self._term(schema.attribute_path(field), value)

    def _term(self, path: str, value: Any) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, path, value)


def _find_word_paths(field: str | None) -> list[tuple[str, float]]:
    """Where the words of a field are, or those of all default ones (None), and how much a hit there counts."""
    if field is None:
        return [(schema.find_text_path(name), weight) for name, weight in TEXTS.items()]
    if attribute_type(field) is None:
        return [(WORDS.get(field) or schema.find_text_path(field), 1.0)]
    return [(schema.attribute_path(field, words=True), 1.0)]


def find_sort_field(sort: str | None) -> str | None:
    """The field that a query sorts by, None where the score does; UnsupportedByIndex where it cannot."""
    if sort is None or sort in {"score", "-score"}:
        return None
    name = sort.removeprefix("-")
    find_column(name)
    return name


def has_ties(field: str) -> bool:
    """Whether many documents may have the same value of a field to sort by."""
    return field in _SHARED or attribute_type(field) is not None


def find_column(field: str) -> str:
    """Where the library keeps the values of a field, also of an attribute; UnsupportedByIndex where there are none."""
    if attribute_type(field) is not None:
        return schema.attribute_path(field)
    if field not in WHOLE_VALUES:
        raise UnsupportedByIndex(f"{field!r} cannot be a filter, a facet or an order")
    return WHOLE_VALUES[field]


def format_facet_value(field: str, bucket: Mapping[str, Any]) -> str:
    """A value as facets show it."""
    key = bucket.get("key_as_string", bucket["key"])
    kind = attribute_type(field)
    if kind == "number":
        return format_number(schema.decode_number(key))
    if isinstance(key, int | float):
        return format_number(key)
    return str(key).removeprefix(schema.TEXT_MARK) if kind in {"string", "text"} else str(key)


def _parse_attribute(kind: str, text: str) -> str | datetime | None:
    """A text as a value of an attribute is indexed; None where it cannot be one."""
    if kind == "number":
        number = parse_number(text)
        return None if number is None else schema.encode_number(number)
    return schema.parse_moment(text) if kind == "date" else schema.mark_text(text)


def _to_long(rounded: Callable[[float], int], value: float | None) -> int | None:
    """The number as a whole one within 64 bits."""
    if value is None:
        return None
    return max(-(2**63), min(2**63 - 1, rounded(value)))


def _without_score(query: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.const_score_query(query, 0.0)
