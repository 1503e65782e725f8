"""Why a query finds nothing, and which similar one finds something: the notes and the suggestion of ``search``."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from searchcrawl.index.query import (
    PREFIXES,
    AllOf,
    AnyOf,
    Clause,
    Everything,
    Nothing,
    Query,
    Term,
    find_other_prefixes,
    is_alias,
    parse,
    to_words,
)
from searchcrawl.index.ranges import Range
from searchcrawl.index.receiver import SearchIndex, SearchQuery, SpellingIndex
from searchcrawl.index.stems import is_in_no_index
from searchcrawl.sources.checking import guess

#: The note on an index without documents; that it was lost says more.
EMPTY_INDEX: Final = "the index has no documents"
#: So many words are looked for alone.
_MOST_WORDS: Final = 10
_LEAST_SPELLED_CHARS: Final = 4
#: The least similarity of a word to the one that is suggested for it, as difflib counts it.
_LEAST_SIMILARITY: Final = 0.7


class Explanation(NamedTuple):
    """``notes``: why nothing is found; ``suggestion``: a query that finds something, or None."""

    notes: list[str]
    suggestion: str | None = None


def explain_nothing(index: SearchIndex, query: SearchQuery, names: Mapping[str, str]) -> Explanation:
    """Why a query in the names of the index found nothing; it asks the index a few times.

    ``names`` are those of attributes by their fields.
    """
    asked = parse(query.words, query.attributes)
    notes = list(_read_faults(asked, query, names))
    if isinstance(asked, Nothing) or (notes and not _has_words(asked)):
        return Explanation(notes or ["there is no word to look for"])

    plain = replace(query, rows=0, start=0, facets=(), sort=None)
    everywhere = replace(plain, source=None, groups=(), filters=())

    def count(words: str) -> int:
        return index.search(replace(plain, words=words)).total

    limits = list(_show_limits(query, names))
    if count("*") == 0:
        reason = f"there is no document with {' and '.join(limits)}" if limits else EMPTY_INDEX
        return Explanation([*notes, reason])
    missing = [each for each in _required(asked) if count(to_words(each, names)) == 0]
    missing = [each for each in missing if not _is_faulty(each)]
    for each in missing:
        elsewhere = limits and index.search(replace(everywhere, words=to_words(each, names))).total
        where = f", with {' and '.join(limits)}" if elsewhere else ""
        notes.append(f"no document has {to_words(each, names)}{where}")
    if not missing and not notes:
        notes.append("no document has all of this, although each part alone is found")
    return Explanation(notes, _suggest(index, asked, missing, names, count))


def _read_faults(asked: Query, query: SearchQuery, names: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with a query itself."""
    leaves = list(dict.fromkeys(_read_leaves(asked)))
    words = [each for each in leaves if isinstance(each, Term)]
    if words and all(map(_is_stop_word, leaves)):
        yield f"only stop words, which are in no index: {', '.join(dict.fromkeys(each.text for each in words))}"
    for each in leaves:
        if isinstance(each, Range) and each.fault:
            yield f"{names.get(each.field, each.field)}: {each.fault}"
    known = {*PREFIXES, *query.attributes}
    for prefix in sorted(find_other_prefixes(query.words) - query.attributes.keys()):
        if not is_alias(prefix) and any(each.text.lower().startswith(f"{prefix}:") for each in words):
            yield f"unknown field: {prefix}{guess(prefix, sorted(known))}; it was looked for as text"


def _read_leaves(asked: Query) -> Iterator[Query]:
    """The words and ranges of a query that are not excluded, in their order, also those on both sides of an OR."""
    match asked:
        case AnyOf(clauses=clauses) | AllOf(required=clauses):
            for each in clauses:
                yield from _read_leaves(each)
        case _:
            yield asked


def _has_words(asked: Query) -> bool:
    """Whether there is anything in a query that a document may have."""
    return any(not _is_stop_word(each) and not _is_faulty(each) for each in _read_leaves(asked))


def _is_stop_word(clause: Query) -> bool:
    """Whether it is a word that is in no index; a beginning may be that of other words, the name of a source is one."""
    return isinstance(clause, Term) and not clause.prefix and clause.field != "source" and is_in_no_index(clause.text)


def _is_faulty(clause: Query) -> bool:
    return isinstance(clause, Range) and bool(clause.fault)


def _required(asked: Query) -> list[Clause]:
    """The parts of a query that a document must all have; at most _MOST_WORDS."""
    parts: Sequence[Clause] = (
        asked.required if isinstance(asked, AllOf) else () if isinstance(asked, Nothing) else (asked,)
    )
    found: list[Clause] = [each for each in parts if not isinstance(each, Everything)]
    return [each for each in found if not _is_stop_word(each)][:_MOST_WORDS]


def _show_limits(query: SearchQuery, names: Mapping[str, str]) -> Iterator[str]:
    """What a query is limited to besides its words."""
    if query.source is not None:
        yield f"source {query.source}"
    if query.groups:
        yield f"group {' or '.join(query.groups)}"
    yield from (f"{names.get(field, field)} {value}" for field, value in query.filters)


def _suggest(
    index: SearchIndex, asked: Query, missing: list[Clause], names: Mapping[str, str], count: Callable[[str], int]
) -> str | None:
    """The query with the words that no document has spelled as in the index, or without them; None if it finds nothing."""
    if not missing:
        return None
    kept = [
        better
        for each in _required(asked)
        if (better := _spell(index, each) if each in missing else each) is not None and not _is_faulty(better)
    ]
    if not kept:
        return None
    excluded = asked.excluded if isinstance(asked, AllOf) else ()
    words = to_words(AllOf(required=tuple(kept), excluded=excluded), names)
    return words if count(words) else None


def _spell(index: SearchIndex, clause: Clause) -> Term | None:
    """The word as it is spelled in the index; None if there is none like it."""
    if not isinstance(clause, Term) or clause.phrase or clause.prefix or not isinstance(index, SpellingIndex):
        return None
    if len(clause.text) < _LEAST_SPELLED_CHARS or not clause.text.isalnum():
        return None
    word = clause.text.lower()
    found = difflib.get_close_matches(word, index.find_spellings(word), n=1, cutoff=_LEAST_SIMILARITY)
    return replace(clause, text=found[0]) if found else None
