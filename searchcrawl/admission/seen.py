"""A bounded memory of known URLs, so that known links cost no query (F1)."""

from __future__ import annotations

from itertools import islice
from typing import Final

_DEPTH_BITS: Final = 16
_DEPTH_MASK: Final = (1 << _DEPTH_BITS) - 1


class Seen:
    """Key → row id and depth, of at most ``limit`` URLs; the oldest quarter makes room.

    Only what is committed may be learnt: a key of a transaction that was rolled back would lose
    its link for ever.
    """

    def __init__(self, limit: int = 400_000) -> None:
        self._limit = limit
        self._known: dict[int, int] = {}

    def row_within(self, key: int, depth: int) -> int | None:
        """The row id, or None where the URL is not remembered, or only at more than ``depth``."""
        packed = self._known.get(key)
        return packed >> _DEPTH_BITS if packed is not None and packed & _DEPTH_MASK <= depth else None

    def learn(self, key: int, url_id: int, depth: int) -> None:
        """Remembers a committed row."""
        if len(self._known) >= self._limit:
            for old in list(islice(self._known, self._limit // 4)):
                del self._known[old]
        self._known[key] = url_id << _DEPTH_BITS | min(depth, _DEPTH_MASK)
