"""What the cache holds, pushed to the index between runs: what waits, or everything again (E7)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from searchcrawl.delivery import delivery_queue
from searchcrawl.delivery.batch_sender import open_sender
from searchcrawl.delivery.delivery_queue import Sent
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.operations.source_lease import held
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.batches import resend_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Database, Transaction

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 60.0

#: Hears how many documents went on, and how many there are.
Told = Callable[[int, int], None]


def flush(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    retry_seconds: float = _RETRY_SECONDS,
    told: Told | None = None,
) -> dict[str, Any]:
    """Sends what waits, what a dead process left under way included; the index is asked only where something does.

    Answers as interface.md §2 says; removals that no run has decided on wait for the end of one.
    Raises SourceBusy while the source is crawled, and DeliveryError where the index cannot be
    reached: what was not sent then waits as before.
    """
    sent = Sent()
    with held(project, source, database) as run:
        if run is not None and run.read(lambda transaction: delivery_queue.is_waiting(transaction, run.source_id)):
            if isinstance(receiver, SearchIndex):
                receiver.ping()
            sent = _send(run, receiver, retry_seconds, told)
    return _answer(source, sent)


def resend(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    retry_seconds: float = _RETRY_SECONDS,
    told: Told | None = None,
) -> dict[str, Any]:
    """Sends all documents that should be in the index again, with new versions, and what waits; raises as ``flush``.

    Those whose records the cache has no more are counted as failed; those whose records are damaged
    are fetched by the next run besides. Once begun, it is completed by the next run or ``flush``.
    """
    sent = Sent()
    with held(project, source, database) as run:
        if run is not None:
            if isinstance(receiver, SearchIndex):
                receiver.ping()
            lost = run.read(lambda transaction: resend_table.without_record(transaction, run.source_id))
            delivery_queue.request_resend(run)
            sent = _send(run, receiver, retry_seconds, told).plus(Sent(failed=lost))
            if lost:
                logger.error("%s: %d documents of the index are no longer in the cache", source.name, lost)
    return _answer(source, sent)


def _send(run: Run, receiver: Receiver, retry_seconds: float, told: Told | None) -> Sent:
    on_sent = None if told is None else _summed(told, run.read(lambda transaction: _total(transaction, run.source_id)))
    # A run that was cut off goes on: what is sent meanwhile belongs to it.
    counts_into_run = run.row.ended_ms is None
    with open_sender(
        run, receiver, retry_seconds=retry_seconds, counts_into_run=counts_into_run, on_sent=on_sent
    ) as sender:
        return delivery_queue.flush(sender).plus(delivery_queue.continue_resend(sender))


def _total(transaction: Transaction, source_id: int) -> int:
    return document_table.totals(transaction, source_id)["waiting"] + resend_table.left(transaction, source_id)


def _summed(told: Told, total: int) -> Callable[[int], None]:
    done = 0

    def add(number: int) -> None:
        nonlocal done
        done += number
        told(done, max(total, done))

    return add


def _answer(source: Source, sent: Sent) -> dict[str, Any]:
    return {"source": source.name, **sent._asdict()}
