"""In which forms a word of a query is looked for besides the one that was typed.

In most European languages it is the word's stem, which an index makes itself; here is which word that is, and what its forms
begin with, which snippets mark. Chinese and Japanese are written without blanks and Korean words carry endings: of these the embedded index keeps *pairs* of neighbouring
characters, which ``read_pairs`` takes from texts and from words alike:

- Chinese and Japanese: the pairs within each run of ideographs, and of each run of katakana. Hiragana, in which Japanese
  writes what it appends to words, is left out. A run of one character is kept as it is.
- Korean: the pairs within each word, without the particle at its end.

Thai has no other forms: its characters are looked for in their order, as those of the others are.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import tantivy

from searchcrawl.index.characters import CJK_RUN, is_cjk
from searchcrawl.index.query import Term
from searchcrawl.index_fields import STEMMED

#: A word with an article or a pronoun before it (l'été, dell'arte), and with the English 's.
_STEMMED: Final = re.compile(r"(?:[^\W\d_]{1,7}['’])?([^\W_]{3,})(?:['’][sS])?")
_MIN_BEGINNING_CHARS: Final = 3
_LONG_BEGINNING_CHARS: Final = 5
_HAN_OR_KATAKANA: Final = re.compile(
    "[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+|[\u30a1-\u30fa\u30fc]+"
)
_HANGUL: Final = re.compile("[\uac00-\ud7a3]+")
#: The longest come first.
_PARTICLE: Final = re.compile(
    "(?<=[\uac00-\ud7a3]{2})(?:에서는|으로는|에게서|으로부터|이라고|에서|으로|에게|한테|까지|부터|처럼|보다|이나|마다|조차|에는"
    "|은|는|이|가|을|를|에|의|로|와|과|도|만)$"
)


def find_stemmed(text: str) -> str | None:
    """The word, in lower case, whose stem is looked for; None for what is not a single word."""
    match = _STEMMED.fullmatch(text)
    return None if match is None or CJK_RUN.search(text) else lower(match[1])


def find_beginning(word: str, stem: str) -> str:
    """What the forms of a word begin with, by its stem, which has no accents; empty where that is too short."""
    count = 0
    for letter, other in zip(word, stem, strict=False):
        if fold(letter) != other:
            break
        count += 1
    # The stem of both library and libraries is librari.
    beginning = word[: count - 1] if count > _LONG_BEGINNING_CHARS and word[count - 1] == "i" else word[:count]
    return beginning if len(beginning) >= _MIN_BEGINNING_CHARS else ""


def most_added(beginning: str) -> int:
    """How many letters may follow this beginning in a form of the word; cat is no beginning of category."""
    return 4 if len(beginning) >= _LONG_BEGINNING_CHARS else 2


def lower(word: str) -> str:
    """The word in lower case as an index has it: each letter stays one, wherever it stands (İ, Σ)."""
    return "".join(letter.lower()[0] for letter in word)


def fold(letter: str) -> str:
    """The letter in lower case and without accents."""
    return unicodedata.normalize("NFD", letter)[0].lower()


def read_runs(text: str, language: str) -> Iterator[str]:
    """What stays of the words of a text in ``zh``, ``ja`` or ``ko`` without what these languages append."""
    for run in (_HANGUL if language == "ko" else _HAN_OR_KATAKANA).findall(text):
        yield _PARTICLE.sub("", run) if language == "ko" else run


def read_pairs(text: str, language: str) -> Iterator[list[str]]:
    """The pairs of each run of a text in ``zh``, ``ja`` or ``ko``, in their order."""
    for run in read_runs(text, language):
        yield [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]


def find_required(text: str, language: str) -> list[tuple[str, ...]]:
    """What a document must have of a word, one of each tuple; empty for what is no word in characters of CJK alone."""
    if not is_cjk(text):
        return []
    return [each for pairs in read_pairs(text, language) for each in _require_pairs(pairs)]


def _require_pairs(pairs: Sequence[str]) -> list[tuple[str, ...]]:
    """What a document must have of the pairs of a run: one of each tuple, so that a pair covers each character.

    A word is mostly made of shorter ones, between which a text may have a particle: the pair across both is missing there.
    """
    inner = itertools.pairwise(pairs[1:-1])
    return [(pairs[0],), *inner, *(((pairs[-1],),) if len(pairs) > 1 else ())]


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
    return _build_analyzer(
        tantivy.Filter.remove_long(MAX_WORD_BYTES),
        tantivy.Filter.lowercase(),
        tantivy.Filter.stopword("english"),
        *((tantivy.Filter.stemmer(STEMMED[language]),) if language else ()),
        tantivy.Filter.ascii_fold(),
    )


def _build_analyzer(*filters: tantivy.Filter) -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for each in filters:
        builder = builder.filter(each)
    return builder.build()


@cache
def build_folder() -> tantivy.TextAnalyzer:
    """Builds the analysis of the beginnings of words: lower case, no accents; a stop word may be one."""
    return _build_analyzer(tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold())


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
    return _build_analyzer(tantivy.Filter.lowercase(), tantivy.Filter.stopword(STEMMED[language]))


def find_beginnings(text: str, languages: Sequence[str]) -> Iterator[str]:
    """What the forms of a word of a query begin with in these languages."""
    word = find_stemmed(text)
    for language in languages:
        if language in STEMMED and word is not None:
            yield from filter(None, (find_beginning(word, stem) for stem in find_stems(word, language)))
        elif language not in STEMMED and is_cjk(text):
            yield from (run for run in read_runs(text, language) if len(run) > 1)
