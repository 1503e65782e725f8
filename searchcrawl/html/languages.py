"""The languages that elements of a page declare for their own text, as `<div lang="de">` in an English page (C9)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchcrawl.html.page_text import BLOCK_MARK
from searchcrawl.html.regions import LINK_BEGIN, LINK_END, MARK

_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
#: The elements that have much of the text of a page; others, as links to translations, are many.
_LARGE: Final = frozenset({"article", "blockquote", "center", "div", "main", "section", "table", "td"})
#: So many of them are looked at, each up to so many elements around it, and so many characters of each are shown.
_MOST_ELEMENTS: Final = 32
_MOST_AROUND: Final = 50
_MOST_CHARACTERS: Final = 600
#: An element with a smaller share of the text says nothing; one with this share says what the page is in.
_LEAST_SHARE: Final = 0.2
_MAIN_SHARE: Final = 0.5
_BETWEEN_BLOCKS: Final = re.compile(f"{MARK}.|{BLOCK_MARK}", re.DOTALL)


class Spoken(NamedTuple):
    """What elements declare: the language of most of the text, or empty; and that of other parts, each with some of its text."""

    main: str = ""
    parts: tuple[tuple[str, str], ...] = ()


def normalise_language(text: str) -> str:
    """A language tag in lower case with hyphens; empty for what is none."""
    value = text.strip()
    return value.replace("_", "-").lower() if _LANGUAGE.fullmatch(value) else ""


def read_page_language(tree: LexborHTMLParser) -> str:
    """The language of a page as its body or its html element declares it, or empty."""
    for node in (tree.body, tree.root):
        attributes = node.attributes if node is not None else {}
        language = normalise_language(attributes.get("lang") or attributes.get("xml:lang") or "")
        if language:
            return language
    return ""


def read_spoken(nodes: Sequence[LexborNode], text: str) -> Spoken:
    """What elements with an attribute `lang` declare of the indexed text of a page."""
    large = [node for node in nodes if node.tag in _LARGE][:_MOST_ELEMENTS]
    if not large or not text:
        return Spoken()
    tags: dict[int, str] = {}
    lengths: dict[int, int] = {}
    lines: dict[int, str] = {}
    for node in large:
        tag = normalise_language(node.attributes.get("lang") or "")
        shown = _read_lines(node)
        longest = max(shown, key=len, default="")[:_MOST_CHARACTERS]
        if not tag or not longest or longest not in text:
            continue
        number = node.mem_id
        tags[number], lengths[number], lines[number] = tag, sum(map(len, shown)), longest
        if (around := _find_around(node, tags)) is not None:
            lengths[around] -= lengths[number]
    shares: dict[str, float] = {}
    for number, tag in tags.items():
        shares[tag] = shares.get(tag, 0) + lengths[number] / len(text)
    main = next((tag for tag, share in shares.items() if share >= _MAIN_SHARE), "")
    shown_of = {tags[number]: line for number, line in lines.items()}
    parts = tuple((tag, shown_of[tag]) for tag, share in shares.items() if tag != main and share >= _LEAST_SHARE)
    return Spoken(main, parts)


def _read_lines(node: LexborNode) -> list[str]:
    text = node.text().replace(LINK_BEGIN, "").replace(LINK_END, "")
    return [" ".join(part.split()) for part in _BETWEEN_BLOCKS.split(text)]


def _find_around(node: LexborNode, known: dict[int, str]) -> int | None:
    """The nearest of the known elements around one."""
    parent = node.parent
    for _ in range(_MOST_AROUND):
        if parent is None:
            return None
        if parent.mem_id in known:
            return parent.mem_id
        parent = parent.parent
    return None
