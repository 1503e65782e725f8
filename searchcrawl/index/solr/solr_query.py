"""A parsed query as parameters of Solr; whatever was typed ends up as quoted text."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.attribute_fields import name_and_suffix, number_of
from searchcrawl.index.query import AllOf, AnyOf, Everything, Nothing, Query, Term, parse
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.index.sanitising import iso_utc

HIT_START: Final = "\ue000"
HIT_END: Final = "\ue001"
#: Where words without a field are looked for, and how much a hit there counts.
DEFAULT_FIELDS: Final = (
    ("title", 3.0),
    ("content", 1.0),
    ("description", 1.5),
    ("author", 1.0),
    ("subject", 1.5),
    ("anchor", 2.0),
)
#: All stored fields but the text itself.
STORED_FIELDS: Final = (
    "id,url,access_url,source,groups,host,depth,title,description,author,subject,mimetype,language,"
    "last_modified,content_length,checksum,first_seen,crawled_at,crawl_version,anchor,duplicates,"
    "*_s,*_t,*_l,*_dt,score"
)
#: Texts whose whole value is kept beside their words, for filters, facets and sorting.
_TEXTS: Final = {name: f"{name}_exact" for name in ("title", "author", "subject", "description")}
_NAMES: Final = frozenset(
    {"id", "source", "groups", "host", "url", "access_url", "duplicates", "mimetype", "language", "checksum"}
)
_NUMBERS: Final = frozenset({"depth", "content_length", "crawl_version"})
_DATES: Final = frozenset({"last_modified", "first_seen", "crawled_at"})
#: Names that are split into words besides.
_WORDS: Final = {name: f"{name}_words" for name in ("url", "host", "mimetype", "language")}
_INTEGER: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_NOTHING: Final = "-*:*"
#: The same, as a clause among others.
_NO_DOCUMENT: Final = "(*:* -*:*)"


def parameters(query: SearchQuery) -> dict[str, Any]:
    """The parameters of /select; raises UnsupportedByIndex for a field that cannot be a filter, facet or order."""
    positive, exclusions = _split(parse(query.words, query.attributes))
    filters = [f"{{!lucene q.op=OR cache=false}}*:* -{render(term)}" for term in exclusions]
    if query.source is not None:
        filters.append(f"{{!term f=source}}{query.source}")
    if query.groups:
        filters.append("{!lucene q.op=OR}groups:(" + " ".join(_quoted(group) for group in query.groups) + ")")
    filters += [_filter(name, value) for name, value in query.filters]
    return {
        "q": render(positive),
        "defType": "lucene",
        "q.op": "OR",
        "fq": filters,
        "fl": STORED_FIELDS,
        "rows": query.rows,
        "start": query.start,
        "sort": _order(query.sort),
        **_facets(query),
        **_highlighting(),
    }


def render(query: Query) -> str:
    """The query in Lucene's syntax. Of a clause that analysis empties nothing is left, as the language asks."""
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


def value_field(name: str) -> str:
    """The field with the whole values of a field, also of an attribute; UnsupportedByIndex where there is none."""
    if name in _NAMES or name in _NUMBERS or name in _DATES:
        return name
    if name in _TEXTS:
        return _TEXTS[name]
    known = name_and_suffix(name)
    if known is None:
        raise UnsupportedByIndex(f"{name!r} cannot be a filter, a facet or an order")
    return f"{known[0]}_exact" if known[1] == "_t" else name


def _filter(name: str, value: str) -> str:
    field = value_field(name)
    known = name_and_suffix(name)
    suffix = known[1] if known else ""
    if name in _DATES or suffix == "_dt":
        moment = _moment(value)
        return _NOTHING if moment is None else f"{{!term f={field}}}{moment}"
    if suffix == "_l":
        number = number_of(value)
        return _NOTHING if number is None else f"{{!term f={field}}}{number!r}"
    if name in _NUMBERS:
        return f"{{!term f={field}}}{value}" if _INTEGER.fullmatch(value) else _NOTHING
    return f"{{!term f={field}}}{value}"


def _moment(text: str) -> str | None:
    try:
        return iso_utc(datetime.fromisoformat(text))
    except ValueError:
        return None


def _split(query: Query) -> tuple[Query, tuple[Term, ...]]:
    """What must be there, and what must not.

    Exclusions become filters: were they all that is left of the query (`on -oracle`), Solr would
    take it for everything but them.
    """
    if isinstance(query, AllOf):
        return AllOf(required=query.required), query.excluded
    return query, ()


def _term(term: Term) -> str:
    # Always a phrase: a word that analysis splits (e-mail, 東京都) is asked for in one piece.
    quoted = _quoted(term.text)
    if term.field is not None:
        known = name_and_suffix(term.field)
        if known is not None:
            return _attribute_term(*known, term.text)
        return f"{_WORDS.get(term.field, term.field)}:{quoted}"
    return "(" + " ".join(f"{name}:{quoted}^{weight}" for name, weight in DEFAULT_FIELDS) + ")"


def _attribute_term(name: str, suffix: str, text: str) -> str:
    """Words of an attribute's texts; a number or a date is compared whole."""
    value: str | None = text
    field = f"{name}{suffix}"
    if suffix == "_s":
        field = f"{name}_general"
    elif suffix == "_l":
        number = number_of(text)
        value = None if number is None else repr(number)
    elif suffix == "_dt":
        value = _moment(text)
    return _NO_DOCUMENT if value is None else field.replace("-", "\\-") + ":" + _quoted(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _order(sort: str | None) -> str:
    if sort is None or sort in {"score", "-score"}:
        return "score desc,id asc"
    name = sort.removeprefix("-")
    return f"{value_field(name)} {'desc' if sort.startswith('-') else 'asc'},id asc"


def _facets(query: SearchQuery) -> dict[str, Any]:
    if not query.facets:
        return {}
    return {
        "facet": "true",
        "facet.field": [value_field(name) for name in query.facets],
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
