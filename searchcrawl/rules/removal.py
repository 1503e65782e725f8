"""What removes a known document, and how many at once (interface.md §1; D4, D5, L3)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from searchcrawl.codes import Code

#: The rule of 951 where robots.txt answered 5xx or 429: no evidence against a document.
ROBOTS_UNAVAILABLE: Final = "robots.unavailable"
#: So many removals are always within ``max_delete_percent``.
_FREE_REMOVALS: Final = 10
_REMOVING: Final = frozenset({Code.NOT_INDEXED, Code.META_REFRESH, Code.MOVED, Code.OUTSIDE_BOUNDARY})


def evidence(code: int, rule: str | None, remove_on: Collection[int]) -> bool:
    """Whether a visit's code and rule say that the known document at this URL is to go.

    For 953 and 954 the caller has seen that the target was fetched or lies outside. Copies (909,
    964) are not asked here: they go when their survivor is in the index.
    """
    if code == Code.ROBOTS:
        return bool(rule) and rule != ROBOTS_UNAVAILABLE
    return code in _REMOVING or code in remove_on


def within_limits(removals: int, documents: int, *, max_delete_percent: float, max_delete_documents: int) -> bool:
    """Whether so many removals, of a source's ``documents`` before them, may be carried out at once."""
    share = documents * max_delete_percent / 100
    return removals <= max(_FREE_REMOVALS, share) and removals <= max_delete_documents
