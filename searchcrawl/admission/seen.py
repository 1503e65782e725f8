"""A bounded memory of known URLs, so that known links cost no query (F1)."""

from __future__ import annotations

from typing import Final

_DEPTH_BITS: Final = 16
_DEPTH_MASK: Final = (1 << _DEPTH_BITS) - 1


class Seen:
    """Key → row id and depth, of at most ``limit`` URLs; those that were not asked for lately make room.

    Two generations: when the young one is full it becomes the old one, whose place is then free at
    once. What is asked for stays. About 130 bytes a URL.

    Only what is committed may be learnt: a key of a transaction that was rolled back would lose
    its link for ever.
    """

    def __init__(self, limit: int = 400_000) -> None:
        self._half = limit // 2
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def row_within(self, key: int, depth: int) -> int | None:
        """The row id, or None where the URL is not remembered, or only at more than ``depth``."""
        packed = self._young.get(key)
        if packed is None:
            packed = self._old.get(key)
            if packed is None:
                return None
            self._keep(key, packed)
        return packed >> _DEPTH_BITS if packed & _DEPTH_MASK <= depth else None

    def learn(self, key: int, url_id: int, depth: int) -> None:
        """Remembers a committed row."""
        self._keep(key, url_id << _DEPTH_BITS | min(depth, _DEPTH_MASK))

    def _keep(self, key: int, packed: int) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[key] = packed
