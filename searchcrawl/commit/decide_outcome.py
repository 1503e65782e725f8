"""Decides what a visit that ended without a page changes in its row and its document. Pure: it does not use the store."""

from __future__ import annotations

from dataclasses import replace

from searchcrawl import clock
from searchcrawl.admission.admit import FoundLinks
from searchcrawl.codes import REDIRECTS, REFUSED, Code, CodeClass, facts_of, find_failure_kind, is_failure, is_refusal
from searchcrawl.commit import next_visit
from searchcrawl.commit.group import Group, came_back, encode_redirects, plan_next
from searchcrawl.counters import INCOMPLETE, LOGIN_FAILURES
from searchcrawl.items import Claim, Outcome, Unread
from searchcrawl.politeness import backoff
from searchcrawl.rules import lifecycle, recrawl
from searchcrawl.rules.forgotten import KEY
from searchcrawl.rules.lifecycle import Failures, is_confirmed
from searchcrawl.sources.config import Source
from searchcrawl.sources.secrets import redact
from searchcrawl.store.documents.document_table import Confirmed
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls.url_table import Settled


def decide_outcome(outcome: Outcome, source: Source, group: Group) -> None:
    """Decides about the end of one visit, and notes it in its group."""
    claim = outcome.claim
    if outcome.released:
        group.released.append(claim.url_id)
        return
    if outcome.not_before_ms is not None:
        # Not in this run: it would be claimed again and again. Nor too late: the clock may be wrong.
        latest_ms = clock.now_ms() + recrawl.LONGEST_OPENING_MS
        group.waiting[claim.url_id] = max(min(outcome.not_before_ms, latest_ms), group.horizon_ms + 1)
        return
    if outcome.again_ms is not None:
        group.settled.append(_build_put_off(claim, outcome.again_ms))
        if outcome.whole:
            group.relinked.append(claim.url_id)
        return
    now_ms = clock.now_ms()
    attempt = claim.attempt + 1
    retry_after = outcome.retry_after_seconds
    if outcome.transient and backoff.may_retry(attempt, retries=source.fetch.retries, retry_after_seconds=retry_after):
        pause = backoff.retry_pause_seconds(attempt, retry_after)
        group.settled.append(_build_settled(outcome, due_ms=now_ms + int(pause * 1000), again=True))
        return
    _settle(outcome, source, group, now_ms)


def _settle(outcome: Outcome, source: Source, group: Group, now_ms: int) -> None:
    claim = outcome.claim
    failed = is_failure(outcome.code, outcome.rule)
    failed_runs, failures = 0, None
    if failed:
        failed_runs, failures = count_failure(
            outcome.code,
            source,
            failed_runs=claim.failed_runs,
            failures=claim.failures,
            after_run=group.after_run,
        )
    due_ms, interval_ms = _find_next_visit(outcome, source, group, now_ms, failed_runs)
    body = None if outcome.unread is None else lifecycle.follow_unread(claim.unread, outcome.unread)
    if body is not None and due_ms is not None and not claim.is_known:
        due_ms = max(due_ms, _wait_unread(body, now_ms, group.horizon_ms))
    settled = _build_settled(
        outcome,
        due_ms=due_ms,
        interval_ms=interval_ms,
        failed_runs=failed_runs,
        failures=failures,
        kept=lifecycle.dump_unread(body),
    )
    if outcome.code == 304 and not outcome.transient:
        _confirm_unread(outcome, settled, group)
        return
    group.settled.append(settled)
    group.unread.append(claim.url_id)
    _judge_document(settled, outcome, source, group)
    _note_links(outcome, source, group)
    if not failed or facts_of(outcome.code).kind is CodeClass.FAILURE:
        # A code may be a failure only here, as 951 for a robots.txt that cannot be read.
        group.counts.update(facts_of(outcome.code).counters)
    group.counts[LOGIN_FAILURES] += outcome.code == Code.LOGIN_FAILED
    if outcome.lacks is not None:
        group.counts[INCOMPLETE] += 1
        group.incomplete[claim.url_id] = outcome.parts


def _wait_unread(body: Unread, now_ms: int, horizon_ms: int) -> int:
    """Until when a body that nothing reads is not asked for."""
    gap_ms = lifecycle.find_unread_gap_ms(body)
    return now_ms + gap_ms - recrawl.find_slack_ms(gap_ms, into_run_ms=now_ms - horizon_ms)


def _note_links(outcome: Outcome, source: Source, group: Group) -> None:
    claim = outcome.claim
    if source.finds_urls and (outcome.links or _leads_nowhere(outcome, source)):
        group.found.append(FoundLinks(claim.url_id, claim.depth, outcome.links, is_normalised=True))
        group.relinked.append(claim.url_id)


def _leads_nowhere(outcome: Outcome, source: Source) -> bool:
    """Whether the page moved for good to a URL that a rule refuses, and has left: nobody has the links that it had."""
    return (
        not outcome.claim.is_known
        and outcome.code in REDIRECTS
        and outcome.rule is not None
        and lifecycle.is_evidence(outcome.code, outcome.rule, source.lifecycle.remove_on)
    )


def _confirm_unread(outcome: Outcome, settled: Settled, group: Group) -> None:
    """Notes a document of which the server says that it did not change."""
    claim = outcome.claim
    group.unchanged.append(settled)
    group.confirmed.append(
        Confirmed(
            url_id=claim.url_id,
            etag=outcome.etag,
            last_modified=outcome.last_modified,
            rendered=claim.rendered,
            parts=claim.parts,
        )
    )
    if came_back(claim):
        group.recovered.append(claim.url_id)
    group.counts["not_modified"] += 1


def _find_next_visit(
    outcome: Outcome, source: Source, group: Group, now_ms: int, failed_runs: int
) -> tuple[int | None, int | None]:
    """When a row without a page is due again, None after a last visit; and its interval, None: as it was."""
    if _is_last_visit(outcome):
        return None, None
    if outcome.unasked and not source.lifecycle.intervals.are_set:
        # Before those that were asked: pages that block their host each time must not keep all others from being read.
        return group.horizon_ms + 1, None
    claim, changed = outcome.claim, None
    if not failed_runs:
        changed = next_visit.observe(claim, outcome.code, differs=False, edited=bool(group.edited))
    following = plan_next(claim, source, group, visited_ms=now_ms, changed=changed, failed_runs=failed_runs)
    return following.due_ms, following.interval_ms


def _is_last_visit(outcome: Outcome) -> bool:
    # A redirect may lead elsewhere the next time.
    return outcome.code == Code.SET_ASIDE or (outcome.code in REFUSED and not _leads_outside(outcome))


def _leads_outside(outcome: Outcome) -> bool:
    """Whether the page was requested, and leads to a URL that an exclude rule names."""
    return outcome.code == Code.OUTSIDE_BOUNDARY and bool(outcome.redirects)


def count_stop(outcome: Outcome) -> Outcome:
    """The outcome of a page that its worker did not survive: it is set aside if that happens again and again."""
    failures = Failures.parse(outcome.claim.failures).add_stop()
    claim = replace(outcome.claim, failures=failures.dump())
    return replace(outcome, claim=claim, code=Code.SET_ASIDE if failures.is_set_aside else outcome.code)


def count_failure(
    code: int, source: Source, *, failed_runs: int, failures: str | None, after_run: int
) -> tuple[int, str]:
    """How many runs in a row failed with this one, and the same by what failed, as rows keep it.

    ``failed_runs`` and ``failures`` are what the row said before the visit.
    """
    known = Failures.parse(failures)
    kind = find_failure_kind(code, source.lifecycle.remove_on)
    # Where the run ended early and goes on after an edit, its pages are visited once more.
    failed_runs = max(failed_runs, 1) if known.is_of(after_run) else failed_runs + 1
    return failed_runs, known.add(kind, after_run=after_run).dump()


def _judge_document(settled: Settled, outcome: Outcome, source: Source, group: Group) -> None:
    """Notes whether a visit without a page says that a known document is to leave."""
    claim, keys = outcome.claim, source.lifecycle
    if _leads_outside(outcome) and not (outcome.rule or "").startswith((*group.edited, f"{KEY}: ")):
        # A page may lead to an excluded one for a while, as to a login. If the rule is new, what was read there leaves; and
        # nothing stays of what is to be forgotten.
        return
    confirmed = is_confirmed(
        settled.code, settled.failures, remove_on=keys.remove_on, confirmations=keys.gone_confirmations
    )
    if confirmed and lifecycle.is_evidence(settled.code, settled.rule, keys.remove_on):
        group.with_evidence.append(claim.url_id)
    elif claim.is_known and outcome.lacks is None and 0 < keys.error_runs_before_hidden <= settled.failed_runs:
        group.hidden[claim.url_id] = lifecycle.describe_failures(keys.error_runs_before_hidden)


def _build_put_off(claim: Claim, again_ms: int) -> Settled:
    """A row that is as it was before its visit, and is to do at a later moment."""
    return Settled(
        url_id=claim.url_id,
        fetch_state=FetchState.TODO,
        code=claim.code,
        keep_rule=True,
        attempts=claim.attempt,
        failed_runs=claim.failed_runs,
        failures=claim.failures,
        due_ms=again_ms,
        fetched_ms=None,
        unread=lifecycle.dump_unread(claim.unread),
        lacks=claim.lacks,
    )


def _build_settled(
    outcome: Outcome,
    *,
    due_ms: int | None,
    interval_ms: int | None = None,
    failed_runs: int = 0,
    failures: str | None = None,
    again: bool = False,
    kept: str | None = None,
) -> Settled:
    claim = outcome.claim
    return Settled(
        url_id=claim.url_id,
        fetch_state=FetchState.TODO if again else FetchState.SETTLED,
        code=outcome.code,
        rule=outcome.rule,
        # Whoever wrote it: it may quote what a server sent back.
        error=redact(outcome.error) if outcome.error else None,
        attempts=claim.attempt + 1 if again else 0,
        failed_runs=claim.failed_runs if again else failed_runs,
        failures=claim.failures if again else failures,
        due_ms=due_ms,
        interval_ms=interval_ms,
        fetched_ms=None if is_refusal(outcome.code, outcome.rule) and not outcome.redirects else clock.now_ms(),
        redirects=encode_redirects(outcome.redirects),
        unread=kept,
        lacks=outcome.lacks,
    )
