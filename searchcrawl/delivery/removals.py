"""Removals at the end of a run: evidence, limits, quarantine (L3; docs: decisions/removals-at-the-end).

Which documents have evidence that holds: their redirects are followed (C6).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from searchcrawl import clock
from searchcrawl.codes import REDIRECTS, WITH_DOCUMENT, Code, CodeClass, facts_of
from searchcrawl.commit.orphans import unmark_orphans
from searchcrawl.delivery.batch_sender import BatchSender, find_beginning
from searchcrawl.failpoints import reach
from searchcrawl.rules.lifecycle import WITHDRAWN, describe_evidence
from searchcrawl.run import Run
from searchcrawl.sources.config import Lifecycle, Source
from searchcrawl.store import batch_table, log_table, receiver_table, removal_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.removal_table import RemovalCandidate
from searchcrawl.store.states import BatchState, Leaving
from searchcrawl.store.urls import link_table, url_table
from searchcrawl.store.urls.url_table import VisitResult

logger = logging.getLogger(__name__)


class DeletionLimits(NamedTuple):
    """Whether ``candidates`` may be removed: of so many ``documents``, with those ``removed`` lately and in quarantine."""

    allowed: bool
    documents: int
    removed: int
    quarantined: int
    candidates: int


def remove_documents(sender: BatchSender, *, completed: bool) -> None:
    """Removes the documents that are to leave the index, or puts all of these removals into quarantine.

    Without evidence about its own URL a document leaves only at the end of a run that was ``completed``.
    After a crash in the midst of it the next process decides the same: what left or waits by then counts.
    Where the index is away the removals are sealed: other receivers have them carried out, the index once it is there. Not
    where copies of other sources may have to take the places of documents: these sources deliver to the index.
    """
    run = sender.run
    if run.is_index_away and run.source.shares_copies:
        return
    sender.remove_copies()
    found, candidates = False, 0
    for rows in find_pages(run, completed):
        found = True
        candidates += len(rows) - len(_find_moved(run, rows))
    if not found:
        return
    if run.source.shares_copies:
        # Before anything is sealed, which receivers would read.
        sender.ask_index()
    allowed = run.read(_is_allowed, run=run, candidates=candidates)
    for rows in find_pages(run, completed):
        moved = _find_moved(run, rows)
        if gone := [row for row in rows if row.url_id in moved]:
            sender.remove(gone, counted=False)
        counted = [row for row in rows if row.url_id not in moved]
        if counted and allowed:
            sender.remove(counted, counted=True)
        elif counted:
            run.write(removal_table.quarantine, url_ids=[row.url_id for row in counted], run_id=run.id)
            reach("delete.selected")


def _find_moved(run: Run, rows: Sequence[RemovalCandidate]) -> set[int]:
    """Those of the candidates that were listed under another name since, with their text: they count towards no limit.

    The index has that text already, so that nothing is lost with them.
    """
    listed = [row.url_id for row in rows if row.code == Code.NO_LONGER_LISTED]
    return run.read(removal_table.find_moved, listed) if listed else set()


def finish_removals(sender: BatchSender) -> int:
    """Sends the removals of a dead process, or of one without the index, and removes the copies that it left.

    Returns how many. What waited for the index was sent before: some of it stands in the place of what goes.
    """
    removed = sum(gone for _, gone in _send_left(sender))
    # The process may have died between the receipt of a survivor and the removal of its copies.
    return removed + sender.remove_copies()


def carry_out(sender: BatchSender, find: Callable[[Transaction], list[RemovalCandidate]]) -> Iterator[tuple[int, int]]:
    """Carries out removals that an operator decided about, as long as ``find`` finds any, and those of a dead process.

    They do not count towards the limits. Yields, page by page, how many there were and how many the index acknowledged.
    """
    yield from _send_left(sender)
    while rows := sender.run.read(find):
        yield len(rows), sender.remove(rows, counted=False, decided=True)


def _send_left(sender: BatchSender) -> Iterator[tuple[int, int]]:
    run = sender.run
    while run.write(removal_table.open_early, source_id=run.source_id):
        pass
    for batch in run.read(batch_table.find_emptied, source_id=run.source_id):
        # All are opened, or have their receipts, and the process died before the index made them visible.
        sender.commit(batch)
    for batch in run.read(removal_table.find_under_way, source_id=run.source_id):
        if batch.state < BatchState.ACKNOWLEDGED:
            run.write(removal_table.take_over, batch=batch, run_id=run.id, now_ms=clock.now_ms())
        for rows in run.read_pages(removal_table.find_without_receipt, source_id=run.source_id, number=batch.number):
            yield len(rows), sender.send_removals(batch, rows)
        sender.commit(batch)


def find_pages(run: Run, completed: bool) -> Iterator[list[RemovalCandidate]]:
    """The documents that are to leave the index at the end of a run, in pages."""
    find = partial(removal_table.find_candidates, before=find_beginning(run), is_away=run.is_index_away)
    for page in run.read_pages(find, source_id=run.source_id):
        rows = list(page)
        if not completed:
            # What was said of a page before an edit may hold no longer: its visit comes first.
            ids = [row.url_id for row in rows]
            due = run.read(removal_table.find_due, url_ids=ids, horizon_ms=run.row.horizon_ms)
            rows = [row for row in rows if row.url_id not in due]
        if not (completed and run.source.lifecycle.orphans == "delete"):
            rows = _leave_orphans(run, rows)
        kept = run.read(select_with_evidence, candidates=rows, lifecycle=run.source.lifecycle, completed=completed)
        if kept:
            yield kept


def _leave_orphans(run: Run, rows: list[RemovalCandidate]) -> list[RemovalCandidate]:
    """Takes the marks of orphans away that a process left which died; returns the other candidates."""
    stale = [row.url_id for row in rows if row.leaving == Leaving.ORPHAN]
    if stale:
        run.write(unmark_orphans, source_id=run.source_id, url_ids=stale)
    return [row for row in rows if row.leaving != Leaving.ORPHAN]


def _is_allowed(transaction: Transaction, *, run: Run, candidates: int) -> bool:
    """Whether so many removals are within the limits.

    They are counted together with those of a day and those since the last completed run, and with those that wait (L3).
    """
    limits = find_limits(transaction, run.source, run.source_id, candidates)
    if not limits.allowed:
        logger.warning(
            "%d of %d documents would leave the index (%d left it lately, %d wait for approval): they wait in quarantine "
            "(searchcrawl quarantine list %s)",
            candidates,
            limits.documents,
            limits.removed,
            limits.quarantined,
            run.source.name,
        )
    return limits.allowed


def find_limits(transaction: Transaction, source: Source, source_id: int, candidates: int) -> DeletionLimits:
    """Counts what counts towards the limits on deleting together with ``candidates``, and says whether they hold."""
    totals = document_table.count_totals(transaction, source_id)
    # Six runs that an outage met must not remove more than one.
    removed = removal_table.count_recent(transaction, source_id, since_ms=clock.now_ms() - clock.DAY_MS)
    # Without the index some wait to be sent, and removals to be carried out.
    documents = totals["documents"] + removed + removal_table.count_under_way(transaction, source_id)
    allowed = source.lifecycle.allows(candidates + removed + totals["quarantined"], documents)
    return DeletionLimits(allowed, documents, removed, totals["quarantined"], candidates)


#: So many permanent redirects are followed from row to row; a longer chain, or a circle, removes nothing.
MAX_HOPS: Final = 20
_READ_WELL: Final = frozenset({CodeClass.SUCCESS, CodeClass.COPY, CodeClass.DISPLAY})


def select_with_evidence(
    transaction: Transaction, candidates: Sequence[RemovalCandidate], lifecycle: Lifecycle, *, completed: bool
) -> list[RemovalCandidate]:
    """Selects the candidates whose evidence holds now; the others stay in the index, and are candidates again.

    A page that moved for good needs an end of its redirects that was fetched well, or that is gone or refused itself.
    A page whose later visit failed is not removed for what an earlier one brought. A document without evidence about
    its own URL leaves only at the end of a run that was ``completed``.
    """
    candidates = [row for row in candidates if _may_leave(row, lifecycle, completed=completed)]
    results = {
        row.url_id: VisitResult(row.code, row.rule, row.failures, row.redirected and not _is_noted(row))
        for row in candidates
        if row.leaving == Leaving.EVIDENCE
    }
    moved = [url_id for url_id, result in results.items() if _leads_on(result)]
    ends = _follow(transaction, moved)
    gone_on = {url_id for url_id, end in ends.items() if end.code in WITH_DOCUMENT or _is_evidence(end, lifecycle)}
    # The visit did not fail: it brought evidence, or a page that is not shown under this URL.
    held = {
        url_id
        for url_id, result in results.items()
        if facts_of(result.code).kind in _READ_WELL or _is_evidence(result, lifecycle)
    }
    # It was taken by mistake, and another visit has shown that.
    held |= {row.url_id for row in candidates if row.code == Code.SENTINEL and row.evidence == WITHDRAWN}
    kept = results.keys() - held | set(moved) - gone_on
    return [row for row in candidates if row.url_id not in kept]


def _is_noted(row: RemovalCandidate) -> bool:
    """Whether what the last visit brought was noted against the document, and nothing earlier."""
    return row.evidence == describe_evidence(row.code, row.rule)


def _leads_on(result: VisitResult) -> bool:
    """Whether a row leads to another row; with a rule, that rule refuses its target."""
    return result.code in REDIRECTS and result.rule is None


def _may_leave(row: RemovalCandidate, lifecycle: Lifecycle, *, completed: bool) -> bool:
    if row.leaving == Leaving.FAILED:
        # The key may have been edited since.
        return completed and 0 < lifecycle.error_runs_before_hidden <= row.failed_runs
    return completed or row.leaving != Leaving.ORPHAN


def _is_evidence(result: VisitResult, lifecycle: Lifecycle) -> bool:
    if result.code == Code.OUTSIDE_BOUNDARY and result.redirected:
        # It leads to an excluded URL, perhaps for a while.
        return False
    return lifecycle.is_evidence(result.code, result.rule, result.failures)


def _follow(transaction: Transaction, moved: Sequence[int]) -> dict[int, VisitResult]:
    """The results at the ends of the redirects of rows; a chain without an end that was visited is left out.

    All chains go on together, a hop at a time, so that each hop is a few queries.
    """
    results: dict[int, VisitResult] = {}
    targets: dict[int, int] = {}
    places = {url_id: url_id for url_id in moved}
    ends: dict[int, VisitResult] = {}
    for _ in range(MAX_HOPS):
        fresh = sorted(set(places.values()) - targets.keys())
        targets |= {page: links[0] for page, links in link_table.load(transaction, fresh).items() if links}
        places = {start: targets[page] for start, page in places.items() if page in targets}
        results |= url_table.find_results(transaction, sorted(set(places.values()) - results.keys()))
        places = {start: page for start, page in places.items() if page in results}
        ends |= {start: results[page] for start, page in places.items() if not _leads_on(results[page])}
        places = {start: page for start, page in places.items() if start not in ends}
        if not places:
            break
    return ends


def let_go_of_left(run: Run) -> None:
    """Has receivers remove them, within the limits on deleting: no removal of the index has counted them (L3)."""
    if not run.read(receiver_table.load, source_id=run.source_id):
        return
    count = run.read(log_table.count_left, source_id=run.source_id)
    if not count:
        return
    if not run.read(find_limits, run.source, run.source_id, count).allowed:
        logger.warning(
            "receivers have %d documents that the index does not have, which is past the limits on deleting: "
            "searchcrawl resend %s --receiver NAME has one receiver remove them",
            count,
            run.source.name,
        )
        return
    while rows := run.read(log_table.find_left, source_id=run.source_id):
        run.write(_let_go, run=run, url_ids=rows)


def _let_go(transaction: Transaction, *, run: Run, url_ids: Sequence[int]) -> None:
    log_table.let_go(transaction, run.source_id, url_ids)
    # They count towards the limits, as a delivery of removals does.
    batch = batch_table.add_batch(transaction, run.source_id, run.id, clock.now_ms(), removals=len(url_ids))
    batch_table.set_state(transaction, batch.number, BatchState.COMMITTED)
