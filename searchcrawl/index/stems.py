"""The stems of words, and what the forms of a word begin with: snippets mark these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import tantivy

from searchcrawl.index.forms import CJK_RUN, find_beginning, find_stemmed, is_cjk, read_runs
from searchcrawl.index.query import Term
from searchcrawl.index_fields import STEMMED

#: The library has no list for the others; the English stop words are in no field.
_WITH_STOP_WORDS: Final = frozenset(STEMMED) - {"en", "ro"}
#: The longest word that is one, in bytes.
MAX_WORD_BYTES: Final = 255


@cache
def build_stemmer(language: str) -> tantivy.TextAnalyzer:
    """Builds the analysis of text: lower case, no accents, no English stop words; positions stay (G2).

    With a language of STEMMED the words are stems. The stop words are the English ones in each language: a word that is
    none in one language only would be required in documents of all others.
    """
    filters = (
        tantivy.Filter.remove_long(MAX_WORD_BYTES),
        tantivy.Filter.lowercase(),
        tantivy.Filter.stopword("english"),
        *((tantivy.Filter.stemmer(STEMMED[language]),) if language else ()),
        tantivy.Filter.ascii_fold(),
    )
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for each in filters:
        builder = builder.filter(each)
    return builder.build()


@cache
def build_folder() -> tantivy.TextAnalyzer:
    """Builds the analysis of the beginnings of words: lower case, no accents; a stop word may be one."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    return builder.filter(tantivy.Filter.ascii_fold()).build()


def find_stems(word: str, language: str) -> tuple[str, ...]:
    """The stems that a word (``find_stemmed``) may have in a language of STEMMED, its own first; none of a stop word."""
    words = [word]
    if language == "nl":
        # The stem of dagen is daag, that of dag is dag.
        words += [f"{word}en", word.removesuffix("en")]
    stems = [build_stemmer(language).analyze(each) for each in words]
    return tuple(dict.fromkeys(stem for each in stems for stem in each)) if stems[0] else ()


def is_in_no_index(text: str) -> bool:
    """Whether a text is of English stop words and punctuation alone, or a word that is too long."""
    return CJK_RUN.search(text) is None and not build_stemmer("").analyze(text)


def find_optional(terms: Sequence[Term], languages: Sequence[str]) -> dict[Term, list[str]]:
    """Of required words those that are stop words of a language, as der in German: its documents need not have them.

    A query of such words alone requires them, too. Phrases, words of a field and English stop words, which no document
    has, are none of them.
    """
    different = dict.fromkeys(terms)
    words = [
        term
        for term in different
        if term.field is None and not term.phrase and term.text.isalpha() and not _is_stop_word(term.text, "en")
    ]
    found: dict[Term, list[str]] = {}
    for language in _WITH_STOP_WORDS.intersection(languages):
        stops = [term for term in words if _is_stop_word(term.text, language)]
        for term in stops if len(stops) < len(different) else ():
            found.setdefault(term, []).append(language)
    return {term: sorted(each) for term, each in found.items()}


def _is_stop_word(word: str, language: str) -> bool:
    return not _build_stop_filter(language).analyze(word)


@cache
def _build_stop_filter(language: str) -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    return builder.filter(tantivy.Filter.stopword(STEMMED[language])).build()


def find_beginnings(text: str, languages: Sequence[str]) -> Iterator[str]:
    """What the forms of a word of a query begin with in these languages."""
    word = find_stemmed(text)
    for language in languages:
        if language in STEMMED and word is not None:
            yield from filter(None, (find_beginning(word, stem) for stem in find_stems(word, language)))
        elif language not in STEMMED and is_cjk(text):
            yield from (run for run in read_runs(text, language) if len(run) > 1)
