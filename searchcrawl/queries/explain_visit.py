"""The last step of ``explain``: when the URL is visited next, and why then."""

from __future__ import annotations

from typing import NamedTuple

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.queries.explain_context import Context
from searchcrawl.rules import recrawl, unread
from searchcrawl.rules.lifecycle import ORPHAN_RULE
from searchcrawl.rules.recrawl import Word
from searchcrawl.sources.config import Lifecycle
from searchcrawl.sources.fingerprint import describe_keys
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls.url_queries import ListedUrl, UrlFacts
from searchcrawl.wording import counted


class Visit(NamedTuple):
    """What the step says: its outcome, its detail, and the rule that decides."""

    outcome: str
    detail: str
    rule: str | None = None


def describe_next_visit(context: Context, facts: UrlFacts) -> Visit:
    """When a known URL is visited next, and which key decides it."""
    listed = facts.listed
    if listed.fetch_state in {FetchState.FETCHING, FetchState.ALONE} and context.running:
        return Visit("now", "a running process visits it")
    if context.changed:
        return Visit("due", f"the next run looks at everything again: changed: {describe_keys(context.changed)}")
    if listed.fetch_state == FetchState.SUSPECT:
        return Visit("due", "with the next run, after all others: a run stopped turning while it visited the URL")
    if listed.fetch_state == FetchState.TODO:
        return Visit("due", "with the next run: it is still to be visited")
    if listed.due_ms is None:
        return _describe_last_visit(listed)
    return Visit("due", _describe_due(context.source.lifecycle, facts, listed.due_ms))


def _describe_last_visit(listed: ListedUrl) -> Visit:
    if listed.rule == ORPHAN_RULE:
        return Visit("never", "not until a page, a sitemap or the start list names it again", listed.rule)
    if listed.code == Code.SET_ASIDE:
        return Visit("never", "not until the source file is edited: it stopped the crawler again and again")
    return Visit("never", "not by itself: a rule refuses it")


def _describe_due(lifecycle: Lifecycle, facts: UrlFacts, due_ms: int) -> str:
    now_ms, visited_ms = clock.now_ms(), facts.listed.last_fetched_ms
    said = recrawl.read_lastmod(facts.lastmod_ms, visited_ms=visited_ms, now_ms=now_ms)
    if facts.listed.opens_ms == due_ms > now_ms:
        # The row does not say who: the next run asks again.
        return f"not before {clock.iso(due_ms)}: find_opening of its spider, or a plug-in that said not yet"
    if due_ms <= now_ms:
        put_off = lifecycle.trust_sitemap and said is Word.SAME
        return "with the next run" + (
            ", unless its sitemap, if its dates proved true, gives no later one (trust_sitemap)" if put_off else ""
        )
    sooner = (
        f"; sooner if its sitemap, if its dates proved true, gives one after {clock.iso(visited_ms)}" if said else ""
    )
    return f"with the first run after {clock.iso(due_ms)}{_name_interval(lifecycle, facts)}{sooner}"


def _name_interval(lifecycle: Lifecycle, facts: UrlFacts) -> str:
    body = unread.parse(facts.unread)
    if body is not None and unread.find_gap_ms(body):
        how = "asked with its validators" if body.etag or body.last_modified else "it has no validators"
        return f" (nothing reads its type: {how}, found the same {counted(body.times, 'time', 'times')})"
    if not lifecycle.intervals.are_set:
        return ""
    if facts.failed_runs:
        return f" (failed in {counted(facts.failed_runs, 'run', 'runs')} in a row)"
    interval_ms = facts.listed.interval_ms
    if not lifecycle.intervals.are_adaptive or interval_ms is None:
        return f" (lifecycle.recrawl_every_hours = {lifecycle.recrawl_every_hours:g})"
    bounds = (
        f"recrawl_min_hours = {lifecycle.recrawl_min_hours:g} and recrawl_max_hours = {lifecycle.recrawl_max_hours:g}"
    )
    return f" (its interval is {interval_ms / recrawl.HOUR_MS:.3g} hours by its changes, between lifecycle.{bounds})"
