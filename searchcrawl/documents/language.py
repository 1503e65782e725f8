"""The language of a document, from what declares it, its text, and what its host usually has (C9).

All of these are functions of their arguments alone: the same document has the same language in each run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

#: The part of a text from which its language is detected: its beginning, and as much from its middle.
_PART_CHARS: Final = 2_000
#: A text with fewer letters is names and numbers, which are of no language.
_MIN_LETTERS: Final = 24
#: A text with fewer letters has another language than its host only where that is beyond doubt.
_FEW_LETTERS: Final = 200
#: The share of the documents of a host, in percent, from which on a language is its usual one, and down to which it stays.
_ENTERS_AT: Final = 60
_STAYS_DOWN_TO: Final = 50
#: A text is clearly of a language with so many letters, of which it has so large a share, and with so high a score: texts in
#: 21 languages had 619 to 1024; of 15,590 parts of source files, 28 of which were told wrongly, one was clear.
_CLEAR_LETTERS: Final = 150
_CLEAR_PERCENT: Final = 90
_CLEAR_SCORE: Final = 600
#: The share of the letters that one language has at least in a text of this language.
_MIN_PERCENT: Final = 50
#: What CLD2 calls otherwise than ISO 639-1.
_OTHER_CODES: Final = {"iw": "he", "in": "id", "jw": "jv", "ji": "yi", "mo": "ro", "zh-Hant": "zh", "nb": "no"}
#: A result such as xx-Copt names a script.
_CODE: Final = re.compile(r"(?!xx|un)[a-z]{2,3}")
#: A longer text has letters enough, if it has any words.
_SHORT_CHARS: Final = 1_000
#: Control characters and others that the library refuses.
_NO_TEXT: Final = re.compile(r"[^\w!-~ ]+")

_KANA: Final = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HANGUL: Final = re.compile("[\uac00-\ud7a3]")
_IDEOGRAPH: Final = re.compile("[\u4e00-\u9fff]")
#: Nearly all texts have a few of these at most, and are of no script that is looked for.
_BEYOND_LATIN: Final = re.compile("[^\x00-\u036f]")
#: The part of a text in which characters are counted to find its script.
_SCRIPT_CHARS: Final = 400
_CJK_LETTERS: Final = 8
_MIN_CJK_SHARE: Final = 0.2
_MIN_KANA_SHARE: Final = 0.1

#: The languages that are written in scripts other than the Latin one, by a character class of each script.
_SCRIPTS: Final[Mapping[re.Pattern[str], frozenset[str]]] = {
    re.compile(f"[{characters}]"): frozenset(languages.split())
    for characters, languages in {
        "\u0370-\u03ff\u1f00-\u1fff": "el",
        "\u0400-\u052f": "ru uk be bg mk sr",
        "\u0530-\u058f": "hy",
        "\u0590-\u05ff": "he yi",
        "\u0600-\u06ff\u0750-\u077f": "ar fa ur ps",
        "\u0900-\u097f": "hi mr ne sa",
        "\u0980-\u09ff": "bn as",
        "\u0b80-\u0bff": "ta",
        "\u0c00-\u0c7f": "te",
        "\u0e00-\u0e7f": "th",
        "\u10a0-\u10ff": "ka",
        "\u3041-\u30ff": "ja",
        "\u3400-\u9fff": "zh ja",
        "\uac00-\ud7a3": "ko",
    }.items()
}
_LATIN: Final = frozenset({
    "ca", "cs", "da", "de", "en", "es", "et", "eu", "fi", "fr", "ga", "gl", "hr", "hu", "is", "it", "lt",
    "lv", "nb", "nl", "nn", "no", "pl", "pt", "ro", "sk", "sl", "sv", "tr", "vi",
})  # fmt: skip
#: Languages that have one script; of others nothing is known.
_OF_ONE_SCRIPT: Final = _LATIN.union(*_SCRIPTS.values())
#: With fewer letters a text of another script may be a name in it.
_MIN_OTHER_LETTERS: Final = 12
_MIN_OTHER_SHARE: Final = 0.6


def choose_declared(text: str, declared: Iterable[str]) -> str:
    """Of the tags that a document declares, the best first, the first one that is written in the script of its text."""
    return next((tag for tag in declared if tag and _can_write(tag.partition("-")[0], text)), "")


def weigh_usual(text: str, told: str, usual: str) -> str:
    """The language of a text that declares none, on a host where most documents have the language ``usual``.

    ``told`` is what ``detect_language`` finds without it. It counts where that is clear, where the text is sure all the
    same, or in a script that the usual language does not have.
    """
    if not usual or told == usual or not _can_write(usual, text) or (told and _is_clear(text)):
        return told
    return detect_language(text, usual=usual) or usual


def select_usual(counts: Mapping[str, int], *, before: str, least: int) -> str:
    """The language that most documents of a host have, of how many have each; empty where none has, or they are too few.

    One that was the usual one, ``before``, stays so down to half of them, so that it does not come and go.
    """
    documents = sum(counts.values())
    if documents < least:
        return ""
    if counts.get(before, 0) * 100 >= documents * _STAYS_DOWN_TO:
        return before
    return next((code for code, count in counts.items() if count * 100 >= documents * _ENTERS_AT), "")


def detect_language(text: str, *, usual: str = "") -> str:
    """The code of a text's language (ISO 639-1, lower case); empty where it cannot be told for sure.

    Japanese, Korean and Chinese are told by their scripts, the others by CLD2, which takes about 0.1 ms. A short text
    in another language than ``usual``, a code as well, is not sure.
    """
    if not text.isascii() and (language := _detect_by_script(text[:_SCRIPT_CHARS])):
        return language
    letters = _count_letters(text)
    if letters < _MIN_LETTERS:
        return ""
    detected = _ask_cld2(_cut_parts(text), usual).code
    return "" if usual and letters < _FEW_LETTERS and detected != usual else detected


def _is_clear(text: str) -> bool:
    """Whether nearly all of a text is in one language, and as its speakers write it, so that no other is possible.

    A hint makes Portuguese of Spanish: what is clear needs none. Listings and lists of names are never clear.
    """
    return _count_letters(text) >= _CLEAR_LETTERS and _ask_cld2(_cut_parts(text), "").is_clear


def _count_letters(text: str) -> int:
    return sum(map(str.isalpha, text)) if len(text) < _SHORT_CHARS else _SHORT_CHARS


def _cut_parts(text: str) -> str:
    """The beginning of a text, often menus, and a part of its middle."""
    if len(text) <= 2 * _PART_CHARS:
        return text
    middle = len(text) // 2
    return f"{text[:_PART_CHARS]} {text[middle : middle + _PART_CHARS]}"


class _Answer(NamedTuple):
    code: str
    is_clear: bool


def _ask_cld2(text: str, usual: str) -> _Answer:
    # Loaded for the first document that does not name its language.
    import pycld2  # noqa: PLC0415  # heavy

    hint = {"hintLanguage": usual} if usual else {}
    try:
        found = pycld2.detect(text.encode("utf-8", "replace"), isPlainText=True, **hint)
    except pycld2.error:
        found = pycld2.detect(_NO_TEXT.sub(" ", text).encode("utf-8", "replace"), isPlainText=True)
    is_reliable, _, languages = found
    _, code, percent, score = languages[0]
    code = _OTHER_CODES.get(code, code)
    is_sure = is_reliable and percent >= _MIN_PERCENT and _CODE.fullmatch(code) is not None
    return _Answer(code if is_sure else "", is_sure and percent >= _CLEAR_PERCENT and score >= _CLEAR_SCORE)


def _can_write(language: str, text: str) -> bool:
    """Whether a text may be of a language: not if nearly all of it is in a script that the language does not have.

    Latin letters say nothing: each language has them in code and names.
    """
    if text.isascii() or language not in _OF_ONE_SCRIPT:
        return True
    head = text[:_SCRIPT_CHARS]
    if len(_BEYOND_LATIN.findall(head)) < _MIN_OTHER_LETTERS:
        return True
    least = max(_MIN_OTHER_LETTERS, _MIN_OTHER_SHARE * sum(map(str.isalpha, head)))
    if sum(1 for character in head if character > "\u036f" and character.isalpha()) < least:
        return True
    known = [(len(script.findall(head)), languages) for script, languages in _SCRIPTS.items()]
    return sum(count for count, languages in known if language not in languages) < least


def _detect_by_script(head: str) -> str:
    """ja, ko or zh if a good part of the text is in their characters; empty for other scripts."""
    if len(_BEYOND_LATIN.findall(head)) < _CJK_LETTERS:
        return ""
    kana, hangul, ideographs = (len(script.findall(head)) for script in (_KANA, _HANGUL, _IDEOGRAPH))
    together = kana + hangul + ideographs
    if together < _CJK_LETTERS or together < len(head) * _MIN_CJK_SHARE:
        return ""
    if hangul > kana + ideographs:
        return "ko"
    return "ja" if kana >= together * _MIN_KANA_SHARE else "zh"
