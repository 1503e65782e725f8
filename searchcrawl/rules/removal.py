"""What removes a known document from the index, and how many removals at once (D4, D5, L3)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from searchcrawl.codes import REMOVING, ROBOTS_UNAVAILABLE, Code

#: This number of removals is always within ``max_delete_percent``.
_FREE_REMOVALS: Final = 10


def is_evidence(code: int, rule: str | None, remove_on: Collection[int]) -> bool:
    """Whether a visit's code and rule say that the known document at this URL is to be removed.

    For 953 and 954 the caller checks that the target was fetched well or lies outside the boundary. Copies
    (909, 956, 964) are no evidence: they are removed once the page that is indexed instead is in the index.
    """
    if code == Code.ROBOTS:
        return bool(rule) and rule != ROBOTS_UNAVAILABLE
    return code in REMOVING or code in remove_on


def is_within_limits(removals: int, documents: int, *, max_delete_percent: float, max_delete_documents: int) -> bool:
    """Whether ``removals`` of a source that had ``documents`` before may be carried out at once, without approval."""
    share = documents * max_delete_percent / 100
    return removals <= max(_FREE_REMOVALS, share) and removals <= max_delete_documents
