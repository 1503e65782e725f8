"""Part of the URL table: URLs that a process had claimed when it died, and those that may be the reason.

Such a suspect is visited after all other URLs, alone: if the run stops turning again, it was this one (966).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Select, select, update

from searchcrawl.codes import WARNED, Code
from searchcrawl.items import Claim
from searchcrawl.rules.lifecycle import MOST_STOPS, Failures
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import urls
from searchcrawl.store.statements import is_one_of, split
from searchcrawl.store.states import CLAIMED, FetchState
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.fetch_events import INTERRUPTED, SET_ASIDE, SUSPECTED, TRIED_AGAIN

# The literals let the planner use the partial index.
_CLAIMED: Final = is_one_of("fetch_state", CLAIMED)


class Recovered(NamedTuple):
    """What a dead process had claimed: how many rows, URLs that may have ended it, and those that were set aside."""

    claims: int
    suspects: list[str]
    set_aside: list[str]


def recover(
    transaction: Transaction,
    source_id: int,
    *,
    stalled: bool,
    by_visit: bool = True,
    parsed: Collection[int] = (),
    run_id: int | None = None,
) -> Recovered:
    """Releases the rows that a dead process had claimed (D7), for the run that begins or goes on.

    ``stalled``: it ended because its reactor did not turn. Then they are suspects; a row that was alone has stopped it,
    if a visit did (``by_visit``). Else what it was parsing (``parsed``) may have ended it. Those pages are visited among the
    others again, and a worker reads them from now on: if one ends that, it is the reason.
    """
    claimed = select(urls.c.id, urls.c.url, urls.c.fetch_state, urls.c.failures)
    rows = list(transaction.execute(claimed.where(_CLAIMED, urls.c.source_id == source_id)))
    found = Recovered(len(rows), [], [])
    if not stalled:
        # Those that are suspects already were counted before this process was killed, too.
        rows = [row for row in rows if row.id in parsed and row.fetch_state != FetchState.SUSPECT]
    here = update(urls).where(_CLAIMED, urls.c.source_id == source_id)
    transaction.execute(here.values((SUSPECTED if stalled else INTERRUPTED).values))
    for row in rows:
        failures = Failures.parse(row.failures)
        # A worker reads what has a note: this process did not end by it.
        if row.fetch_state == FetchState.ALONE and by_visit if stalled else not failures.stops:
            failures = failures.add_stop()
            _note_stop(transaction, row.id, failures, run_id)
        if row.fetch_state != FetchState.SUSPECT:
            (found.set_aside if failures.is_set_aside else found.suspects).append(row.url)
    return found


def _note_stop(transaction: Transaction, url_id: int, failures: Failures, run_id: int | None) -> None:
    row = update(urls).where(urls.c.id == url_id)
    transaction.execute(row.values(failures=failures.dump()))
    if failures.is_set_aside:
        error = f"the crawler ended or stopped turning {MOST_STOPS} times while it read the page"
        transaction.execute(row.values(**SET_ASIDE.values, error=error, run_id=run_id))


def suspect(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has rows that a member of a run had under way visited after all others, one by one (``members``)."""
    for part in split(url_ids):
        transaction.execute(update(urls).where(urls.c.id.in_(part)).values(SUSPECTED.values))


def try_again(transaction: Transaction, source_id: int) -> None:
    """Has pages that were set aside visited once more; the next stop sets them aside again."""
    aside = (urls.c.source_id == source_id, is_one_of("code", WARNED), urls.c.code == int(Code.SET_ASIDE))
    settled = urls.c.fetch_state == int(FetchState.SETTLED)
    transaction.execute(update(urls).where(*aside, settled).values(TRIED_AGAIN.values))


def is_any_left(transaction: Transaction, source_id: int) -> bool:
    """Whether there are suspects that nobody has claimed."""
    return transaction.execute(_select_suspects(source_id).limit(1)).first() is not None


def claim_next(transaction: Transaction, source_id: int, *, now_ms: int, forced: bool) -> Claim | None:
    """Claims the suspect that has stopped the fewest visits; None if there are none. See ``url_table.claim``."""
    rows = list(transaction.execute(_select_suspects(source_id)))
    if not rows:
        return None
    first = min(rows, key=lambda row: (Failures.parse(row.failures).stops, row.id))
    return url_table.claim_alone(transaction, first.id, now_ms=now_ms, forced=forced)


def _select_suspects(source_id: int) -> Select[tuple[int, str | None]]:
    suspects = select(urls.c.id, urls.c.failures).where(_CLAIMED, urls.c.source_id == source_id)
    return suspects.where(urls.c.fetch_state == int(FetchState.SUSPECT))
