"""Display URLs that rewriters set (K1), noted at the rows they are about; the last word counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from searchcrawl import urls
from searchcrawl.admission.admit import Found
from searchcrawl.commit import group_rows
from searchcrawl.commit.decide import Group
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.rules.display import DisplayMap
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import review_table, url_table

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
            return urls.key(self._display.resolve(url, display))
        except InvalidUrl:
            # The next visit says so (1010).
            return None


def show_start(transaction: Transaction, source_id: int, found: Found, display: DisplayMap) -> None:
    """Notes what rewriters say of the start URLs, and has those sent that are shown otherwise."""
    shown = DisplayChanges(source_id, display).write(transaction, [found])
    if shown:
        group_rows.write(transaction, source_id, Group(displays=shown), {})
        url_table.reopen(transaction, document_table.send_again(transaction, list(shown)))
