"""Which of the documents that are to leave the index have evidence that holds: their redirects are followed (L3, C6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from searchcrawl.codes import REDIRECTS, WITH_DOCUMENT, Code, CodeClass, facts_of
from searchcrawl.rules.lifecycle import describe_evidence, is_confirmed, is_evidence
from searchcrawl.sources.config import Lifecycle
from searchcrawl.store.batches.removal_table import RemovalCandidate
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.states import Leaving
from searchcrawl.store.urls import outlink_table, url_table
from searchcrawl.store.urls.url_table import VisitResult

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
    candidates = [row for row in candidates if _is_allowed(row, lifecycle, completed=completed)]
    results = {
        row.url_id: VisitResult(row.code, row.rule, row.failures, row.redirected and not _is_noted(row))
        for row in candidates
        if row.leaving == Leaving.EVIDENCE
    }
    moved = [url_id for url_id, result in results.items() if _leads_on(result)]
    ends = _follow(transaction, moved)
    kept = {url_id for url_id in moved if url_id not in ends or not _lets_leave(ends[url_id], lifecycle)}
    kept |= {url_id for url_id, result in results.items() if not _holds(result, lifecycle)}
    return [row for row in candidates if row.url_id not in kept]


def _is_noted(row: RemovalCandidate) -> bool:
    """Whether what the last visit brought was noted against the document, and nothing earlier."""
    return row.evidence == describe_evidence(row.code, row.rule)


def _leads_on(result: VisitResult) -> bool:
    """Whether a row leads to another row; with a rule, that rule refuses its target."""
    return result.code in REDIRECTS and result.rule is None


def _is_allowed(row: RemovalCandidate, lifecycle: Lifecycle, *, completed: bool) -> bool:
    if row.leaving == Leaving.FAILED:
        # The key may have been edited since.
        return completed and 0 < lifecycle.error_runs_before_hidden <= row.failed_runs
    return completed or row.leaving != Leaving.ORPHAN


def _is_evidence(result: VisitResult, lifecycle: Lifecycle) -> bool:
    if result.code == Code.OUTSIDE_BOUNDARY and result.redirected:
        # It leads to an excluded URL, perhaps for a while.
        return False
    return is_evidence(result.code, result.rule, lifecycle.remove_on) and is_confirmed(
        result.code, result.failures, remove_on=lifecycle.remove_on, confirmations=lifecycle.gone_confirmations
    )


def _lets_leave(end: VisitResult, lifecycle: Lifecycle) -> bool:
    return end.code in WITH_DOCUMENT or _is_evidence(end, lifecycle)


def _holds(result: VisitResult, lifecycle: Lifecycle) -> bool:
    """Whether the last visit did not fail: it brought evidence, or a page that is not shown under this URL."""
    return facts_of(result.code).kind in _READ_WELL or _is_evidence(result, lifecycle)


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
        targets |= {page: links[0] for page, links in outlink_table.load(transaction, fresh).items() if links}
        places = {start: targets[page] for start, page in places.items() if page in targets}
        results |= url_table.find_results(transaction, sorted(set(places.values()) - results.keys()))
        places = {start: page for start, page in places.items() if page in results}
        ends |= {start: results[page] for start, page in places.items() if not _leads_on(results[page])}
        places = {start: page for start, page in places.items() if start not in ends}
        if not places:
            break
    return ends
