"""Links that lead to known rows, and what they change about these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from searchcrawl.rules.decision import Decision
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import review_table, url_table
from searchcrawl.store.urls.url_table import KnownUrl

#: How the rule begins in a row whose URL a rewriter discarded or changed.
_BY_REWRITERS: Final = ("rewrite[", "rewrite:")


@dataclass(slots=True)
class WantedLink:
    """A URL to look up; ``links`` are those that need no row, and unless ``needs_row`` there are no others."""

    url: str
    depth: int
    referrer_id: int | None
    found_as: str | None = None
    display: str | None = None
    links: int = 0
    needs_row: bool = False


def reopen_found(
    transaction: Transaction,
    known: Sequence[KnownUrl],
    wanted: Mapping[int, WantedLink],
    *,
    decide: Callable[[str, int], Decision],
) -> None:
    """Makes rows due that rewriters had discarded or changed, and that an allowed link now leads to; ``wanted`` by key."""
    opened = {
        row.id: (wanted[row.key].found_as, wanted[row.key].display)
        for row in known
        if row.rule is not None
        and row.rule.startswith(_BY_REWRITERS)
        and decide(wanted[row.key].url, wanted[row.key].depth).allowed
    }
    if opened:
        review_table.set_found_as(transaction, opened)
        url_table.reopen(transaction, opened)


def note_found(
    transaction: Transaction,
    known: Sequence[KnownUrl],
    wanted: Mapping[int, WantedLink],
    *,
    unreviewed: tuple[int, int],
) -> None:
    """Has known rows that edited rules were not applied to yet judged by the link that leads to them now.

    Those are the rows above the first id of ``unreviewed`` up to the second.
    """
    found = {row.id: wanted[row.key] for row in known if unreviewed[0] < row.id <= unreviewed[1]}
    others = [row.id for row in known if row.id in found and found[row.id].found_as != row.found_as]
    review_table.set_found_as(transaction, {row: (found[row].found_as, found[row].display) for row in others})
