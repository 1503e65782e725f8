"""Sends documents from the cache to the index between runs: those that wait, or all of them again (E7)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from searchcrawl import clock
from searchcrawl.cache.opening import open_cache
from searchcrawl.comparison.bring_together import bring_together, prepare_resend
from searchcrawl.delivery import delivery_queue
from searchcrawl.delivery.batch_sender import Sent, open_sender
from searchcrawl.delivery.closing import forget_end_look
from searchcrawl.delivery.receivers.sending import note_receivers, open_stream, send_rest
from searchcrawl.exceptions import DeliveryError, UnknownReceiver
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.operations.source_lease import RETRY_SECONDS, check_delivers, lease_source
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.receivers import list_names, list_receivers
from searchcrawl.store import batch_table, receiver_table
from searchcrawl.store.documents import comparison_table, document_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.receiver_table import Sweep
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)


#: Called with the number of documents that were sent so far, and the number of all.
ProgressCallback = Callable[[int, int], None]


def flush(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    retry_seconds: float = RETRY_SECONDS,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Sends everything that waits for the index, including what a dead process began.

    The receivers besides it get what they do not have. If nothing waits, the index gets no request. Returns ``{"source", "documents", "removed", "failed", "to_fetch"}``.
    Removals that no run has decided about wait for the end of a run. Raises SourceBusy while the source is crawled, and
    DeliveryError if the index cannot be reached, or is newer than the store: then the rest waits as before.
    """
    sent = Sent()
    check_delivers(source)
    with lease_source(project, source, database) as run:
        if run is not None and run.read(delivery_queue.is_waiting, run.source_id):
            if isinstance(receiver, SearchIndex):
                receiver.ping()
            prepare_resend(run)
            sent = send_waiting(run, receiver, retry_seconds, on_progress, tells_receivers=False)
        if run is not None:
            send_rest(run, open_cache(project, source.name))
    return {"source": source.name, **sent._asdict()}


def resend(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    retry_seconds: float = RETRY_SECONDS,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Sends all documents that should be in the index again, with new versions, and everything that waits.

    The next run fetches those without a record in the cache: ``to_fetch`` counts all that it has to fetch for the
    index. A resend that is cut off is completed by the next run or ``flush``. Raises as ``flush``, but an index that is
    newer than the store is compared with it first.
    """
    done = Sent()
    check_delivers(source)
    with lease_source(project, source, database) as run:
        if run is not None:
            if isinstance(receiver, SearchIndex):
                receiver.ping()
            run.write(batch_table.begin_resend, run.source_id, clock.now_ms())
            if isinstance(receiver, SearchIndex):
                bring_together(run, receiver, resending=True)
            prepare_resend(run)
            sent = send_waiting(run, receiver, retry_seconds, on_progress)
            to_fetch = run.read(comparison_table.count_to_fetch, run.source_id)
            done = sent._replace(to_fetch=to_fetch)
            if not (to_fetch or done.failed):
                forget_end_look(run)
            if to_fetch:
                logger.warning(
                    "%s: the next run fetches %s that the cache does not have",
                    source.name,
                    counted(to_fetch, "document", "documents"),
                )
    return {"source": source.name, **done._asdict()}


def resend_to_receiver(
    project: Project, source: Source, database: Database, name: str, *, retry_seconds: float = RETRY_SECONDS
) -> dict[str, Any]:
    """Sends a receiver besides the index all documents that the index has, with new versions, and removes what it has besides.

    Returns and raises as ``resend``; ``to_fetch`` are those of which the cache has no record. One that is cut off is completed
    by the next run or ``flush``. Raises UnknownReceiver for a receiver that the source does not have.
    """
    check_delivers(source)
    if name in list_names(project, source) and name not in list_receivers(project, source):
        raise UnknownReceiver(f"the receiver {name} is a file: take it out of {FILE} for a run, and put it back")
    if name not in (names := list_receivers(project, source)):
        raise UnknownReceiver(
            f"{source.name} has no receiver of this name: {name} (it has {', '.join(names) or 'none'}: [receivers.NAME] in {FILE})"
        )
    sent = failed = to_fetch = 0
    with lease_source(project, source, database) as run:
        if run is not None:
            if run.read(receiver_table.require, source_id=run.source_id, name=name).is_paused:
                raise DeliveryError(f"the receiver {name} is paused: searchcrawl receivers resume {name}")
            run.write(receiver_table.begin_anew, run.source_id, name, above=0, sweeping=Sweep.ASKED)
            cache = open_cache(project, source.name)
            note_receivers(run)
            with open_stream(run, cache, name, retry_seconds=retry_seconds) as stream:
                sent = stream.send(looks=True)
            failed = run.read(receiver_table.count_faulty, run.source_id, name, lost=False)
            to_fetch = run.read(receiver_table.count_faulty, run.source_id, name, lost=True)
    return {"source": source.name, **Sent(documents=sent, failed=failed, to_fetch=to_fetch)._asdict()}


def send_waiting(
    run: Run,
    receiver: Receiver,
    retry_seconds: float,
    on_progress: ProgressCallback | None,
    *,
    tells_receivers: bool = True,
) -> Sent:
    """Sends everything that waits, and the rest of a resend; ``tells_receivers`` is as in ``open_sender``. Raises DeliveryError."""
    on_sent = None if on_progress is None else _add_up(on_progress, run.read(_count_waiting, source_id=run.source_id))
    with open_sender(
        run, receiver, retry_seconds=retry_seconds, on_sent=on_sent, tells_receivers=tells_receivers
    ) as sender:
        return delivery_queue.flush(sender).plus(delivery_queue.continue_resend(sender))


def _count_waiting(transaction: Transaction, *, source_id: int) -> int:
    return document_table.count_totals(transaction, source_id)["waiting"] + batch_table.count_to_resend(
        transaction, source_id
    )


def _add_up(on_progress: ProgressCallback, total: int) -> Callable[[int], None]:
    done = 0

    def add(number: int) -> None:
        nonlocal done
        done += number
        on_progress(done, max(total, done))

    return add
