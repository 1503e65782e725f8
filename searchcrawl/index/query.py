"""The query language: ``parse`` turns what was typed into a small tree, each index the tree into its own query.

``parse`` never fails: what it does not understand is text. The tree has six kinds of nodes::

    Everything                      every document
    Nothing                         no document: no word was given
    Term(text, field, phrase)       a word or a phrase; field None: the fields an index searches by default;
                                    ``prefix``: a word that begins so
    Range(field, low, high)         numbers or moments: ``depth:1..3``, ``modified:2025-01..2025-06``
    AnyOf(clauses)                  two or more, joined by OR
    AllOf(required, excluded)       at least one required clause; any number of excluded terms

An index analyses ``Term.text`` itself. A word that its analysis splits is a phrase. The index leaves out
terms of which analysis leaves nothing (stop words, punctuation) and clauses without terms; a query
without any required term then finds nothing (G2).

Either end of a range may be missing. A year, a month or a day is meant as a whole: the range up to 2025-06 ends with June.
So is a second, which is as fine as the embedded index compares moments. Moments without a zone are of UTC.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from searchcrawl.index.characters import CJK, is_cjk, remove_points, unify
from searchcrawl.index.sanitising import clean_text, parse_number
from searchcrawl.index_fields import DATES, FIELDS, NUMBERS, FieldKind, attribute_type

_DAY: Final = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?", re.ASCII)
_DOTS: Final = ".."


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Values of a field from ``low`` to ``high``; None: from the first, to the last.

    ``is_below``: ``high`` itself is not meant. ``fault`` is what cannot be read: then no document is meant. ``typed`` is
    the text of the range, ``name`` what the field was called.
    """

    field: str
    name: str = dataclasses.field(default="", compare=False)
    low: float | datetime | None = None
    high: float | datetime | None = None
    is_below: bool = False
    fault: str = ""
    typed: str = ""


def is_ordered(field: str) -> bool:
    """Whether the values of a field are numbers or moments."""
    return field in NUMBERS or is_of_dates(field) or attribute_type(field) == "number"


def is_of_dates(field: str) -> bool:
    """Whether the values of a field are moments."""
    return field in DATES or attribute_type(field) == "date"


def read_range(field: str, text: str, *, name: str = "") -> Range:
    """The range of a text as it stands after the colon; of a single value that alone."""
    low, dots, high = text.strip().partition(_DOTS)
    high = high if dots else low
    read = _read_moment if is_of_dates(field) else _read_number
    try:
        first = read(low)[0] if low else None
        last, is_below = read(high)[1:] if high else (None, False)
    except ValueError as error:
        return Range(field=field, name=name, fault=str(error), typed=text)
    return Range(field=field, name=name, low=first, high=last, is_below=is_below, typed=text)


def _read_number(text: str) -> tuple[float, float, bool]:
    number = parse_number(text)
    if number is None:
        raise ValueError(f"{text!r} is no number")
    return number, number, False


def _read_moment(text: str) -> tuple[datetime, datetime, bool]:
    """The first moment of a text, the last one, and whether that one is just after it; raises ValueError."""
    try:
        match = _DAY.fullmatch(text)
        if match is None:
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
            moment = moment.replace(microsecond=0)
            return moment, moment + timedelta(seconds=1), True
        year, month, day = (int(part or 1) for part in match.groups())
        first = datetime(year, month, day, tzinfo=UTC)
        if match[3]:
            return first, first + timedelta(days=1), True
        return (
            first,
            datetime(year + (month == 12 or not match[2]), month % 12 + 1 if match[2] else 1, 1, tzinfo=UTC),
            True,
        )
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no date, as 2025-06-30, 2025-06 or 2025") from None


#: What may stand before a colon, besides attributes, and the field that it names; any other prefix is text.
PREFIXES: Final[Mapping[str, str]] = {
    spelling: field.name
    for field in FIELDS
    if field.is_prefix or field.kind in (FieldKind.NUMBER, FieldKind.DATE)
    for spelling in (field.name, *field.other_spellings)
}

#: The most terms of a query, which bound its cost; further terms are ignored. A beginning with words before it (full-te*)
#: counts as two.
MAX_TERMS = 128
#: The most words of all terms together: a phrase that goes on is cut there. So is a query that has more characters.
MAX_WORDS: Final = 512
MAX_CHARS: Final = 32_768

# Two minus signs are text: people look for options such as --force.
_TOKEN = re.compile(
    r'(?P<minus>-(?![-\s]))?(?:(?P<field>[A-Za-z][A-Za-z0-9_.-]*):(?=[^\s]))?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))'
)
#: What counts as a word: each character of Chinese, Japanese and Korean is one.
_WORD: Final = re.compile(rf"[{CJK}]|(?:(?![{CJK}])[^\W_])+")
#: A word with a star at its end, and no other.
_PREFIX = re.compile(r"[^*]*\w\*")
#: What may stand before a colon where no attribute has this name.
_ALIASES: Final = {"modified": "last_modified"}
_QUOTES = str.maketrans(dict.fromkeys("“”„‟", '"'))
#: What a keyboard for Chinese, Japanese and Korean types in full width, such as title：word and word＊.
_FULL_WIDTH: Final = str.maketrans({chr(code + 0xFEE0): chr(code) for code in range(0x21, 0x7F)})


@dataclass(frozen=True, slots=True)
class Everything:
    """Every document of the index."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No document at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word, or with ``phrase`` words that follow each other, in one field or (None) in all default ones.

    With ``prefix`` it is the beginning of words, of one character or more. ``name`` is what the field was called.
    """

    text: str
    field: str | None = None
    name: str = dataclasses.field(default="", compare=False)
    phrase: bool = False
    prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """At least one of two or more clauses."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """All of ``required`` (never empty) and none of ``excluded``."""

    required: tuple[Clause, ...]
    excluded: tuple[Term | Range, ...] = ()


Clause = Term | Range | AnyOf | AllOf | Everything
Query = Everything | Nothing | Term | Range | AnyOf | AllOf


@dataclass(frozen=True, slots=True)
class _Signed:
    """One word of the query as it was typed."""

    clause: Term | Range | Everything
    excluded: bool = False


def find_other_prefixes(words: str) -> set[str]:
    """Words before a colon that are not in PREFIXES, in lower case: each may name an attribute."""
    found = {match["field"].lower() for match in _TOKEN.finditer(_read(words)) if match["field"]}
    return found - PREFIXES.keys()


def is_alias(prefix: str) -> bool:
    """Whether a word before a colon names a field where no attribute has this name."""
    return prefix in _ALIASES


def parse(words: str, attributes: Mapping[str, str] | None = None) -> Query:
    """The tree of a query as typed; never raises, whatever the text.

    ``attributes`` are more fields that may stand before a colon, by their lower-case names.
    """
    text = _read(words)
    required: list[Clause] = []
    excluded: list[Term | Range] = []
    for group in _group_by_or(_tokens(text, attributes or {})):
        if len(group) > 1:
            required.append(AnyOf(clauses=tuple(_as_clause(signed) for signed in group)))
        elif group[0].excluded and isinstance(group[0].clause, Term | Range):
            excluded.append(group[0].clause)
        else:
            required.append(group[0].clause)
    return _join(required, excluded)


def _read(words: str) -> str:
    """A query as typed with the letters that an index has: a name that was copied from a file may have loose accents."""
    text = words[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8").translate(_FULL_WIDTH).translate(_QUOTES)
    return remove_points(unify(clean_text(text)))


def positive_terms(query: Query) -> Iterator[Term]:
    """The terms that are not excluded, in their order: a snippet marks them."""
    if isinstance(query, Term):
        yield query
    elif isinstance(query, AnyOf):
        for clause in query.clauses:
            yield from positive_terms(clause)
    elif isinstance(query, AllOf):
        for clause in query.required:
            yield from positive_terms(clause)


def find_sequence(query: Query) -> str | None:
    """The words without a field that a query requires, in their order; None where they are fewer than two."""
    if not isinstance(query, AllOf):
        return None
    words = [each.text for each in query.required if isinstance(each, Term) and each == Term(text=each.text)]
    return " ".join(words) if len(words) > 1 else None


def to_words(query: Query) -> str:
    """A query as it could be typed, with the names of fields as they were."""
    match query:
        case Term():
            text = f'"{query.text}"' if query.phrase else f"{query.text}{'*' if query.prefix else ''}"
            return text if query.field is None else f"{query.name or query.field}:{text}"
        case Range():
            # Typed without quotes, a moment with a blank would end there.
            typed = query.typed if query.typed.split() == [query.typed] else f'"{query.typed}"'
            return f"{query.name or query.field}:{typed}"
        case AnyOf():
            return " OR ".join(to_words(clause) for clause in query.clauses)
        case AllOf():
            wanted = [to_words(clause) for clause in query.required if not isinstance(clause, Everything)]
            return " ".join([*wanted, *(f"-{to_words(each)}" for each in query.excluded)])
        case _:
            return "*" if isinstance(query, Everything) else ""


def _join(required: list[Clause], excluded: list[Term | Range]) -> Query:
    if not required and not excluded:
        return Nothing()
    # A star beside other words changes nothing.
    kept = [clause for clause in required if not isinstance(clause, Everything)]
    if len(kept) == 1 and not excluded:
        return kept[0]
    if not kept and not excluded:
        return Everything()
    return AllOf(required=tuple(kept) or (Everything(),), excluded=tuple(excluded))


def _as_clause(signed: _Signed) -> Clause:
    """A neighbour of OR as a clause; an excluded term is excluded from all documents."""
    if signed.excluded and isinstance(signed.clause, Term | Range):
        return AllOf(required=(Everything(),), excluded=(signed.clause,))
    return signed.clause


def _group_by_or(tokens: Iterator[_Signed | None]) -> list[list[_Signed]]:
    """Groups terms with OR (None) between them; an OR without two neighbours is left out."""
    groups: list[list[_Signed]] = []
    joined = False
    for token in tokens:
        if token is None:
            joined = True
            continue
        if joined and groups:
            groups[-1].append(token)
        else:
            groups.append([token])
        joined = False
    return groups


def _tokens(text: str, attributes: Mapping[str, str]) -> Iterator[_Signed | None]:
    """The terms of a query, with None for each OR."""
    found, left = 0, MAX_WORDS
    for match in _TOKEN.finditer(text):
        if found >= MAX_TERMS or not left:
            return
        if match.group() == "OR":
            yield None
            continue
        token = _read_term(match, attributes)
        if token is not None:
            clause = token.clause
            found += 2 if isinstance(clause, Term) and clause.prefix and not clause.text.isalnum() else 1
            token, left = _cut_words(token, left)
            yield from (token,) if token is not None else ()


def _cut_words(token: _Signed, most: int) -> tuple[_Signed | None, int]:
    """The term with its first words, and how many more may follow; None for an excluded one, which would exclude more."""
    if not isinstance(token.clause, Term):
        return token, most - 1
    starts = [match.start() for match in itertools.islice(_WORD.finditer(token.clause.text), most + 1)]
    if len(starts) <= most:
        return token, most - len(starts)
    cut = replace(token.clause, text=token.clause.text[: starts[most]].rstrip(), prefix=False)
    return None if token.excluded else replace(token, clause=cut), 0


def _read_term(match: re.Match[str], attributes: Mapping[str, str]) -> _Signed | None:
    """The term of one match, or None where there is none (a lone minus, an empty phrase)."""
    excluded = match["minus"] is not None
    named = match["field"]
    lowered = (named or "").lower()
    field = PREFIXES.get(lowered) or attributes.get(lowered) or _ALIASES.get(lowered)
    phrase = match["phrase"] is not None
    text = match["phrase"] if phrase else match["word"]
    if named and field is None:
        text = f"{named}:{text}"
    if text == "*" and not phrase and not named:
        return None if excluded else _Signed(Everything())
    if field is not None and is_ordered(field):
        return _Signed(read_range(field, text, name=named), excluded)
    if not any(character.isalnum() for character in text):
        return None
    begins = not phrase and _PREFIX.fullmatch(text) is not None
    text = text.removesuffix("*") if begins else " ".join(text.split())
    # Each character of these scripts is a word.
    prefix = begins and not is_cjk(text[-1])
    name = named if named and field is not None else ""
    return _Signed(Term(text=text, field=field, name=name, phrase=phrase, prefix=prefix), excluded)
