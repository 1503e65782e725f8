"""The closing of a run: what depends on all of its pages, or counts, is decided here, one step after the other.

The order of the steps is the algorithm. Each of them may be the last one of a process: the next run does it again, and what
it did before is the same then. Steps before the last batch run in a helper thread, later ones in the delivery thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

import xxhash

from searchcrawl import __version__
from searchcrawl.commit.near_copies import settle_near_copies
from searchcrawl.commit.orphans import settle_orphans
from searchcrawl.commit.retention import purge_old
from searchcrawl.commit.shared_copies import settle_shared_copies
from searchcrawl.comparison.look import count_differing
from searchcrawl.counters import DIFFERING, LOOKED_AT, PAST_LIMITS, UNSENT_REMOVALS
from searchcrawl.delivery import anchors, delivery_queue, removals
from searchcrawl.delivery.batch_sender import BatchSender
from searchcrawl.delivery.freezing import (
    COMMON_BLOCKS,
    COMMON_LANGUAGES,
    COMMON_TITLES,
    cut_content,
    freeze,
    load_of_hosts,
)
from searchcrawl.delivery.removals import find_limits, find_pages, let_go_of_left
from searchcrawl.exceptions import DeliveryError
from searchcrawl.failpoints import reach
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.run import Run
from searchcrawl.store import removal_table, source_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.states import EndReason, Leaving
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)


class Where(Enum):
    """At the end of which runs a step is taken."""

    ALWAYS = "always"
    #: all that is known was seen: the run was completed, or ``apply`` processed all that the cache holds
    ALL_SEEN = "all seen"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The end of one run; ``reason`` is why its crawl ended, ``hand_over`` gives other sources the copies that they have."""

    sender: BatchSender
    reason: str
    hand_over: Callable[[], None]
    #: ``Run.changes`` when it began
    changes: int = 0

    @property
    def run(self) -> Run:
        """The run that ends."""
        return self.sender.run

    @property
    def is_completed(self) -> bool:
        """Whether all that was due was visited."""
        return self.reason == EndReason.FINISHED

    @property
    def saw_all(self) -> bool:
        """Whether all that is known was seen."""
        return self.reason in {EndReason.FINISHED, EndReason.APPLIED}

    def take(self, steps: Sequence[ClosingStep]) -> None:
        """Takes steps in their order, until the run fails; raises what they raise."""
        for step in steps:
            if self.run.shutdown.failure is not None:
                return
            if self._is_taken(step):
                step.work(self)
                reach("closing.step")

    def send_copies(self) -> None:
        """Sends what a step put in the place of others; seals it while the index is away."""
        batch = delivery_queue.seal_batch(self.run)
        if batch is not None and not self.run.is_index_away:
            self.sender.deliver(batch)

    def note(self) -> None:
        """Notes that all steps were taken, where nothing has changed what they look at since the first of them began.

        It holds for the next process that takes the source: each one that may write raises the fence.
        """
        run = self.run
        if run.changes == self.changes:
            run.write(source_table.note, run.source_id, closed=_describe(run, run.lease.fence))

    def _is_as_before(self) -> bool:
        """Whether all steps were taken by the process before, and neither that one nor this has changed anything since."""
        run = self.run
        if run.changes:
            return False
        return bool(run.read(source_table.find, run.source_id, "closed") == _describe(run, run.lease.fence - 1))

    def _is_taken(self, step: ClosingStep) -> bool:
        if step.asks_index and self.run.is_index_away:
            return False
        if step.of_documents and self._is_as_before():
            return False
        return step.where is Where.ALWAYS or (self.is_completed if step.where is Where.COMPLETED else self.saw_all)


class ClosingStep(NamedTuple):
    """One step: its name, as the page on the architecture has it, where it is taken, and what it does."""

    name: str
    where: Where
    work: Callable[[Closing], object]
    #: it is left out while the index is away
    asks_index: bool = False
    #: what it does depends on the documents of the source, their links and what became of URLs, and on what ``_describe``
    #: names: it is left out where all of that is as the last completed run left it
    of_documents: bool = False


def _describe(run: Run, fence: int) -> str:
    """The process with this fence, and what steps depend on besides the table."""
    source = run.source
    keys = source.lifecycle.orphans, source.lifecycle.remove_on, source.copies.near, run.project.cache.preserve
    starts = [start.url for start in run.starts]
    found = repr((__version__, anchors.VERSION, run.fingerprint, keys, starts))
    return f"{fence} {xxhash.xxh3_64_hexdigest(found.encode('utf-8', 'surrogatepass'))}"


def _settle_near_copies(closing: Closing) -> None:
    run = closing.run
    settle_near_copies(run, partial(cut_content, blocks=load_of_hosts(run).blocks))


def _freeze_anchors(closing: Closing) -> bool:
    return anchors.freeze_anchors(closing.run, partial(freeze, closing.run, closing.sender.cache, COMMON_TITLES))


def _mark_orphans(closing: Closing) -> bool:
    """Whether documents are to be sent in the place of some."""
    run = closing.run
    return run.source.lifecycle.orphans != "check" and settle_orphans(run)


def _replace_orphans(closing: Closing) -> None:
    """Before orphans leave one of their copies takes the place of each, and may be a near copy of others."""
    if _mark_orphans(closing):
        _settle_near_copies(closing)
        closing.send_copies()


def _freeze_anchors_without_orphans(closing: Closing) -> None:
    if closing.run.source.lifecycle.orphans == "delete" and _freeze_anchors(closing):
        closing.send_copies()


def _send_shared_copies(closing: Closing) -> None:
    if settle_shared_copies(closing.run, gives_way=False):
        closing.send_copies()


def _purge(closing: Closing) -> None:
    purge_old(closing.run, [number for number, _ in closing.sender.cache.list_segments()])


#: Before the last batch is sealed. Near copies that were not sent yet need not be, and what is on most pages makes none.
BEFORE_LAST_BATCH: Final = (
    ClosingStep(
        "blocks of hosts",
        Where.COMPLETED,
        lambda closing: freeze(closing.run, closing.sender.cache, COMMON_BLOCKS),
        of_documents=True,
    ),
    ClosingStep(
        "usual languages",
        Where.COMPLETED,
        lambda closing: freeze(closing.run, closing.sender.cache, COMMON_LANGUAGES),
        of_documents=True,
    ),
    ClosingStep("near copies", Where.ALL_SEEN, _settle_near_copies, of_documents=True),
    ClosingStep(
        "shared copies", Where.ALWAYS, lambda closing: settle_shared_copies(closing.run, gives_way=closing.saw_all)
    ),
    ClosingStep("texts of links", Where.COMPLETED, _freeze_anchors, of_documents=True),
)

#: Once the index has the last batch.
AFTER_LAST_BATCH: Final = (
    ClosingStep("orphans", Where.COMPLETED, _replace_orphans, of_documents=True),
    ClosingStep("texts of links of orphans", Where.COMPLETED, _freeze_anchors_without_orphans, of_documents=True),
    ClosingStep("handing over", Where.ALWAYS, lambda closing: closing.hand_over()),
    # Those that others have listed anew since.
    ClosingStep("shared copies again", Where.ALWAYS, _send_shared_copies),
    ClosingStep(
        "removals",
        Where.ALWAYS,
        lambda closing: removals.remove_documents(closing.sender, completed=closing.is_completed),
    ),
    ClosingStep("left behind in receivers", Where.COMPLETED, lambda closing: let_go_of_left(closing.run)),
    ClosingStep("retention", Where.COMPLETED, _purge, asks_index=True),
    ClosingStep(
        "look at the index",
        Where.ALWAYS,
        lambda closing: look_at_end(closing.run, closing.sender.receiver),
        asks_index=True,
    ),
    ClosingStep("note", Where.COMPLETED, Closing.note, asks_index=True),
)

#: Of a run that delivers nothing: the same decisions, and nothing is carried out (D11, H6).
WITHOUT_DELIVERY: Final = (
    ClosingStep("orphans", Where.COMPLETED, _mark_orphans),
    ClosingStep("near copies", Where.ALL_SEEN, _settle_near_copies),
    ClosingStep(
        "shared copies", Where.ALWAYS, lambda closing: settle_shared_copies(closing.run, gives_way=closing.saw_all)
    ),
    ClosingStep("report", Where.ALWAYS, lambda closing: report(closing.run, completed=closing.is_completed)),
    ClosingStep("retention", Where.COMPLETED, _purge),
)


def report(run: Run, *, completed: bool) -> None:
    """Counts what waits into the run, and logs it; raises StoreError, LeaseLost."""
    # Of copies the text of their survivors waits as well.
    with_evidence = sum(row.leaving != Leaving.NO for rows in find_pages(run, completed) for row in rows)
    removals = with_evidence + run.read(removal_table.count_copies, source_id=run.source_id)
    limits = run.read(find_limits, run.source, run.source_id, removals)
    waiting = run.read(document_table.count_totals, source_id=run.source_id)["waiting"]
    run.counts[UNSENT_REMOVALS] = removals
    run.counts[PAST_LIMITS] = int(removals > 0 and not limits.allowed)
    logger.info(
        "nothing was delivered, because of %s in %s: a run without it would send %s and remove %d",
        run.source.no_delivery_key,
        run.source.path,
        counted(waiting, "document", "documents"),
        removals,
    )


def look_at_end(run: Run, receiver: Receiver) -> None:
    """Looks at about 120 documents of the index, the newest among them, and counts into the run how many differ.

    It costs some small requests, however large the index is; one that is away by then says nothing. Raises StoreError.
    """
    if not isinstance(receiver, SearchIndex):
        return
    name = run.source.name
    try:
        looked, differing = count_differing(receiver, run.database, name, run.source_id)
    except DeliveryError as error:
        logger.info("the index was not looked at when the run ended: %s", error)
        return
    # A run that was cut off may have counted before.
    before = run.copy_counts()
    run.count(**{LOOKED_AT: looked - before.get(LOOKED_AT, 0), DIFFERING: differing - before.get(DIFFERING, 0)})
    if differing:
        logger.warning(
            "%d of %d documents that were looked at differ in the index: searchcrawl verify %s --repair",
            differing,
            looked,
            name,
        )
    else:
        logger.info("%d documents of the index were looked at: it has them as the table says", looked)


def forget_end_look(run: Run) -> None:
    """Notes that what the last run saw was mended since; raises StoreError, LeaseLost."""
    if seen := run.copy_counts().get(DIFFERING, 0):
        run.count(**{DIFFERING: -seen})
        run.write_counted(lambda transaction: {})
