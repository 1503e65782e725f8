"""Links that lead to known rows, and what they change about these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from searchcrawl.codes import REFUSED
from searchcrawl.rules.decision import Decision
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import review_table, url_table
from searchcrawl.store.urls.url_table import KnownUrl, UrlPlace

#: How the rule begins in a row whose URL a rewriter discarded or changed.
_BY_REWRITERS: Final = ("rewrite[", "rewrite:")
#: In a row whose URL is no identity any more.
_BY_IDENTITY: Final = (*_BY_REWRITERS, "scope.strip_parameters:")


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
        if row.fetch_state == FetchState.SETTLED
        and row.rule is not None
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
    review_table.note_found_as(transaction, {row: found[row].found_as for row in others})


def may_be_allowed(place: UrlPlace) -> bool:
    """Whether a row was refused for its depth, or another rule of the boundary, and may be allowed where it is nearer."""
    is_identity = place.rule is None or not place.rule.startswith(_BY_IDENTITY)
    # The others are to be visited, and counted.
    return place.code in REFUSED and place.fetch_state == FetchState.SETTLED and is_identity
