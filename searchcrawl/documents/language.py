"""The languages of a document, from what declares them, its text, and what its host usually has (C9).

All of these are functions of their arguments alone: the same document has the same languages in each run.

What is declared is believed unless the text is clearly of another language; of a text of two languages it is the main one.
The letters of the whole text tell its scripts, and prose from three parts of it tells CLD2 its languages. Where CLD2 is
silent a script other than the Latin one has a language, too.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from searchcrawl.items import Guess


class Script(NamedTuple):
    """A script other than the Latin one: how its letters begin in UTF-8, and which languages are written in it.

    The first language is the one that is taken where nothing tells which of them it is. A character of it says as much as
    ``letters`` Latin ones.
    """

    beginnings: tuple[bytes, ...]
    languages: tuple[str, ...]
    letters: int = 1

    @property
    def is_of_one(self) -> bool:
        """Whether its letters alone tell the language: Japanese has kana besides ideographs."""
        return len(self.languages) == 1 or self.languages[0] == "zh"

    @property
    def bytes_a_letter(self) -> float:
        """How many bytes of UTF-8 say as much as a Latin letter."""
        return (2 if self.beginnings[0] < b"\xe0" else 3) / self.letters


class Scripts(NamedTuple):
    """The letters of a text: those of the Latin script, and those of the others by the first language of each."""

    latin: int
    others: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many letters there are."""
        return self.latin + sum(self.others.values())

    def share(self, first: str) -> float:
        """The share of the letters that a script has, by its first language."""
        return self.others.get(first, 0) / max(self.total, 1)


def _script(beginnings: str, languages: str, letters: int = 1) -> Script:
    return Script(tuple(map(bytes.fromhex, beginnings.split())), tuple(languages.split()), letters)


_KANA: Final = _script("e381 e382 e383", "ja", 3)
_HAN: Final = _script("e4 e5 e6 e7 e8 e9", "zh ja", 3)
#: By the first language of each. The blocks of Armenian and Hebrew share a first byte, which few of their letters have.
OTHERS: Final[Mapping[str, Script]] = {
    script.languages[0]: script
    for script in (
        _script("ce cf e1bc e1bd e1be e1bf", "el"),
        _script("d0 d1 d2 d3", "ru uk be bg mk sr kk ky mn tg tt"),
        _script("d4 d5", "hy"),
        _script("d7", "he yi"),
        _script("d8 d9 da db", "ar fa ur ps ug ckb sd"),
        _script("e0a4 e0a5", "hi mr ne sa"),
        _script("e0a6 e0a7", "bn as"),
        _script("e0a8 e0a9", "pa"),
        _script("e0aa e0ab", "gu"),
        _script("e0ae e0af", "ta"),
        _script("e0b0 e0b1", "te"),
        _script("e0b2 e0b3", "kn"),
        _script("e0b4 e0b5", "ml"),
        _script("e0b6 e0b7", "si"),
        _script("e0b8 e0b9", "th"),
        _script("e0ba e0bb", "lo"),
        _script("e180 e181", "my"),
        _script("e183", "ka"),
        _script("e188 e189 e18a e18b e18c", "am ti"),
        _script("e19e e19f", "km"),
        _KANA,
        _HAN,
        _script("eb ec ed", "ko", 3),
    )
}
#: The languages that the Latin script is sure of; of others nothing is known.
LATIN: Final = frozenset({
    "ca", "cs", "da", "de", "en", "es", "et", "eu", "fi", "fr", "ga", "gl", "hr", "hu", "id", "is", "it", "lt",
    "lv", "nb", "nl", "nn", "no", "pl", "pt", "ro", "sk", "sl", "sv", "tr", "vi",
})  # fmt: skip
#: Language → the first language of its script. Of Japanese that is kana, also where it is written in ideographs.
SCRIPT_OF: Final[Mapping[str, str]] = {
    language: first for first, script in reversed(list(OTHERS.items())) for language in script.languages
}
#: So many stretches of a long text are looked at, and so many characters of each.
_STRETCHES: Final = 16
#: … or so many of one that has no other letters than Latin ones.
_ENOUGH: Final = 2_048
_STRETCH: Final = 128
#: Of a text that has kana at all so large a share of its ideographs and kana is kana, if it is Japanese.
_MIN_KANA_SHARE: Final = 0.1
#: A text has letters of another script at least where this share of them is none of the Latin one.
_FEW: Final = 0.02

_LETTERS: Final = string.ascii_letters.encode()
_NO_LETTERS: Final = bytes(code for code in range(0xC0) if code not in _LETTERS)
#: Latin letters with accents, symbols, punctuation, and what is beside the planes of living languages.
_LATIN_BYTES: Final = bytes(range(0xC3, 0xCE))
_EXTENDED_LATIN: Final = (b"\xe1\xb8", b"\xe1\xb9", b"\xe1\xba", b"\xe1\xbb")
_FIRST_OF_EXTENDED: Final = 0xE1
_NEUTRAL: Final = bytes([0xC0, 0xC1, 0xC2, 0xE2, *range(0xEE, 0x100)])


def weigh_scripts(text: str) -> Scripts:
    """The letters of a text by their scripts, of a long one those of stretches all over it.

    Katakana and ideographs of a text with kana count as Japanese.
    """
    if text.isascii():
        return Scripts(len(text[:_ENOUGH].encode().translate(None, _NO_LETTERS)), {})
    raw = _sample(text).encode("utf-8", "replace")
    firsts = raw.translate(None, _NO_LETTERS)
    plain = firsts.translate(None, _NEUTRAL)
    beyond = plain.translate(None, _LETTERS + _LATIN_BYTES)
    latin = len(plain) - len(beyond)
    if len(beyond) <= len(plain) * _FEW:
        return Scripts(latin, {})
    others = {first: count * OTHERS[first].letters for first in OTHERS if (count := _count(raw, beyond, first))}
    # Those of Vietnamese begin like letters of several other scripts.
    extended = sum(map(raw.count, _EXTENDED_LATIN)) if _FIRST_OF_EXTENDED in beyond else 0
    if "ja" in others and others["ja"] >= _MIN_KANA_SHARE * (others["ja"] + others.get("zh", 0)):
        others["ja"] += others.pop("zh", 0)
    return Scripts(latin + extended, others)


def _sample(text: str) -> str:
    if len(text) <= _STRETCHES * _STRETCH:
        return text
    step = (len(text) - _STRETCH) / (_STRETCHES - 1)
    begins = [int(number * step) for number in range(_STRETCHES)]
    return "".join([text[begin : begin + _STRETCH] for begin in begins])


def _count(raw: bytes, firsts: bytes, language: str) -> int:
    return sum(
        firsts.count(each) if len(each) == 1 else raw.count(each) if each[:1] in firsts else 0
        for each in OTHERS[language].beginnings
    )


#: What CLD2 calls otherwise than ISO 639-1.
_OTHER_CODES: Final = {
    "iw": "he",
    "in": "id",
    "jw": "jv",
    "ji": "yi",
    "mo": "ro",
    "zh-Hant": "zh",
    "nb": "no",
    "nn": "no",
}
#: A result such as xx-Copt names a script.
_CODE: Final = re.compile(r"(?!xx|un)[a-z]{2,3}")
#: Control characters and others that the library refuses.
_NO_TEXT: Final = re.compile(r"[^\w!-~ ]+")
#: In so many bytes of a language it is one of those of a text, whatever the library says of it all.
_LONG: Final = 150


class Share(NamedTuple):
    """A language of a text: how much of it in percent of its bytes, and how typical of the language that is (500 to 1,500)."""

    percent: int
    score: float


class DetectedLanguages(NamedTuple):
    """The languages of a text by code, the one with most of it first, and the stretches of each.

    ``is_reliable`` is what CLD2 says of it all.
    """

    is_reliable: bool
    shares: Mapping[str, Share]
    stretches: Mapping[str, bytes]


def ask(text: bytes, hint: str = "") -> DetectedLanguages:
    """The languages of a text in UTF-8 (ISO 639-1, lower case), in linear time: 1,000 bytes take about 20 µs.

    ``hint`` is the language that is expected.
    """
    import pycld2  # noqa: PLC0415  # heavy

    options = {"hintLanguage": hint} if hint else {}
    try:
        found = pycld2.detect(text, isPlainText=True, returnVectors=True, **options)
    except pycld2.error:
        text = _NO_TEXT.sub(" ", text.decode("utf-8", "replace")).encode()
        found = pycld2.detect(text, isPlainText=True, returnVectors=True)
    is_reliable, _, languages, vectors = found
    shares = {
        code: Share(percent, score) for _, name, percent, score in languages if (code := _read_code(name)) and percent
    }
    stretches: dict[str, bytes] = {}
    for begin, size, _, name in vectors if len(vectors) > 1 else ():
        if code := _read_code(name):
            stretches[code] = stretches.get(code, b"") + text[begin : begin + size]
    for code, stretch in stretches.items():
        # A language may have long stretches, and yet be in no doubtful answer.
        if code not in shares and len(stretch) >= _LONG:
            shares[code] = Share(100 * len(stretch) // len(text), 0)
    return DetectedLanguages(is_reliable, shares, stretches)


def _read_code(name: str) -> str:
    code = _OTHER_CODES.get(name, name)
    return code if _CODE.fullmatch(code) else ""


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
#: A text is of a language of which it has at least this share, where CLD2 is sure; else with this share and this score.
_SURE_PERCENT: Final = 45
_UNSURE: Final = ((60, 350), (50, 550))
#: … and so high a score has a text in one of several languages of a script: Russian manuals with Latin names have 450 to 600.
_OF_SCRIPT_SCORE: Final = 350
#: The share of a text that a language has at least to be one of its languages; what is declared is the main one from here on.
_SECOND: Final = 0.2
_SECOND_LETTERS: Final = 100
_SECOND_PERCENT: Final = 80
_PRIOR: Final = 0.4
#: Beside English one in Latin letters is the main one from this share on: names and terms in it look English, too.
_BESIDE_ENGLISH: Final = 0.3
#: With fewer letters a text of another script may be a name in it.
_MIN_OTHER_LETTERS: Final = 12
_MIN_OTHER_SHARE: Final = 0.6

#: Languages that are taken for each other: one of them outweighs another only in a text that is clearly its own, and none is a
#: second language beside another.
_ALIKE: Final = tuple(
    frozenset(languages.split())
    for languages in (
        "no da sv", "hr bs sr sl", "cs sk", "es gl pt ca", "id ms", "ru uk be bg mk sr", "nl af", "hi mr ne", "tr az", "de lb",
        "fi et",
    )
)  # fmt: skip
#: Words that no other language has as often: at least one of so many words, at the beginning, in the middle and at the end of
#: a text, in so many characters of each. Of 2,200 manual pages that declare English and pass, CLD2 finds one to be in another language: a
#: glossary.
_ENGLISH: Final = frozenset({
    "the", "and", "that", "this", "with", "from", "are", "which", "be", "by", "on", "not", "can", "you",
})  # fmt: skip
_WORDS_AN_ENGLISH: Final = 15
_MOST_BYTES_A_CHARACTER: Final = 1.1
_GLANCE: Final = 300
_FEWEST_WORDS: Final = 24
_IDEOGRAPHIC: Final = frozenset({"ja", "zh"})
_SAME: Final = {"nb": "no", "nn": "no"}
#: Tags for texts of no known language, of several, or of none.
_NO_LANGUAGES: Final = frozenset({"und", "mul", "mis", "zxx"})


class JudgedLanguages(NamedTuple):
    """The languages of a text, the main one first: tags or codes (ISO 639-1); none where it cannot be told for sure.

    ``guess`` is what the main one was taken from, None where it is as it was declared, or where there is none.
    """

    languages: tuple[str, ...] = ()
    guess: Guess | None = None

    @property
    def main(self) -> str:
        """The main language; empty without one."""
        return self.languages[0] if self.languages else ""


class _Look(NamedTuple):
    """What is found in a text: the share of each language in its prose, of all that is in a known one, the largest first.

    ``sure`` are the languages of which it is sure that much of the text is in them. ``is_clear``: nearly all of it is in one,
    and as its speakers write it, so that no other is possible. Listings and lists of names are never clear.
    """

    weights: Mapping[str, float]
    sure: frozenset[str]
    is_clear: bool
    answer: DetectedLanguages

    @property
    def best(self) -> str:
        """The language with most of the text."""
        return next(iter(self.weights), "")


def judge_languages(text: str, declared: Iterable[str] = (), parts: Sequence[tuple[str, str]] = ()) -> JudgedLanguages:
    """The languages of a text; ``declared`` are the tags that its document declares, the best first.

    ``parts`` are parts of it for which the document declares others: the tag, and some of the text of each.
    """
    said = [tag for tag in declared if tag and _base(tag) not in _NO_LANGUAGES]
    if said and _base(said[0]) == "en" and _reads_english(text):
        found = JudgedLanguages((said[0],))
    else:
        scripts = weigh_scripts(text)
        prior = next((tag for tag in said if _can_write(_base(tag), scripts)), "")
        found = _judge(text, scripts, prior)
    if not parts:
        return found
    known = {_base(tag) for tag in found.languages}
    own = {
        _base(tag): tag for tag, part in parts if _base(tag) not in known and judge_languages(part, [tag]).main == tag
    }
    return found._replace(languages=(*found.languages, *own.values()))


def weigh_usual(text: str, told: JudgedLanguages, usual: str) -> tuple[str, ...]:
    """The languages of a text that declares none, on a host where most documents have the language ``usual``.

    ``told`` is what ``judge_languages`` finds without it. It counts where that is clear, or more than one, where the text is
    sure all the same, or in a script that the usual language does not have.
    """
    if not usual or told.main == usual or (told.guess is Guess.TEXT and len(told.languages) > 1):
        return told.languages
    if told.guess is Guess.SCRIPT:
        return (usual, *told.languages[1:]) if SCRIPT_OF.get(usual) == SCRIPT_OF[told.main] else told.languages
    scripts = weigh_scripts(text)
    if not _can_write(usual, scripts) or (told.languages and _look(text, scripts).is_clear):
        return told.languages
    looked = _look(text, scripts, hint=usual)
    is_other = scripts.total >= _FEW_LETTERS and looked.best in looked.sure
    return (looked.best,) if is_other else (usual,)


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


def _judge(text: str, scripts: Scripts, prior: str) -> JudgedLanguages:
    code = _base(prior)
    # A sentence says more against a language if it has no letter of its script.
    least = _MIN_LETTERS if code in SCRIPT_OF and not scripts.share(SCRIPT_OF[code]) else _CLEAR_LETTERS
    if prior and (scripts.total < least or _agrees(code, text)):
        return JudgedLanguages((prior,))
    if scripts.total < _MIN_LETTERS:
        return JudgedLanguages()
    looked = _look(text, scripts)
    if sum(weight >= _SECOND for weight in looked.weights.values()) > 1:
        # Of a text in several languages more is looked at, to tell which is the main one.
        looked = _look(text, scripts, part=8_000, taken=4_000)
    of_scripts = [each for each, weight in looked.weights.items() if each in SCRIPT_OF and weight >= _SECOND]
    if prior and not _is_outweighed(code, looked):
        main, guess = prior, None
    elif looked.best in looked.sure:
        main, guess = looked.best, Guess.TEXT
    elif of_scripts:
        is_sure = of_scripts[0] in looked.sure
        main = of_scripts[0] if is_sure else SCRIPT_OF[of_scripts[0]]
        guess = Guess.TEXT if is_sure else Guess.SCRIPT
    else:
        return JudgedLanguages()
    others = [each for each in looked.weights if _is_second(each, _base(main), looked, scripts)]
    if guess is not None and main == "en" and others and _is_beside_english(others[0], looked):
        return JudgedLanguages((others[0], "en", *others[1:]), guess)
    return JudgedLanguages((main, *others), guess)


def _base(tag: str) -> str:
    code = tag.partition("-")[0]
    return _SAME.get(code, code)


def _is_alike(code: str, other: str) -> bool:
    return code == other or any(code in group and other in group for group in _ALIKE)


def _agrees(code: str, text: str) -> bool:
    """Whether a glance at a text finds the declared language, and next to nothing else."""
    answer = ask(b"\n".join(cut_prose(text, part=300, taken=100)))
    share = answer.shares.get(code)
    return answer.is_reliable and share is not None and share.percent >= _CLEAR_PERCENT


def _reads_english(text: str) -> bool:
    """Whether a text has everywhere the words that most English sentences have: CLD2 takes longer."""
    size = len(text)
    last = max(size - _GLANCE, 0)
    for begin in (0, last // 2, last) if size > 3 * _GLANCE else (0,):
        part = text[begin : begin + (_GLANCE if last > 2 * _GLANCE else size)]
        words = part.lower().split()
        if len(words) < _FEWEST_WORDS or sum(map(_ENGLISH.__contains__, words)) * _WORDS_AN_ENGLISH < len(words):
            return False
        # Letters of other scripts have more bytes each.
        if len(part.encode("utf-8", "replace")) > _MOST_BYTES_A_CHARACTER * len(part):
            return False
    return True


def _is_outweighed(prior: str, looked: _Look) -> bool:
    """Whether a text is so surely of another language that what it declares is wrong."""
    best = looked.best
    if best not in looked.sure or looked.weights.get(prior, 0) >= _PRIOR:
        return False
    if _is_alike(best, prior) or not (prior in LATIN or prior in SCRIPT_OF):
        return best != prior and looked.is_clear
    return looked.weights[best] >= 1 - _PRIOR or best in SCRIPT_OF


def _is_beside_english(code: str, looked: _Look) -> bool:
    """Whether a text that seems to be English is one in another language of which a part is not translated yet."""
    return code not in SCRIPT_OF and looked.weights[code] >= _BESIDE_ENGLISH


def _is_second(code: str, main: str, looked: _Look, scripts: Scripts) -> bool:
    """Whether so much of a text is surely of a language that it is one of its languages: also if it is asked alone."""
    if (
        _is_alike(code, main)
        or looked.weights[code] < _SECOND
        or looked.weights[code] * scripts.total < _SECOND_LETTERS
    ):
        return False
    if code in SCRIPT_OF and SCRIPT_OF[code] != SCRIPT_OF.get(main):
        return True
    alone = ask(looked.answer.stretches.get(code, b""))
    share = alone.shares.get(code)
    return alone.is_reliable and share is not None and share.percent >= _SECOND_PERCENT


def _look(text: str, scripts: Scripts, *, hint: str = "", part: int = 2_000, taken: int = 600) -> _Look:
    answer = ask(b"\n".join(cut_prose(text, part=part, taken=taken)), hint)
    if not _IDEOGRAPHIC.isdisjoint(answer.shares):
        answer = answer._replace(shares=_name_ideographs(answer.shares, scripts))
    weights = _weigh(answer.shares, scripts)
    known = min(sum(share.percent for share in answer.shares.values()), 100)
    sure = frozenset(
        code for code, weight in weights.items() if weight >= _SECOND and _is_sure(code, weight * known, answer)
    )
    top = answer.shares.get(next(iter(weights), ""))
    is_clear = (
        top is not None
        and answer.is_reliable
        and top.percent >= _CLEAR_PERCENT
        and top.score >= _CLEAR_SCORE
        and scripts.total >= _CLEAR_LETTERS
    )
    return _Look(weights, sure, is_clear, answer)


def _is_sure(code: str, percent: float, answer: DetectedLanguages) -> bool:
    """Whether a text of which so many percent of the letters seem to be in a language has it."""
    script, share = OTHERS.get(SCRIPT_OF.get(code, "")), answer.shares.get(code)
    if script is not None and script.is_of_one:
        return True
    if share is None:
        return False
    if script is not None:
        return share.score >= _OF_SCRIPT_SCORE and percent > _SECOND * 100
    if answer.is_reliable and percent >= _SURE_PERCENT:
        return True
    return any(percent >= least and share.score >= score for least, score in _UNSURE)


def _weigh(shares: Mapping[str, Share], scripts: Scripts) -> dict[str, float]:
    """The shares of languages in letters, the largest first; the languages of a script have at least what it has in all."""
    letters = {code: share.percent / _bytes_a_letter(code) for code, share in shares.items()}
    total = sum(letters.values()) or 1
    weights = {code: count / total for code, count in letters.items()}
    for first in scripts.others:
        least, of_script = scripts.share(first), [code for code in weights if SCRIPT_OF.get(code) == first]
        has = sum(weights[code] for code in of_script)
        if has >= least or least < _SECOND:
            continue
        rest = (1 - least) / (1 - has)
        scaled = {code: weights[code] * (least / has) for code in of_script} if has else {first: least}
        weights = {code: weight * rest for code, weight in weights.items()} | scaled
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0])))


def _name_ideographs(shares: Mapping[str, Share], scripts: Scripts) -> dict[str, Share]:
    """The shares with those of Japanese and Chinese for the one that the letters of the whole text are in."""
    code = "ja" if "ja" in scripts.others else "zh"
    several = [shares[each] for each in _IDEOGRAPHIC if each in shares]
    together = Share(sum(share.percent for share in several), max(share.score for share in several))
    return {each: share for each, share in shares.items() if each not in _IDEOGRAPHIC} | {code: together}


def _bytes_a_letter(code: str) -> float:
    return OTHERS[SCRIPT_OF[code]].bytes_a_letter if code in SCRIPT_OF else 1


def _can_write(language: str, scripts: Scripts) -> bool:
    """Whether a text may be of a language: not if nearly all of it is in a script that the language does not have.

    Latin letters say nothing: each language has them in code and names.
    """
    if language not in LATIN and language not in SCRIPT_OF:
        return True
    of_others = {first: count for first, count in scripts.others.items() if language not in OTHERS[first].languages}
    count = sum(of_others.values())
    return count < _MIN_OTHER_LETTERS or count < _MIN_OTHER_SHARE * scripts.total


#: A line of prose has so many bytes of UTF-8, and at most so many of a hundred are symbols and digits, as code has them.
_LEAST_BYTES: Final = 40
_MOST_SYMBOLS: Final = 4
_SYMBOLS: Final = b"{}[]<>=;_#$|\\/*&^%@+~`0123456789"
#: With less prose than this, in bytes, all lines of a part count.
_LEAST_PROSE: Final = 100


def cut_prose(text: str, *, part: int, taken: int) -> list[bytes]:
    """Prose in UTF-8 from three parts of a text, each of ``part`` characters; up to ``taken`` of each.

    A text that is no longer than the three is looked at as a whole.
    """
    if len(text) <= 3 * part:
        return [_cut(text, 3 * taken)]
    middle = (len(text) - part) // 2
    return [_cut(text[begin : begin + part], taken) for begin in (0, middle, len(text) - part)]


def _cut(text: str, taken: int) -> bytes:
    lines = text.encode("utf-8", "replace").split(b"\n")
    prose: list[bytes] = []
    size = 0
    for line in lines:
        if len(line) >= _LEAST_BYTES and _is_prose(line):
            prose.append(line)
            size += len(line)
            if size >= taken:
                break
    if size < _LEAST_PROSE:
        prose = lines
    found = b"\n".join(prose)
    return found[:taken] if found.isascii() else found.decode("utf-8", "replace")[:taken].encode()


def _is_prose(line: bytes) -> bool:
    return (len(line) - len(line.translate(None, _SYMBOLS))) * 100 <= len(line) * _MOST_SYMBOLS
