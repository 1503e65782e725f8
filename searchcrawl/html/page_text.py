"""Cleans text for an index: one blank between words, one line a block, only characters that XML allows (X-R12)."""

from __future__ import annotations

import re
from typing import Final

#: Separates blocks until the whitespace is collapsed; XML does not allow it, so it cannot be part of the text.
BLOCK_MARK: Final = "\x01"
#: A text with more characters is over a limit (904), whatever made it; what a document says of itself is cut.
MAX_CHARACTERS: Final = 50_000_000
MAX_VALUE_CHARS: Final = 8_192

_BLANK: Final = f" \t\n\r\f{BLOCK_MARK}"
_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ILLEGAL_BYTES: Final = bytes(code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D))


def remove_illegal(text: str) -> str:
    """``text`` without the characters that XML 1.0, and so Solr, forbids."""
    return text if is_legal(text) else _ILLEGAL.sub("", text)


def is_legal(text: str) -> bool:
    """Whether XML 1.0 allows all characters of a text."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:  # surrogates
        return False
    # This is many times as fast as a search of the text, and nearly every text is legal.
    return len(raw.translate(None, _ILLEGAL_BYTES)) == len(raw) and "\ufffe" not in text and "\uffff" not in text


def collapse(text: str) -> str:
    """``text`` as one line with single blanks and without illegal characters."""
    line = " ".join(text.split())
    clean = remove_illegal(line)
    return clean if len(clean) == len(line) else " ".join(clean.split())


def cut_words(text: str, most: int) -> str:
    """The beginning of a line with at most so many characters, and without a part of a word if there is more than one."""
    return text if len(text) <= most else text[: most + 1].rpartition(" ")[0] or text[:most]


def collapse_value(text: str) -> str:
    """The beginning of a value as one line."""
    return collapse(text[:MAX_VALUE_CHARS])


def collapse_segments(segments: list[str]) -> list[str]:
    """Each of the segments of a text with a line for each block that is not empty; BLOCK_MARK separates the blocks."""
    # Those without a word are many: they stand between two regions.
    lines = [_join_blanks(segment.split(BLOCK_MARK)) if segment.strip(_BLANK) else "" for segment in segments]
    # They are looked at together: most are short, and nearly all are legal.
    return lines if is_legal("".join(lines)) else [_join(segment.split(BLOCK_MARK)) for segment in segments]


def collapse_lines(text: str) -> str:
    """Plain text with single blanks, without empty lines and illegal characters."""
    return _join(text.splitlines())


def _join(parts: list[str]) -> str:
    lines = _join_blanks(parts)
    clean = remove_illegal(lines)
    # Blanks that had an illegal character between them are beside each other now.
    return clean if len(clean) == len(lines) else _join(clean.split("\n"))


def _join_blanks(parts: list[str]) -> str:
    return "\n".join(map(" ".join, filter(None, map(str.split, parts))))
