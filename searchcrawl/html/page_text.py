"""Text fit for an index: whitespace collapsed, one line a block, XML-legal characters only (X-R12)."""

from __future__ import annotations

import re
from typing import Final

#: Stands between blocks until the whitespace is collapsed: no whitespace itself, and not legal.
BLOCK_MARK: Final = "\x01"

_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ILLEGAL_BYTES: Final = bytes(code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D))


def legal(text: str) -> str:
    """``text`` without the characters that XML 1.0 forbids (and so Solr)."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:  # surrogates
        return _ILLEGAL.sub("", text)
    # Many times as fast as to search the text, and nearly every text is legal.
    clean = len(raw.translate(None, _ILLEGAL_BYTES)) == len(raw) and "\ufffe" not in text and "\uffff" not in text
    return text if clean else _ILLEGAL.sub("", text)


def collapse(text: str) -> str:
    """``text`` as one legal line with single blanks."""
    line = " ".join(text.split())
    clean = legal(line)
    return clean if len(clean) == len(line) else " ".join(clean.split())


def collapse_blocks(text: str) -> str:
    """The blocks of ``text``, divided by BLOCK_MARK, as legal lines; empty ones are left out."""
    return _joined(text.split(BLOCK_MARK))


def collapse_lines(text: str) -> str:
    """Plain text with its lines kept, legal, their blanks collapsed and empty lines left out."""
    return _joined(text.splitlines())


def _joined(parts: list[str]) -> str:
    lines = "\n".join(map(" ".join, filter(None, map(str.split, parts))))
    clean = legal(lines)
    # What stood between blanks is gone: they are neighbours now.
    return clean if len(clean) == len(lines) else _joined(clean.split("\n"))
