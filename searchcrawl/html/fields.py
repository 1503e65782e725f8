"""What a page says of itself: the values that a source maps to attributes (A5), and its languages (C9).

They are read from the part before its body, if nothing that follows can change them (L11). The tree of this part is the
same as in the tree of the whole page: a parser reads from left to right. What could come after it and change a field is
looked for by its characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson
from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchcrawl.html.page_text import BLOCK_MARK, collapse
from searchcrawl.html.regions import LINK_BEGIN, LINK_END, MARK, list_around

_MOST_PAGE_CHARACTERS: Final = 4_000_000
_MOST_HEAD_CHARACTERS: Final = 16_384
_MARK: Final = "data-end-of-head"
_BODY: Final = re.compile(r"<body(?=[\s/>])", re.IGNORECASE)
#: Elements that are read wherever they are (of titles the first counts), and JSON-LD. That they begin with one certain
#: character makes the search ten times as fast as one that ignores case.
_READ_ANYWHERE: Final = re.compile(r"<(?:[mM][eE][tT][aA]|[bB][aA][sS][eE]|[hH][tT][mM][lL])")
#: … and languages that others than the html element declare, which may stand before the tag of the body, too; not of hreflang.
_DECLARES_LANGUAGE: Final = (
    re.compile(r"l(?<![a-zA-Z]l)[aA][nN][gG]\s*="),
    re.compile(r"L(?<![a-zA-Z]L)[aA][nN][gG]\s*="),
)
_HTML: Final = re.compile(r"<[hH][tT][mM][lL](?=[\s/>])[^>]*>")
_MAY_BE_JSON_LD: Final = re.compile(r"\+[jJ][sS][oO][nN]")


def cut_head(text: str, *, scripts: bool, languages: bool = False) -> str | None:
    """A page that ends with the tag of its body, for ``is_whole_head``; None where a field may be read from what follows.

    ``scripts``: JSON-LD is read, too. ``languages``: so are those of elements.
    """
    begin = _BODY.search(text, 0, _MOST_HEAD_CHARACTERS)
    if begin is None or len(text) > _MOST_PAGE_CHARACTERS:
        return None
    if _READ_ANYWHERE.search(text, begin.end()) or (scripts and _MAY_BE_JSON_LD.search(text, begin.end())):
        return None
    if languages and _has_languages(text, _HTML.search(text, 0, begin.start())):
        return None
    return f"{text[: begin.start()]}<body {_MARK}>"


def _has_languages(text: str, root: re.Match[str] | None) -> bool:
    """Whether elements besides the html element, whose tag is ``root``, may declare a language."""
    before, after = (0, 0) if root is None else (root.start(), root.end())
    return any(pattern.search(text, 0, before) or pattern.search(text, after) for pattern in _DECLARES_LANGUAGE)


def is_whole_head(parser: LexborHTMLParser) -> bool:
    """Whether the tag that ``cut_head`` put at the end is that of the body, and in no comment, script or template."""
    body = parser.body
    return body is not None and _MARK in body.attributes


_MAX_SCRIPT_CHARS: Final = 1_000_000
_MAX_LISTED: Final = 1_000
_JSON_LD: Final = "jsonld:"
_GRAPH: Final = "@graph"

#: Texts by origin (``meta:NAME``, ``jsonld:NAME``), in document order.
FoundTexts = tuple[tuple[str, tuple[str, ...]], ...]


def read_attributes(
    metas: Sequence[Mapping[str, str | None]], scripts: Sequence[LexborNode], attribute_origins: frozenset[str]
) -> FoundTexts:
    """The texts of each of ``attribute_origins`` on a page.

    ``metas`` are the attributes of its meta elements; of ``scripts``, elements other than scripts are passed over. The name
    of a meta element is its ``name``, ``property`` or ``http-equiv``.
    """
    found: dict[str, list[str]] = {}
    for attributes in metas:
        for origin in _list_origins(attributes):
            if origin in attribute_origins and (text := collapse(attributes.get("content") or "")):
                found.setdefault(origin, []).append(text)
    paths = [origin.removeprefix(_JSON_LD) for origin in attribute_origins if origin.startswith(_JSON_LD)]
    if paths:
        for node in scripts:
            for entry in _read_script(node):
                for path, value in _find_values(entry, paths):
                    found.setdefault(_JSON_LD + path, []).extend(filter(None, map(collapse, _list_texts(value))))
    return tuple((origin, tuple(texts)) for origin, texts in found.items())


def _list_origins(attributes: Mapping[str, str | None]) -> list[str]:
    names = f"{attributes.get('property') or ''} {attributes.get('http-equiv') or ''}".lower().split()
    # A name may have blanks in it; the other attributes are lists of words.
    names.append(" ".join((attributes.get("name") or "").lower().split()))
    return [f"meta:{name}" for name in dict.fromkeys(names)]


def _read_script(node: LexborNode) -> Iterator[dict[str, Any]]:
    """The object in a JSON-LD script, or each object of the list in it, and those of their graphs."""
    if node.tag != "script" or (node.attributes.get("type") or "").strip().lower() != "application/ld+json":
        return
    text = node.text()
    if len(text) > _MAX_SCRIPT_CHARS:
        return
    try:
        content = orjson.loads(text)
    except ValueError:
        # Browsers ignore text that is not JSON, too.
        return
    for entry in _list_objects(content):
        yield entry
        yield from _list_objects(entry.get(_GRAPH))


def _list_objects(value: Any) -> list[dict[str, Any]]:
    values = value[:_MAX_LISTED] if isinstance(value, list) else [value]
    return [entry for entry in values if isinstance(entry, dict)]


def _find_values(entry: Mapping[str, Any], paths: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The values at each of ``paths`` (``a`` or ``a.b``), in the order of the keys; a key may have dots itself."""
    for key, value in entry.items():
        name = key.strip().lower()
        for path in paths:
            if path == name:
                yield path, value
            elif path.startswith(f"{name}."):
                rest = path[len(name) + 1 :]
                yield from ((path, found) for inner in _list_objects(value) for _, found in _find_values(inner, [rest]))


def _list_texts(value: Any) -> Iterator[str]:
    """The texts of a JSON value: of an object its name or value, of a list the texts of all its entries."""
    if isinstance(value, list):
        for entry in value[:_MAX_LISTED]:
            if not isinstance(entry, list):
                yield from _list_texts(entry)
    elif isinstance(value, dict):
        for key in ("name", "@value"):
            if isinstance(value.get(key), str | int | float):
                yield from _list_texts(value[key])
                return
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, str | int | float):
        yield str(value)


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
    numbers = (parent.mem_id for parent in islice(list_around(node), _MOST_AROUND))
    return next((number for number in numbers if number in known), None)
