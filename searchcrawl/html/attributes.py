"""What meta elements and JSON-LD of a page say under names that a source asks for (A5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson
from selectolax.lexbor import LexborNode

from searchcrawl.html.page_text import collapse

_MAX_SCRIPT_CHARS: Final = 1_000_000
_MAX_LISTED: Final = 1_000

#: Texts by origin (``meta:NAME``, ``jsonld:NAME``), in document order.
Found = tuple[tuple[str, tuple[str, ...]], ...]


def read_attributes(metas: Sequence[LexborNode], scripts: Sequence[LexborNode], wanted: frozenset[str]) -> Found:
    """The texts of each wanted origin; ``scripts`` may hold other elements as well.

    The name of a meta element is its ``name``, ``property`` or ``http-equiv``.
    """
    found: dict[str, list[str]] = {}
    for node in metas:
        for origin, text in _of_meta(node):
            if origin in wanted and text:
                found.setdefault(origin, []).append(text)
    if any(origin.startswith("jsonld:") for origin in wanted):
        for node in scripts:
            for key, value in _of_script(node):
                origin = f"jsonld:{key.strip().lower()}"
                if origin in wanted:
                    found.setdefault(origin, []).extend(filter(None, map(collapse, _texts(value))))
    return tuple((origin, tuple(texts)) for origin, texts in found.items())


def _of_meta(node: LexborNode) -> Iterator[tuple[str, str]]:
    attributes = node.attributes
    names = f"{attributes.get('property') or ''} {attributes.get('http-equiv') or ''}".lower().split()
    # A name may have blanks in it, the others are lists of words.
    names.append(" ".join((attributes.get("name") or "").lower().split()))
    text = collapse(attributes.get("content") or "")
    for name in dict.fromkeys(names):
        yield f"meta:{name}", text


def _of_script(node: LexborNode) -> Iterator[tuple[str, Any]]:
    """Keys and values of the object, or of each object of the list, that a JSON-LD script holds."""
    if node.tag != "script" or (node.attributes.get("type") or "").strip().lower() != "application/ld+json":
        return
    text = node.text()
    if len(text) > _MAX_SCRIPT_CHARS:
        return
    try:
        content = orjson.loads(text)
    except ValueError:
        # As browsers do: what is no JSON says nothing.
        return
    for entry in content[:_MAX_LISTED] if isinstance(content, list) else [content]:
        if isinstance(entry, dict):
            yield from entry.items()


def _texts(value: Any) -> Iterator[str]:
    """A value as texts: of an object its name, or its value; of a list those of its entries."""
    if isinstance(value, list):
        for entry in value[:_MAX_LISTED]:
            if not isinstance(entry, list):
                yield from _texts(entry)
    elif isinstance(value, dict):
        for key in ("name", "@value"):
            if isinstance(value.get(key), str | int | float):
                yield from _texts(value[key])
                return
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, str | int | float):
        yield str(value)
