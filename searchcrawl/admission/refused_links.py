"""Links that cost no row: refused for ``scope.max_urls``, or because they lead to hosts outside. They are counted only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from searchcrawl import urls
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import refused_table

_MAX_REMEMBERED: Final = 50_000


class RefusedLinks:
    """Counts refused links of a source by rule and host, and remembers their URLs: they cost no query again.

    After the transaction ``note_commit()`` or ``note_rollback()`` has to be called.
    """

    def __init__(self, source_id: int) -> None:
        self._source_id = source_id
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}
        self._known: dict[int, tuple[str, str]] = {}
        self._new: dict[int, tuple[str, str]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def count_known(self, key: int) -> bool:
        """Counts a link to a URL that was refused before; False if it is not remembered."""
        pair = self._known.get(key)
        if pair is not None:
            self._counts[pair] += 1
        return pair is not None

    def count(self, key: int, url: str, rule: str, links: int) -> None:
        """Counts links to a URL that ``rule`` refuses; ``key`` is the URL's."""
        pair = (rule, urls.shown_host(url))
        self._new[key] = pair = self._pairs.setdefault(pair, pair)
        self._counts[pair] += links

    def store(self, transaction: Transaction) -> None:
        """Writes what was counted since the last commit."""
        refused_table.add(transaction, self._source_id, self._counts)

    def note_commit(self, with_rows: Iterable[int]) -> None:
        """Remembers the URLs of the last transaction, and forgets those that have a row, by key."""
        if len(self._known) > _MAX_REMEMBERED:
            self._known.clear()
            self._pairs.clear()
        self._known.update(self._new)
        for key in with_rows:
            self._known.pop(key, None)
        self.note_rollback()

    def note_rollback(self) -> None:
        """Forgets what the last transaction counted."""
        self._new = {}
        self._counts = Counter()
