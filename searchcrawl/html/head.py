"""The part of a page before its body, from which all fields but the text are read (A5, L11).

The tree of this part is the same as in the tree of the whole page: a parser reads from left to right. What could come
after it and change a field is looked for by its characters.
"""

from __future__ import annotations

import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser

_MOST_CHARACTERS: Final = 4_000_000
_MOST_HEAD_CHARACTERS: Final = 16_384
_MARK: Final = "data-end-of-head"
_BODY: Final = re.compile(r"<body(?=[\s/>])", re.IGNORECASE)
#: Elements that are read wherever they are (of titles the first counts), and JSON-LD. That they begin with one certain
#: character makes the search ten times as fast as one that ignores case.
_READ_ANYWHERE: Final = re.compile(r"<(?:[mM][eE][tT][aA]|[bB][aA][sS][eE]|[hH][tT][mM][lL])")
#: … and languages that others than the html element declare, which may stand before the tag of the body, too; not of hreflang.
_LANGUAGE: Final = (
    re.compile(r"l(?<![a-zA-Z]l)[aA][nN][gG]\s*="),
    re.compile(r"L(?<![a-zA-Z]L)[aA][nN][gG]\s*="),
)
_HTML: Final = re.compile(r"<[hH][tT][mM][lL](?=[\s/>])[^>]*>")
_JSON_LD: Final = re.compile(r"\+[jJ][sS][oO][nN]")


def cut_head(text: str, *, scripts: bool, languages: bool = False) -> str | None:
    """A page that ends with the tag of its body, for ``is_whole_head``; None where a field may be read from what follows.

    ``scripts``: JSON-LD is read, too. ``languages``: so are those of elements.
    """
    begin = _BODY.search(text, 0, _MOST_HEAD_CHARACTERS)
    if begin is None or len(text) > _MOST_CHARACTERS:
        return None
    if _READ_ANYWHERE.search(text, begin.end()) or (scripts and _JSON_LD.search(text, begin.end())):
        return None
    if languages and _has_languages(text, _HTML.search(text, 0, begin.start())):
        return None
    return f"{text[: begin.start()]}<body {_MARK}>"


def _has_languages(text: str, root: re.Match[str] | None) -> bool:
    """Whether elements besides the html element, whose tag is ``root``, may declare a language."""
    before, after = (0, 0) if root is None else (root.start(), root.end())
    return any(pattern.search(text, 0, before) or pattern.search(text, after) for pattern in _LANGUAGE)


def is_whole_head(parser: LexborHTMLParser) -> bool:
    """Whether the tag that ``cut_head`` put at the end is that of the body, and in no comment, script or template."""
    body = parser.body
    return body is not None and _MARK in body.attributes
