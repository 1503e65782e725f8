"""Why a query finds nothing, and which similar one finds something: the notes and the suggestion of ``search``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from searchcrawl.index.characters import CJK_RUN
from searchcrawl.index.forms import MAX_WORD_BYTES, is_in_no_index
from searchcrawl.index.query import (
    PREFIXES,
    AllOf,
    AnyOf,
    Clause,
    Everything,
    Nothing,
    Query,
    Range,
    Term,
    find_other_prefixes,
    is_alias,
    parse,
    to_words,
)
from searchcrawl.index.receiver import SearchIndex, SearchQuery, SpellingIndex
from searchcrawl.sources.checking import guess

#: The note on an index without documents; that it was lost says more.
EMPTY_INDEX: Final = "the index has no documents"
#: So many words are looked for alone.
_MOST_WORDS: Final = 10
_MOST_CHARS: Final = 300
_LEAST_SPELLED_CHARS: Final = 4
#: The least similarity of a word to the one that is suggested for it, as difflib counts it.
_LEAST_SIMILARITY: Final = 0.7


class Explanation(NamedTuple):
    """``notes``: why nothing is found; ``suggestion``: a query that finds something, or None."""

    notes: list[str]
    suggestion: str | None = None


def explain_nothing(index: SearchIndex, query: SearchQuery, names: Mapping[str, str]) -> Explanation:
    """Why a query in the names of the index found nothing; it asks the index a few times.

    ``names`` are those of the fields of filters, as they were typed. A note on a very long query is cut.
    """
    notes, suggestion = _explain(index, query, names)
    return Explanation([f"{note[:_MOST_CHARS]}…" if len(note) > _MOST_CHARS else note for note in notes], suggestion)


def _explain(index: SearchIndex, query: SearchQuery, names: Mapping[str, str]) -> Explanation:
    asked = parse(query.words, query.attributes)
    notes = list(_read_faults(asked, query))
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
    missing = [each for each in _required(asked) if count(to_words(each)) == 0]
    missing = [each for each in missing if not _is_faulty(each)]
    for each in missing:
        elsewhere = limits and index.search(replace(everywhere, words=to_words(each))).total
        where = f", with {' and '.join(limits)}" if elsewhere else ""
        notes.append(f"no document has {to_words(each)}{where}")
    if not missing and not notes:
        notes.append("no document has all of this, although each part alone is found")
    return Explanation(notes, _suggest(index, asked, missing, count))


def _read_faults(asked: Query, query: SearchQuery) -> Iterator[str]:
    """What is wrong with a query itself."""
    leaves = list(dict.fromkeys(_read_leaves(asked)))
    words = [each for each in leaves if isinstance(each, Term)]
    long = [each for each in words if _has_long_word(each.text)]
    if long:
        yield f"no index has words of more than {MAX_WORD_BYTES} bytes"
    if words and all(map(_is_stop_word, leaves)) and not long:
        yield f"only stop words, which are in no index: {', '.join(dict.fromkeys(each.text for each in words))}"
    for each in leaves:
        if isinstance(each, Range) and each.fault:
            yield f"{each.name or each.field}: {each.fault}"
    known = {*PREFIXES, *query.attributes}
    for prefix in sorted(find_other_prefixes(query.words) - query.attributes.keys()):
        typed = [each.text.lower().removeprefix(f"{prefix}:") for each in words if _begins_with(each, f"{prefix}:")]
        # What is before :// is no field, but the beginning of a URL.
        if not is_alias(prefix) and any(not each.startswith("//") for each in typed):
            yield f"unknown field: {prefix}{guess(prefix, sorted(known))}; it was looked for as text"


def _begins_with(term: Term, beginning: str) -> bool:
    return term.text.lower().startswith(beginning)


def _has_long_word(text: str) -> bool:
    return any(len(word.encode()) > MAX_WORD_BYTES for word in re.findall(r"[^\W_]+", CJK_RUN.sub(" ", text)))


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


def _suggest(index: SearchIndex, asked: Query, missing: list[Clause], count: Callable[[str], int]) -> str | None:
    """The query with the words that no document has spelled as in the index, or without them; None if it finds nothing."""
    if not missing:
        return None
    required = _required(asked)
    spelled = [_spell(index, each) if each in missing else each for each in required]
    excluded = asked.excluded if isinstance(asked, AllOf) else ()
    for parts in (spelled, [each for each in required if each not in missing]):
        kept = tuple(each for each in parts if each is not None and not _is_faulty(each))
        words = to_words(AllOf(required=kept, excluded=excluded))
        if kept and count(words):
            return words
    return None


def _spell(index: SearchIndex, clause: Clause) -> Term | None:
    """The word as it is spelled in the index, a URL as one of a document; None if there is none like it."""
    if isinstance(clause, Term) and clause.field is None and "://" in clause.text:
        return replace(clause, field="url")
    if not isinstance(clause, Term) or clause.phrase or clause.prefix or not isinstance(index, SpellingIndex):
        return None
    if len(clause.text) < _LEAST_SPELLED_CHARS or not clause.text.isalnum():
        return None
    word = clause.text.lower()
    found = difflib.get_close_matches(word, index.find_spellings(word), n=1, cutoff=_LEAST_SIMILARITY)
    return replace(clause, text=found[0]) if found else None
