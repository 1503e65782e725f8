"""Queries of people and what the index finds, in the shape of interface.md §2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.receiver import Hit, Receiver, SearchIndex, SearchQuery

#: Around a hit in the snippets of an index; stored text holds neither.
HIT_START: Final = "\ue000"
HIT_END: Final = "\ue001"
_UNMARKED: Final = str.maketrans(dict.fromkeys((HIT_START, HIT_END)))
_BY_SCORE: Final = frozenset({"score", "-score"})
#: Suffixes of attributes, by their type.
_ATTRIBUTE_SUFFIXES: Final = ("_dt", "_s", "_t", "_l")
_DATES: Final = frozenset({"last_modified", "first_seen", "crawled_at"})


def search(receiver: Receiver, query: SearchQuery) -> dict[str, Any]:
    """The answer to a query; hits in snippets stand between HIT_START and HIT_END.

    Raises UnsupportedByIndex, IndexUnavailable, IndexMisconfigured.
    """
    if not isinstance(receiver, SearchIndex):
        raise UnsupportedByIndex(f"{type(receiver).__name__} cannot be searched")
    answer = receiver.search(replace(query, sort=None) if query.sort in _BY_SCORE else query)
    return {
        "total": answer.total,
        "hits": [_shaped(hit) for hit in answer.hits],
        "facets": {name: dict(counts) for name, counts in answer.facets.items()},
    }


def without_marks(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer with snippets in plain text."""
    hits = [{**hit, "snippet": hit["snippet"].translate(_UNMARKED)} for hit in answer["hits"]]
    return {**answer, "hits": hits}


def _shaped(hit: Hit) -> dict[str, Any]:
    fields = hit.fields
    return {
        "url": fields.get("url", ""),
        "title": fields.get("title", ""),
        "snippet": hit.snippet,
        "source": fields.get("source", ""),
        "score": hit.score,
        "last_modified": fields.get("last_modified"),
        "description": fields.get("description", ""),
        "duplicates": list(fields.get("duplicates", ())),
        "attributes": _attributes(fields),
    }


def _attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes by their names as written in the source file."""
    found: dict[str, Any] = {}
    for field, value in fields.items():
        suffix = next((end for end in _ATTRIBUTE_SUFFIXES if field.endswith(end)), None)
        if suffix is not None and field not in _DATES:
            found[field.removesuffix(suffix)] = value
    return found
