"""The language of a text in truth, as lingua tells it: an independent answer, which takes ten times as long as CLD2."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lingua import LanguageDetector

#: A text with fewer letters is not asked for.
FEWEST_LETTERS: Final = 200
#: A text is of one language if so many parts of it, of up to so many characters each, are of it with so high a confidence.
_PARTS: Final = 3
_PART_CHARS: Final = 600
_LEAST_CONFIDENCE: Final = 0.9
#: Of those that the manuals have, and their neighbours; all 75 take a gigabyte of memory.
_CODES: Final = (
    "ar bg ca cs da de el en es et eu fa fi fr he hr hu id it ja ko lt lv nb nl nn pl pt ro ru sk sl sr sv tr uk vi zh"
)
#: Codes that count as one: CLD2 has one name for both, or cannot tell one from the other.
_SAME: Final = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "ms": "id", "bs": "hr", "sr-latn": "hr", "yue": "zh"}


def tell_language(prose: str) -> str:
    """The code of a text's language (ISO 639-1); empty where there are few letters, or it is not of one language for sure."""
    text = " ".join(prose.split())
    if sum(map(str.isalpha, text[:10_000])) < FEWEST_LETTERS:
        return ""
    detector = _make_detector()
    found = {_tell(detector, part) for part in _cut(text)}
    return found.pop() if len(found) == 1 else ""


def is_same(stored: str, truth: str) -> bool:
    """Whether a stored tag is of a language; regions count for nothing."""
    return _reduce(stored) == _reduce(truth)


def _reduce(tag: str) -> str:
    tag = tag.lower().replace("_", "-")
    code = tag.partition("-")[0]
    return _SAME.get(tag, _SAME.get(code, code))


def _cut(text: str) -> list[str]:
    """The parts, spread over the text; of a short one they are shorter."""
    size = min(_PART_CHARS, len(text) // _PARTS)
    last = len(text) - size
    return [text[begin : begin + size] for begin in (last * number // (_PARTS - 1) for number in range(_PARTS))]


def _tell(detector: LanguageDetector, text: str) -> str:
    best = detector.compute_language_confidence_values(text)[0]
    code = best.language.iso_code_639_1.name.lower()
    return _SAME.get(code, code) if best.value >= _LEAST_CONFIDENCE else ""


@lru_cache(maxsize=1)
def _make_detector() -> LanguageDetector:
    try:
        from lingua import IsoCode639_1, LanguageDetectorBuilder  # noqa: PLC0415  # it may be missing
    except ImportError as error:
        raise SystemExit("decisions: lingua-language-detector is missing; install the extra `bench`") from error
    codes = [getattr(IsoCode639_1, code.upper()) for code in _CODES.split()]
    return LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()
