"""Turns a query into parameters of Solr; all typed text is quoted."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.query import AllOf, AnyOf, Everything, Nothing, Query, Term, parse
from searchcrawl.index.receiver import HIT_END, HIT_START, SearchQuery
from searchcrawl.index.sanitising import iso_utc, parse_number
from searchcrawl.index_fields import (
    ATTRIBUTE_FIELDS,
    DATES,
    FIELDS,
    NUMBERS,
    TEXTS,
    WHOLE_VALUES,
    WORDS,
    attribute_type,
    split_attribute_field,
)

#: What Solr is asked to return; the text comes as a snippet.
_RETURNED: Final = ",".join(
    (*(field.name for field in (*FIELDS, *ATTRIBUTE_FIELDS.values()) if field.is_returned), "score")
)
_INTEGER: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_NOTHING: Final = "-*:*"
#: The same as a clause among others, where a lone negative one would count as everything.
_NO_DOCUMENT: Final = "(*:* -*:*)"


def build_parameters(query: SearchQuery) -> dict[str, Any]:
    """The parameters of /select; raises UnsupportedByIndex for a field that cannot be a filter, facet or order."""
    positive, exclusions = _split(parse(query.words, query.attributes))
    filters = [f"{{!lucene q.op=OR cache=false}}*:* -{render(term)}" for term in exclusions]
    if query.source is not None:
        filters.append(f"{{!term f=source}}{query.source}")
    if query.groups:
        filters.append("{!lucene q.op=OR}groups:(" + " ".join(_quote(group) for group in query.groups) + ")")
    filters += [_filter(name, value) for name, value in query.filters]
    return {
        "q": render(positive),
        "defType": "lucene",
        "q.op": "OR",
        "fq": filters,
        "fl": _RETURNED,
        "rows": query.rows,
        "start": query.start,
        "sort": _order(query.sort),
        **_facets(query),
        **_highlighting(),
    }


def render(query: Query) -> str:
    """The query in Lucene's syntax; Solr drops a clause of which analysis leaves nothing, as the language wants it."""
    if isinstance(query, Nothing):
        return _NOTHING
    if isinstance(query, Everything):
        return "*:*"
    if isinstance(query, Term):
        return _term(query)
    if isinstance(query, AnyOf):
        return "(" + " ".join(render(clause) for clause in query.clauses) + ")"
    required = " ".join(f"+{render(clause)}" for clause in query.required)
    return f"({required}{''.join(f' -{render(term)}' for term in query.excluded)})"


def find_value_field(name: str) -> str:
    """The field with the whole values of a field, also of an attribute; UnsupportedByIndex where there is none."""
    attribute = split_attribute_field(name)
    if attribute is not None:
        return f"{attribute[0]}_exact" if attribute[1] == "text" else name
    if name not in WHOLE_VALUES:
        raise UnsupportedByIndex(f"{name!r} cannot be a filter, a facet or an order")
    return WHOLE_VALUES[name]


def _filter(name: str, value: str) -> str:
    wanted: str | None = value
    kind = attribute_type(name)
    if name in DATES or kind == "date":
        wanted = _iso_moment(value)
    elif kind == "number":
        wanted = _parse_number(value)
    elif name in NUMBERS:
        wanted = value if _INTEGER.fullmatch(value) else None
    field = find_value_field(name)
    return _NOTHING if wanted is None else f"{{!term f={field}}}{wanted}"


def _parse_number(text: str) -> str | None:
    number = parse_number(text)
    return None if number is None else repr(number)


def _iso_moment(text: str) -> str | None:
    try:
        return iso_utc(datetime.fromisoformat(text))
    except ValueError:
        return None


def _split(query: Query) -> tuple[Query, tuple[Term, ...]]:
    """The query without its excluded terms, and these terms, which become filters.

    If the analysis leaves only excluded terms of a query (``on -oracle``), Solr would find all documents without them.
    """
    if isinstance(query, AllOf):
        return AllOf(required=query.required), query.excluded
    return query, ()


def _term(term: Term) -> str:
    # Always a phrase, so that the parts of a word that analysis splits (e-mail, 東京都) must be neighbours.
    quoted = _quote(term.text)
    if term.field is None:
        return "(" + " ".join(f"{name}:{quoted}^{weight}" for name, weight in TEXTS.items()) + ")"
    attribute = split_attribute_field(term.field)
    if attribute is not None:
        return _attribute_term(term.field, *attribute, term.text)
    return f"{WORDS.get(term.field, term.field)}:{quoted}"


def _attribute_term(field: str, name: str, kind: str, text: str) -> str:
    """Words of an attribute's texts; a number or a date is compared whole."""
    value: str | None = text
    if kind == "string":
        field = f"{name}_general"
    elif kind == "number":
        value = _parse_number(text)
    elif kind == "date":
        value = _iso_moment(text)
    return _NO_DOCUMENT if value is None else field.replace("-", "\\-") + ":" + _quote(value)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _order(sort: str | None) -> str:
    if sort is None or sort in {"score", "-score"}:
        return "score desc,id asc"
    name = sort.removeprefix("-")
    return f"{find_value_field(name)} {'desc' if sort.startswith('-') else 'asc'},id asc"


def _facets(query: SearchQuery) -> dict[str, Any]:
    if not query.facets:
        return {}
    return {
        "facet": "true",
        "facet.field": [find_value_field(name) for name in query.facets],
        "facet.mincount": 1,
        "facet.limit": 100,
    }


def _highlighting() -> dict[str, Any]:
    return {
        "hl": "true",
        "hl.method": "unified",
        "hl.fl": "content",
        "hl.snippets": 2,
        "hl.fragsize": 160,
        "hl.defaultSummary": "true",
        "hl.maxAnalyzedChars": 200_000,
        "hl.tag.pre": HIT_START,
        "hl.tag.post": HIT_END,
    }
