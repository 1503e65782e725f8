"""Reads the meta elements and JSON-LD of a page that a source maps to attributes (A5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from selectolax.lexbor import LexborNode

from searchcrawl.html.page_text import collapse

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
