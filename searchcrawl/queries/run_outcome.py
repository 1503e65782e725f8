"""How a run ended, as a reason and as an exit code (interface.md §2)."""

from __future__ import annotations

from typing import Final

from searchcrawl import urls
from searchcrawl.codes import ANSWERED, REFUSED
from searchcrawl.run import Run
from searchcrawl.store.documents import document_table
from searchcrawl.store.states import EndReason, FetchState
from searchcrawl.store.urls import url_table

DONE: Final = 0
ENDED_EARLY: Final = 3
INDEX_AWAY: Final = 6
STORE_FAILED: Final = 7
NO_START: Final = 8
QUARANTINE: Final = 9

_KNOWN: Final = {reason.value for reason in EndReason}


def end_reason(reason: str, *, failed: bool) -> str:
    """The reason of a run from that of Scrapy: a signal (``shutdown``) is ``stopped``."""
    if failed:
        return EndReason.STORE_FAILED
    if reason in _KNOWN:
        return reason
    return EndReason.STOPPED if reason in {"shutdown", "cancelled"} else reason


def exit_code(run: Run, reason: str) -> int:
    """The exit code of a run that ended for ``reason``; raises StoreError."""
    if run.shutdown.failure is not None:
        return STORE_FAILED
    if run.delivery_failure is not None:
        return INDEX_AWAY
    held = run.read(lambda transaction: document_table.totals(transaction, run.source_id)["quarantined"])
    if reason != EndReason.FINISHED:
        return ENDED_EARLY
    if _every_start_failed(run):
        return NO_START
    return QUARANTINE if held else DONE


def _every_start_failed(run: Run) -> bool:
    """Whether this run brought nothing from any start URL; what failed in an earlier one does not count."""
    keys = [urls.key(start.url) for start in run.starts]
    rows = run.read(lambda transaction: url_table.known(transaction, run.source_id, keys))
    if not rows:
        return False
    counts = run.counted()
    visited = any(counts[name] for name in ("fetched", "fetch_failures", "rejected", "conversion_failures"))
    # A start URL outside the boundary is never visited, and fails in each run.
    if not visited and not all(row.code in REFUSED for row in rows):
        return False
    return all(row.fetch_state == FetchState.SETTLED and row.code not in ANSWERED for row in rows)
