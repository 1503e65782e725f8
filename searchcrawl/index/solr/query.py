"""Turns a query into parameters of Solr; all typed text is quoted."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from searchcrawl.access import ALLOW_FIELD, DENY_FIELD, PATH_FIELD, build_terms
from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.characters import is_cjk
from searchcrawl.index.forms import find_beginnings, find_optional, find_required, find_stemmed, fold, lower, most_added
from searchcrawl.index.query import (
    AllOf,
    AnyOf,
    Everything,
    Nothing,
    Query,
    Range,
    Term,
    find_sequence,
    parse,
    positive_terms,
)
from searchcrawl.index.receiver import HIT_END, HIT_START, NEAR_FIELDS, SearchQuery
from searchcrawl.index.sanitising import iso_utc, parse_number
from searchcrawl.index_fields import (
    ATTRIBUTE_FIELDS,
    DATES,
    FIELDS,
    FORMS,
    NUMBERS,
    SEQUENCES,
    STEMMED,
    TEXTS,
    WHOLE_VALUES,
    WORDS,
    attribute_type,
    find_language_field,
    match_tags,
    split_attribute_field,
)

#: What Solr is asked to return; the text comes as a snippet.
_RETURNED: Final = ",".join(
    (*(field.name for field in (*FIELDS, *ATTRIBUTE_FIELDS.values()) if field.is_returned), "score")
)
_OF_NEAR: Final = ",".join(("id", *NEAR_FIELDS))
_INTEGER: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
#: Their type is pint, that of the other numbers plong.
_OF_32_BITS: Final = frozenset({"depth"})
#: So many documents are looked through for words that are spelled alike.
_SPELLED_ROWS: Final = 20
_NOTHING: Final = "-*:*"
#: Lucene takes 1,024 clauses (``maxBooleanClauses``); a few are there for words that follow each other.
_MOST_CLAUSES: Final = 1000
#: So many of them are for other forms of words, where the words as they were typed leave room.
_MOST_FORMS: Final = 240
#: The same as a clause among others, where a lone negative one would count as everything.
_NO_DOCUMENT: Final = "(*:* -*:*)"


#: Between terms: no principal has it (``answer_headers.is_principal``).
_BETWEEN: Final = "\x1f"


def build_parameters(query: SearchQuery, languages: Sequence[str] = (), counts: Sequence[str] = ()) -> dict[str, Any]:
    """The parameters of /select; raises UnsupportedByIndex for a field that cannot be a filter, facet or order.

    ``languages`` are those of LANGUAGES that the index holds: words are looked for in their forms, too. ``counts`` are the
    numbers of levels that its documents have (``access.build_terms``).
    """
    of_user = build_filters_of_user(query.principals, counts)
    positive, exclusions = _split(parse(query.words, query.attributes))
    filters = [f"{{!lucene q.op=OR cache=false}}*:* -{render(term)}" for term in exclusions]
    if query.source is not None:
        filters.append(f"{{!term f=source}}{query.source}")
    if query.groups:
        filters.append("{!lucene q.op=OR}groups:(" + " ".join(_quote(group) for group in query.groups) + ")")
    filters += [_filter(name, value) for name, value in query.filters]
    return {
        **_words(positive, languages),
        "defType": "lucene",
        # What analysis makes of one word in a field of a language is all required.
        "q.op": "AND",
        **of_user,
        "fq": [*filters, *of_user.get("fq", ())],
        "fl": _RETURNED if query.has_snippets else _OF_NEAR,
        "rows": query.rows,
        "start": query.start,
        "sort": _order(query.sort),
        **_facets(query),
        **(_highlighting(positive, languages) if query.has_snippets else {}),
    }


def build_filters_of_user(principals: Collection[str] | None, counts: Sequence[str]) -> dict[str, Any]:
    """The filters ``fq`` for what somebody with these principals may see, and their parameters; none for None.

    A query of terms has no limit on their number.
    """
    if principals is None:
        return {}
    wanted = build_terms(principals, counts)
    paths = [*wanted.paths]
    terms = {"user_terms": wanted.principals, **{f"path_terms_{n}": each for n, each in enumerate(paths)}}
    path = [f"{{!terms f={PATH_FIELD} separator=$between v=$path_terms_{n}}}" for n in range(len(paths))]
    return {
        "fq": ["{!bool filter=$user_allowed must_not=$user_denied}", *path],
        "user_allowed": f"{{!terms f={ALLOW_FIELD} separator=$between v=$user_terms}}",
        "user_denied": f"{{!terms f={DENY_FIELD} separator=$between v=$user_terms}}",
        "between": _BETWEEN,
        **{name: _BETWEEN.join(each) for name, each in terms.items()},
    }


def _words(query: Query, languages: Sequence[str]) -> dict[str, str]:
    """The parameters for the words of a query; documents in which they follow each other come first."""
    forms = Forms(languages, min(_MOST_FORMS, _MOST_CLAUSES - _count_clauses(query)))
    rendered, words = render(query, forms), find_sequence(query)
    if words is None:
        return {"q": rendered}
    near = [f"{field}:{_quote(words)}^{weight}" for field, weight in SEQUENCES.items()]
    # The last one is there for words of which analysis leaves nothing: Solr takes no empty query.
    return {"q": "{!bool must=$asked should=$near}", "asked": rendered, "near": " OR ".join([*near, _NO_DOCUMENT])}


def _count_clauses(query: Query) -> int:
    """How many clauses a query has at most without those for other forms."""
    match query:
        case Term():
            # As typed and before a beginning, and one for the languages in which it is a stop word.
            return len(_find_word_fields(query.field)) * (2 if query.prefix else 1) + 1
        case AnyOf(clauses=clauses):
            return sum(map(_count_clauses, clauses))
        case AllOf(required=required, excluded=excluded):
            return sum(map(_count_clauses, (*dict.fromkeys(required), *excluded)))
        case _:
            return 2


class Forms:
    """Which fields of languages are asked; Solr takes so many clauses, and the first words have them."""

    def __init__(self, languages: Sequence[str], most: int = _MOST_FORMS) -> None:
        self.languages = languages
        self._left = most

    def find(self, term: Term) -> Iterator[str]:
        """The clauses for other forms of a word."""
        names = [] if term.phrase else [name for name in FORMS if term.field in {None, name}]
        for language in self.languages if names else ():
            wanted = _read_forms(term.text, language)
            # Analysis splits Japanese and Korean words, at most into their characters.
            cost = len(names) * (len(term.text) if language in {"ja", "ko"} else wanted.count(":"))
            if wanted and self._left >= cost:
                self._left -= cost
                yield from (wanted.format(find_language_field(name, language)) + f"^{FORMS[name]}" for name in names)


#: Of a query in which words are looked for only as they were typed.
NO_FORMS: Final = Forms(())


def _read_forms(text: str, language: str) -> str:
    """The form of the clause for other forms of a word in a language, with ``{0}`` for the field; empty without any.

    It has no quotes, because these fields have no positions for a phrase.
    """
    if language in STEMMED:
        return "" if (word := find_stemmed(text)) is None else f"{{0}}:{word}"
    if not is_cjk(text):
        return ""
    if language != "zh":
        return f"{{0}}:{text}"
    wanted = find_required(text, language)
    return "(" + " ".join(_join_or([f"{{0}}:{pair}" for pair in each]) for each in wanted) + ")" if wanted else ""


def _join_or(clauses: Sequence[str]) -> str:
    return clauses[0] if len(clauses) == 1 else "(" + " OR ".join(clauses) + ")"


def render(query: Query, forms: Forms = NO_FORMS) -> str:
    """The query in Lucene's syntax; Solr drops a clause of which analysis leaves nothing, as the language wants it."""
    if isinstance(query, Nothing):
        return _NOTHING
    if isinstance(query, Everything):
        return "*:*"
    if isinstance(query, Range):
        return f"{_range(query)}^=0"
    if isinstance(query, Term):
        return _prefix(query) if query.prefix else _term(query, forms)
    if isinstance(query, AnyOf):
        return "(" + " OR ".join(render(clause, forms) for clause in query.clauses) + ")"
    different = dict.fromkeys(query.required)
    optional = find_optional([each for each in different if isinstance(each, Term)], forms.languages)
    required = " ".join(
        f"+{_not_in(render(clause, forms), optional[clause])}"
        if isinstance(clause, Term) and clause in optional
        else f"+{render(clause, forms)}"
        # Words that are a stop word of no language have their forms first.
        for clause in sorted(different, key=lambda clause: clause in optional)
    )
    return f"({required}{''.join(f' -{render(term)}' for term in query.excluded)})"


def _range(wanted: Range) -> str:
    """The clause of a range, without a weight."""
    if wanted.fault:
        return _NO_DOCUMENT
    least, most = (-(2**31), 2**31 - 1) if wanted.field in _OF_32_BITS else (-(2**63), 2**63 - 1)

    def show(value: float | datetime | None, rounded: Callable[[float], int]) -> str:
        if value is None:
            return "*"
        if isinstance(value, datetime):
            return iso_utc(value)
        return str(max(least, min(most, rounded(value)))) if wanted.field in NUMBERS else repr(value)

    low, high = show(wanted.low, math.ceil), show(wanted.high, math.floor)
    return f"{_escape_field(wanted.field)}:[{low} TO {high}{'}' if wanted.is_below and high != '*' else ']'}"


def _prefix(term: Term) -> str:
    """The clause of a beginning, with that of the phrase of the words before it (full-te*)."""
    if term.field == "source":
        return "source:" + re.sub(r"(\W)", r"\\\1", term.text) + "*"
    *before, last = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", term.text)) or [None]
    if last is None:
        return _term(term, NO_FORMS)
    clauses = [f"{field}:{lower(last)}*^{weight}" for field, weight in _find_word_fields(term.field)]
    parts = [_term(Term(text=" ".join(before), field=term.field), NO_FORMS)] if before else []
    return "(" + " ".join(f"+{part}" for part in (*parts, _join_or(clauses))) + ")"


def _find_word_fields(field: str | None) -> list[tuple[str, float]]:
    """The fields with the words of a field, or those of all default ones (None), and how much a hit there counts."""
    if field is None:
        return list(TEXTS.items())
    attribute = split_attribute_field(field)
    if attribute is not None and attribute[1] == "string":
        field = f"{attribute[0]}_general"
    return [(_escape_field(WORDS.get(field, field)), 1.0)]


def _escape_field(field: str) -> str:
    return field.replace("-", "\\-")


def _not_in(clause: str, languages: Sequence[str]) -> str:
    """What a clause finds, and all documents in some languages, in which it is a stop word."""
    return _join_or([clause, f"languages:/{match_tags(languages)}/^=0"])


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
        number = parse_number(value)
        wanted = None if number is None else repr(number)
    elif name in NUMBERS:
        wanted = value if _INTEGER.fullmatch(value) else None
    field = find_value_field(name)
    return _NOTHING if wanted is None else f"{{!term f={field}}}{wanted}"


def _iso_moment(text: str) -> str | None:
    try:
        return iso_utc(datetime.fromisoformat(text))
    except ValueError:
        return None


def _split(query: Query) -> tuple[Query, tuple[Term | Range, ...]]:
    """The query without its excluded terms, and these terms, which become filters.

    If the analysis leaves only excluded terms of a query (``on -oracle``), Solr would find all documents without them.
    """
    if isinstance(query, AllOf):
        return AllOf(required=query.required), query.excluded
    return query, ()


def _term(term: Term, forms: Forms) -> str:
    # Always a phrase, so that the parts of a word that analysis splits (e-mail, 東京都) must be neighbours.
    quoted = _quote(term.text)
    fields = _find_word_fields(term.field)
    clauses = [f"{field}:{quoted}{'' if term.field else f'^{weight}'}" for field, weight in fields]
    return _join_or([*clauses, *forms.find(term)])


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


def _find_hits(query: Query, languages: Sequence[str]) -> str:
    """The words that snippets mark: those of the query and their forms, as they are in ``content``."""
    terms = list(positive_terms(query))
    wanted = [
        f"content:{lower(term.text)}*" if term.prefix and term.text.isalnum() else f"content:{_quote(term.text)}"
        for term in terms
    ]
    for term in terms:
        for beginning in () if term.phrase or term.prefix else dict.fromkeys(find_beginnings(term.text, languages)):
            folded = "".join(map(fold, beginning))
            wanted.append(
                f"content:{_quote(beginning)}"
                if is_cjk(beginning)
                else f"content:/{folded}.{{0,{most_added(beginning)}}}/"
            )
    return " OR ".join(wanted[:_MOST_FORMS]) or "*:*"


def build_spelling_parameters() -> dict[str, Any]:
    """The parameters of a query for words that are spelled alike: its answer marks them in titles and texts."""
    marked = {
        **_highlighting(Everything(), ()),
        "hl.fl": "title,content",
        "hl.snippets": 10,
        "hl.defaultSummary": "false",
    }
    del marked["hl.q"]
    return {"fl": "id", "rows": _SPELLED_ROWS, "defType": "lucene", **marked}


def _highlighting(query: Query, languages: Sequence[str]) -> dict[str, Any]:
    return {
        "hl.q": _find_hits(query, languages),
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
