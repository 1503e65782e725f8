"""The counts of the URLs of a run as it begins (J1)."""

from __future__ import annotations

from dataclasses import replace

from searchcrawl.counters import DISCOVERED, select_kept
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.urls import host_queue, url_classes
from searchcrawl.store.urls.suspect_table import Recovered
from searchcrawl.store.urls.url_classes import UrlClass


def begin(transaction: Transaction, source_id: int, row: RunRow, recovered: Recovered, *, is_new: bool) -> RunRow:
    """Counts the URLs of a run as it begins: those that are due, all others only where it goes on.

    Commands may have changed them since the process died, and an edit of the source file the horizon.
    """
    if is_new:
        due, failed = host_queue.count_todo(transaction, source_id, row.horizon_ms), len(recovered.set_aside)
        counts = {UrlClass.TO_FETCH: due, UrlClass.FAILED: failed, DISCOVERED: due + failed}
    else:
        counts = url_classes.count(transaction, source_id, row.id, row.horizon_ms)
    kept = select_kept({**row.counts, **counts})
    run_table.set_counts(transaction, row.id, kept)
    return replace(row, counts=kept)
