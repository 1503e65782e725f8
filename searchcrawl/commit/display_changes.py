"""Display URLs that rewriters set (K1), noted at the rows they are about; the last word counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from searchcrawl import urls
from searchcrawl.admission.admit import Found
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.rules.display import DisplayMap
from searchcrawl.store import review_table
from searchcrawl.store.database import Transaction

_MAX_REMEMBERED: Final = 200_000
_UNKNOWN: Final = object()


class DisplayChanges:
    """Used by the writer thread alone; after the transaction ``committed()`` has to be called."""

    def __init__(self, source_id: int, display: DisplayMap) -> None:
        self._source_id = source_id
        self._display = display
        self._noted: dict[int, str | None] = {}
        self._written: dict[int, str | None] = {}

    def write(self, transaction: Transaction, found: Sequence[Found]) -> dict[int, int | None]:
        """Notes what links say; the keys of the new display URLs, by row id, where a known row is shown otherwise."""
        said = {
            urls.key(link.url): link.display for one in found for link in (*one.links, *one.near) if not link.nofollow
        }
        self._written = {key: shown for key, shown in said.items() if self._noted.get(key, _UNKNOWN) != shown}
        rows = review_table.shown(transaction, self._source_id, list(self._written))
        changed = [row for row in rows if row.display_url != self._written[row.key]]
        review_table.show(transaction, {row.id: self._written[row.key] for row in changed})
        return {row.id: self._key_of(row.url, self._written[row.key]) for row in changed}

    def committed(self) -> None:
        """Remembers what the last call wrote."""
        if len(self._noted) > _MAX_REMEMBERED:
            self._noted.clear()
        self._noted.update(self._written)
        self._written = {}

    def _key_of(self, url: str, display: str | None) -> int | None:
        try:
            return urls.key(self._display.of(url, display))
        except InvalidUrl:
            # The next visit says so (1010).
            return None
