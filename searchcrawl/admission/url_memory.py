"""The memory of known URLs."""

from __future__ import annotations

from typing import Final

#: How many bits of a packed entry are the depth.
_DEPTH_BITS: Final = 16
_DEPTH_MASK: Final = (1 << _DEPTH_BITS) - 1


class UrlMemory:
    """A bounded memory of known URLs, so that known links cost no query (F1): key → row id and depth.

    It has two generations. When the young one is full it becomes the old one, and the old one is dropped. A URL that is
    looked up moves to the young one, so URLs that are not looked up are dropped. A URL takes about 130 bytes.

    Only committed rows may be added: if the transaction of a row was rolled back, links to its key would be lost.
    """

    def __init__(self, limit: int = 400_000) -> None:
        self._half = limit // 2
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def find_within(self, key: int, depth: int) -> int | None:
        """The row id; None if the URL is not remembered, or only with more than ``depth``."""
        packed = self._young.get(key)
        if packed is None:
            packed = self._old.get(key)
            if packed is None:
                return None
            self._keep(key, packed)
        return packed >> _DEPTH_BITS if packed & _DEPTH_MASK <= depth else None

    def add(self, key: int, url_id: int, depth: int) -> None:
        """Remembers a committed row."""
        self._keep(key, url_id << _DEPTH_BITS | min(depth, _DEPTH_MASK))

    def _keep(self, key: int, packed: int) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[key] = packed
