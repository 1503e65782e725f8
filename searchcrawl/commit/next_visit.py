"""What a visit says about the next one: when the row is due, its interval, and what its sitemap's date was worth (D2, L5).

Pure, as ``decide``: it does not use the store.
"""

from __future__ import annotations

from dataclasses import dataclass

from searchcrawl.codes import WITH_DOCUMENT, Code
from searchcrawl.items import Claim
from searchcrawl.rules import recrawl
from searchcrawl.rules.recrawl import Proof
from searchcrawl.sources.config import Lifecycle


@dataclass(frozen=True, slots=True, kw_only=True)
class NextVisit:
    """When a row is due again, and its interval; None leaves the interval as it is."""

    due_ms: int
    interval_ms: int | None = None


def observe(claim: Claim, code: int, *, differs: bool, edited: bool) -> bool | None:
    """Whether a visit that did not fail saw a change since the last one; None: it cannot tell.

    ``code`` is that of the visit, ``differs`` tells whether an indexed value of a good page does. After an edit of the
    source (``edited``), and where a page is processed again for another reason, the page itself need not have changed.
    """
    if edited or claim.anew or claim.code == Code.NOT_FETCHED:
        return None
    if code in WITH_DOCUMENT and claim.fields_digest is not None:
        return differs
    if claim.failed_runs:
        # What it was before it failed is not known.
        return None
    return code not in {304, claim.code}


def find_next_visit(
    claim: Claim, lifecycle: Lifecycle, *, visited_ms: int, changed: bool | None, failed_runs: int, horizon_ms: int
) -> NextVisit:
    """When the row is due after a visit; ``changed`` as ``observe`` has it, ``failed_runs`` with this visit."""
    intervals = lifecycle.intervals
    interval_ms, gap_ms = None, intervals.after_failure_ms
    if not failed_runs:
        elapsed_ms = None if claim.visited_ms is None else visited_ms - claim.visited_ms
        interval_ms = intervals.adapt(claim.interval_ms, changed=changed, elapsed_ms=elapsed_ms)
        gap_ms = intervals.every_ms if interval_ms is None else interval_ms
    due_ms = recrawl.next_due_ms(visited_ms, interval_ms=gap_ms, failed_runs=failed_runs)
    due_ms -= recrawl.find_slack_ms(due_ms - visited_ms, into_run_ms=visited_ms - horizon_ms)
    # Even if the clock was set back, a run must not visit a row twice.
    return NextVisit(due_ms=max(due_ms, horizon_ms + 1), interval_ms=interval_ms)


def find_proof(claim: Claim, lifecycle: Lifecycle, *, changed: bool | None, now_ms: int) -> Proof | None:
    """What a visit shows of the date that a sitemap gave its page; None: nothing, or no date is used."""
    lastmod_ms, visited_ms = claim.lastmod_ms, claim.visited_ms
    is_used = lifecycle.trust_sitemap or lifecycle.intervals.are_set
    # A second try of this run, or the first after a failure, is not the visit that the date was compared with.
    if changed is None or not is_used or claim.sitemap_id is None or claim.attempt or claim.failed_runs:
        return None
    if lastmod_ms is None or visited_ms is None:
        return None
    said = recrawl.read_lastmod(lastmod_ms, visited_ms=visited_ms, now_ms=now_ms)
    if said is None or not recrawl.weigh(said, changed=changed, lastmod_ms=lastmod_ms, visited_ms=visited_ms):
        return None
    return Proof(sitemap_id=claim.sitemap_id, said=said, changed=changed)
