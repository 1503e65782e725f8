"""``delete NAME``: takes a source out of the index, the cache and the table; also one whose file is gone.

The removals are sealed first, so that a crawl which follows a crash agrees with the index. Then whatever the index has of the
source is removed, known to the table or not; the cache goes, and the rows last: as long as one is left, the same call
completes the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from searchcrawl import clock, urls
from searchcrawl.cache.opening import delete_cache, has_cache, open_cache
from searchcrawl.delivery.feeds import write_deltas, write_feeds
from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.delivery.receivers.sending import note_receivers, open_stream
from searchcrawl.exceptions import DeliveryError, UnsupportedByIndex
from searchcrawl.failpoints import reach
from searchcrawl.index.opening import use_index
from searchcrawl.index.receiver import Batch, Receiver, SearchIndex
from searchcrawl.items import Removal
from searchcrawl.operations.plan_file import drop_plans
from searchcrawl.operations.source_lease import RETRY_SECONDS, lease_source
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store import batch_table, log_table, receiver_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import deletion, lease, run_table

#: Documents that are removed at once.
_PART: Final = 1000


def count_documents(database: Database, name: str) -> int | None:
    """How many documents of a source the index has, by the table; None for a source that the table does not know."""
    totals = database.read(run_table.read_of, name, document_table.count_totals, {})
    return totals.get("documents")


def is_left(project: Project, database: Database, name: str) -> bool:
    """Whether table, cache or index have anything of a source; raises DeliveryError, UnsupportedByIndex, StoreError."""
    if count_documents(database, name) is not None or has_cache(project, name):
        return True
    with use_index(project) as receiver:
        return next(iter(_require_index(receiver).scan(name)), None) is not None


def delete(
    project: Project, source: Source, database: Database, *, retry_seconds: float = RETRY_SECONDS
) -> dict[str, Any]:
    """Deletes a source: its documents in the index, its cache, its rows. Its file and its log stay.

    Returns ``{"source", "documents", "removed", "failed", "to_fetch"}``; while the index refuses removals (``failed``),
    cache and rows stay. Raises SourceBusy while the source is crawled, and DeliveryError where the index cannot be
    reached, or a receiver besides it: then the cache and the rows are still there, and the same call deletes them later. Feeds are
    written last; of one that cannot be written the error is raised, and the same call writes it.
    """
    with lease_source(project, source, database) as run:
        if run is not None:
            _seal_all(run)
        removed, failed = _empty_index(project, source.name, database, retry_seconds, run)
        if run is not None and not failed:
            failed = _empty_receivers(run, retry_seconds)
        if not failed:
            drop_plans(project, source.name)
            for path in (each(source.name) for each in (project.metrics_file, project.told_file, project.said_file)):
                path.unlink(missing_ok=True)
            delete_cache(project, source.name)
            reach("source.uncached")
            if run is not None:
                _delete_rows(run)
            else:
                database.write(_delete_unused, name=source.name)
    return {"source": source.name, "documents": removed + failed, "removed": removed, "failed": failed, "to_fetch": 0}


def _seal_all(run: Run) -> None:
    after: int | None = 0
    while after is not None:
        seal = partial(deletion.seal_all, source_id=run.source_id, run_id=run.id, now_ms=clock.now_ms())
        after = run.write(seal, after=after)
        reach("source.sealed")


def _empty_index(
    project: Project, name: str, database: Database, retry_seconds: float, run: Run | None
) -> tuple[int, int]:
    """Removes all that the index has of a source; returns how many documents that were, and how many it refuses."""
    retry = IndexRetry(retry_seconds)
    retry.limit_to_end()
    removed = 0
    with use_index(project) as receiver:
        index = _require_index(receiver)
        retry.attempt(index.ping)
        version = _choose_version(index, database, name, retry)
        if run is not None:
            removed = _remove_sealed(run, index, retry, version)
        while entries := retry.attempt(lambda: list(islice(index.scan(name), _PART))):
            removals = [Removal(id=each.id, url=each.access_url or each.url, code=0) for each in entries]
            gone = len(_remove(index, retry, name, version, removals))
            removed += gone
            if not gone:
                return removed, len(entries)
    return removed, 0


def _remove_sealed(run: Run, index: SearchIndex, retry: IndexRetry, version: int) -> int:
    """Sends what was sealed, also of documents that the index does not have; returns how many of them it had.

    A process that died may have sent some: if they come late, the index has a newer version, that of the removal.
    """
    name, after, removed = run.source.name, 0, 0
    while rows := run.read(deletion.find_sealed, source_id=run.source_id, after=after, most=_PART):
        after = rows[-1][0]
        removals = [Removal(id=urls.document_id(name, url), url=url, code=0) for _, url in rows]
        there = retry.attempt(partial(index.find_versions, [each.id for each in removals]))
        removed += len(_remove(index, retry, name, version, removals) & there.keys())
    return removed


def _remove(index: SearchIndex, retry: IndexRetry, name: str, version: int, removals: Sequence[Removal]) -> set[str]:
    """Sends removals, and commits them; returns the ids of those that the index acknowledged."""
    part = Batch(number=version, source=name, crawl_version=version, removals=removals)
    receipts = retry.attempt(partial(index.deliver, part))
    reach("delete.sent")
    retry.attempt(index.commit)
    return {each.id for each, receipt in zip(removals, receipts, strict=True) if receipt.accepted}


def _choose_version(index: SearchIndex, database: Database, name: str, retry: IndexRetry) -> int:
    """A version above all that the index has of the source: it may be newer than the store, or a clock was ahead."""
    known = database.read(batch_table.choose_version, now_ms=clock.now_ms())
    return max(known, retry.attempt(lambda: index.find_highest_version(name)) + 1)


def _require_index(receiver: Receiver) -> SearchIndex:
    if not isinstance(receiver, SearchIndex):
        raise UnsupportedByIndex(f"{type(receiver).__name__} cannot list its documents")
    return receiver


def _empty_receivers(run: Run, retry_seconds: float) -> int:
    """Removes what the receivers besides the index have, and tells deltas so; returns how many removals were refused.

    Raises DeliveryError where one is away, or paused.
    """
    for row in run.read(receiver_table.load, source_id=run.source_id):
        if row.is_paused:
            raise DeliveryError(f"the receiver {row.name} is paused, and has documents of {run.source.name}")
    refused = 0
    after: int | None = 0
    while after is not None:
        after = run.write(log_table.let_go_of_all, source_id=run.source_id, after=after)
    cache = open_cache(run.project, run.source.name)
    write_deltas(run)
    _require_written(run)
    for name in note_receivers(run):
        with open_stream(run, cache, name, retry_seconds=retry_seconds) as stream:
            stream.send()
            stream.remove_rest()
        refused += run.read(receiver_table.count_faulty, run.source_id, name, lost=False)
    return refused


def _require_written(run: Run) -> None:
    if run.files.failure is not None:
        raise run.files.failure


def _delete_rows(run: Run) -> None:
    while run.write(deletion.delete_urls, source_id=run.source_id):
        reach("source.rows")
    # Feeds say the same as the index: nothing is there any more.
    write_feeds(run)
    _require_written(run)
    # Not by the run, which would renew a lease that is gone.
    run.database.write(deletion.delete_source, own=run.lease)


def _delete_unused(transaction: Transaction, *, name: str) -> None:
    """Deletes a source that never began a run."""
    source_id = run_table.find_source(transaction, name)
    if source_id is not None:
        deletion.delete_source(transaction, lease.take(transaction, source_id, name=name))
