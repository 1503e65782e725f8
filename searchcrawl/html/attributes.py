"""Reads the meta elements and JSON-LD of a page that a source maps to attributes (A5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from selectolax.lexbor import LexborNode

from searchcrawl.html.page_text import collapse

_MAX_SCRIPT_CHARS: Final = 1_000_000
_MAX_LISTED: Final = 1_000

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
    if any(origin.startswith("jsonld:") for origin in attribute_origins):
        for node in scripts:
            for key, value in _read_script(node):
                origin = f"jsonld:{key.strip().lower()}"
                if origin in attribute_origins:
                    found.setdefault(origin, []).extend(filter(None, map(collapse, _list_texts(value))))
    return tuple((origin, tuple(texts)) for origin, texts in found.items())


def _list_origins(attributes: Mapping[str, str | None]) -> list[str]:
    names = f"{attributes.get('property') or ''} {attributes.get('http-equiv') or ''}".lower().split()
    # A name may have blanks in it; the other attributes are lists of words.
    names.append(" ".join((attributes.get("name") or "").lower().split()))
    return [f"meta:{name}" for name in dict.fromkeys(names)]


def _read_script(node: LexborNode) -> Iterator[tuple[str, Any]]:
    """Keys and values of the object in a JSON-LD script, or of each object of the list in it."""
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
    for entry in content[:_MAX_LISTED] if isinstance(content, list) else [content]:
        if isinstance(entry, dict):
            yield from entry.items()


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
