"""Text fit for an index: whitespace collapsed, one line a block, XML-legal characters only (R12)."""

from __future__ import annotations

import re
from typing import Final

#: Stands between blocks until the whitespace is collapsed; no page means anything by it.
BLOCK_MARK: Final = "\x1e"

_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ILLEGAL_ASCII: Final = {code: None for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)}


def legal(text: str) -> str:
    """``text`` without the characters that XML 1.0 forbids (and so Solr)."""
    if text.isascii():
        return text.translate(_ILLEGAL_ASCII)
    return _ILLEGAL.sub("", text)


def collapse(text: str) -> str:
    """``text`` as one legal line with single blanks."""
    return legal(" ".join(text.split()))


def collapse_blocks(text: str) -> str:
    """The blocks of ``text``, divided by BLOCK_MARK, as legal lines; empty ones are left out."""
    blocks = [" ".join(block.split()) for block in text.split(BLOCK_MARK)]
    return legal("\n".join(filter(None, blocks)))


def collapse_lines(text: str) -> str:
    """Plain text with its lines kept, legal, their blanks collapsed and empty lines left out."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return legal("\n".join(filter(None, lines)))
