"""Links that may not be followed: no rows, but one blob of each page that has any, so that ``explain`` can name them (L1)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from searchcrawl import urls
from searchcrawl.rules.boundary import Boundary
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import unfollowed_table
from searchcrawl.store.urls.unfollowed_table import BYTES, MOST_TARGETS, Nofollow, Unfollowed


class UnfollowedLinks:
    """Collects such links of the pages of a source, group by group.

    Those to hosts outside are left out: the boundary refuses them in any case.
    """

    def __init__(self, source_id: int, boundary: Boundary) -> None:
        self._source_id = source_id
        self._boundary = boundary
        self._found: list[Unfollowed] = []
        #: how many bytes the table may still take, None if it was not asked yet; and whether it may have any links
        self._room: int | None = None
        self._any = False

    def begin(self) -> None:
        """Forgets what was collected: a group begins, or a transaction is repeated."""
        self._found = []

    def note(self, page_id: int, targets: Sequence[str], kind: Nofollow) -> None:
        """Notes the targets of links of a page that are not followed."""
        if not targets:
            return
        inside = (url for url in targets if not self._boundary.is_elsewhere(url))
        keys = [urls.key(url) for url in islice(inside, MOST_TARGETS)]
        if keys:
            cut = next(inside, None) is not None
            self._found.append(Unfollowed(page_id, kind, keys, cut))

    def store(self, transaction: Transaction, pages: Collection[int]) -> None:
        """Writes what was collected, in place of what is known of ``pages``, by id."""
        if self._room is None:
            size = unfollowed_table.measure(transaction, self._source_id)
            self._any, self._room = size is not None, unfollowed_table.MOST_BYTES - (size or 0)
        if self._any and pages:
            unfollowed_table.forget(transaction, list(pages))
        found = []
        for one in self._found:
            size = len(one.keys) * BYTES
            found.append(one if size <= self._room else one._replace(keys=(), cut=True))
            # What pages have no longer makes room for the next run.
            self._room -= size if size <= self._room else 0
        unfollowed_table.add(transaction, self._source_id, found)
        self._any |= bool(found)
