"""XHTML that is sent as such, for a parser of HTML: to that one a slash at the end of a tag says nothing (X-R13)."""

from __future__ import annotations

import re
from typing import Final

_VOID: Final = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
#: No value in XML has a "<", and each is quoted.
_EMPTY: Final = re.compile(
    rf"""<(?!(?:{_VOID})[\s/])([A-Za-z][^\s<>/]*+)"""
    r"""((?>\s++[^\s<>=/"']++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+)\s*+/>"""
)


def is_xhtml(content_type: str) -> bool:
    """Whether a Content-Type says that a browser reads the body as XML."""
    return content_type[:21].lower() == "application/xhtml+xml"


def expand_empty(text: str) -> str:
    """``text`` with end tags for elements that XML closes where they begin: an empty title or script would have all that follows."""
    return _EMPTY.sub(r"<\1\2></\1>", text) if "/>" in text else text
