"""The way of a URL, step by step, as ``explain`` tells it (L1): what was found, asked, answered and sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import orjson

from searchcrawl import clock, urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import Place
from searchcrawl.codes import NEVER_REQUESTED, READ, REDIRECTS, ROBOTS_UNAVAILABLE, Code, describe_code
from searchcrawl.exceptions import CacheError
from searchcrawl.queries.explain_context import Case
from searchcrawl.queries.reason import Because, advice
from searchcrawl.rules.redirects import target_of
from searchcrawl.store.states import BatchState, DocumentState, FetchState
from searchcrawl.store.urls.url_facts import UrlFacts

_BEFORE_CONTENT: Final = NEVER_REQUESTED | {Code.ROBOTS}
_DELIVERIES: Final = {
    BatchState.SEALED: "not yet acknowledged",
    BatchState.ACKNOWLEDGED: "acknowledged",
    BatchState.COMMITTED: "acknowledged and visible",
}
_DOCUMENTS: Final = {
    DocumentState.NONE: "nothing is to be indexed",
    DocumentState.CACHED: "the document waits to be sent",
    DocumentState.SENDING: "the document is being sent",
    DocumentState.PRESENT: "the document is there as it is",
    DocumentState.WITHHELD: "the document is kept in the cache, and not sent",
    DocumentState.REMOVING: "the document is being removed",
    DocumentState.QUARANTINED: "its removal waits for an approval",
    DocumentState.WANTED: "to be sent, and its copy is gone: it is fetched again",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step; ``rule`` is ``KEY: RULE`` as rows keep it, where a rule decided it."""

    step: str
    outcome: str
    detail: str
    rule: str | None = None

    def as_json(self) -> dict[str, Any]:
        """``{"step", "outcome", "detail", "rule"}``."""
        return {"step": self.step, "outcome": self.outcome, "detail": self.detail, "rule": self.rule}


def steps_of(case: Case, *, given: str) -> Iterator[Step]:
    """All steps that a URL has come to, in their order; ``given`` is what was asked for."""
    yield _identity(case, given)
    if case.discarded is not None:
        detail = f"links to it are given up by {case.discarded.text}"
        yield Step(step="rewrite", outcome="discarded", detail=detail, rule=_row_rule(case.discarded))
        return
    yield from _boundary(case)
    yield _found(case)
    facts = case.facts
    yield _robots(case)
    if facts is None:
        return
    yield from _redirects(facts)
    if facts.listed.code not in _BEFORE_CONTENT:
        yield _answer(facts)
    if facts.listed.document_state is not None:
        yield from _content(case, facts)
    yield from _keep(facts)
    yield from _standing(facts)
    if facts.listed.document_state is not None:
        yield _index(case, facts)
        yield from _removal(facts)
    yield _next_visit(case, facts)


def _identity(case: Case, given: str) -> Step:
    detail = case.url if given == case.url else f"{given} is asked for as {case.url}"
    if case.shown_as is not None:
        detail = f"{case.shown_as} is shown for {case.url}"
    rewritten = None if case.facts is None else case.facts.listed.found_as
    if rewritten is not None:
        detail += f"; found as {rewritten}, and rewritten"
    return Step(step="identity", outcome="ok", detail=f"{detail}; source {case.source.name}")


def _boundary(case: Case) -> Iterator[Step]:
    refusals = case.refusals()
    if not refusals:
        rules = case.admissions()
        said = ", ".join(rule.text for rule in rules)
        yield Step(step="boundary", outcome="allowed", detail=f"inside by {said}", rule=_row_rule(rules[0]))
    for refusal in refusals:
        detail = f"refused by {refusal.text}"
        if refusal.proposal is not None:
            detail += f"; to admit it, {advice(refusal.proposal, refusal.file)}"
        yield Step(step="boundary", outcome="refused", detail=detail, rule=_row_rule(refusal))
    listed = None if case.facts is None else case.facts.listed
    if not refusals and listed is not None and listed.rule is not None and listed.code in NEVER_REQUESTED:
        error = f" ({listed.error})" if listed.error else ""
        yield Step(step="admission", outcome="refused", detail=f"refused when it was found{error}", rule=listed.rule)


def _row_rule(reason: Because) -> str:
    return f"{reason.key}: {reason.rule}" if reason.key else reason.rule


def _found(case: Case) -> Step:
    if case.facts is None:
        detail = "a start URL, not yet looked at" if case.is_start else "no page that was read links to it"
        return Step(step="found", outcome="start" if case.is_start else "never", detail=detail)
    listed, facts = case.facts.listed, case.facts
    if listed.referrer is not None:
        where = f"on {listed.referrer}"
    elif case.is_start:
        where = "in the start list"
    else:
        where = "by no page that is still known"
    if facts.sitemap is not None:
        where += f", and in the sitemap {facts.sitemap}"
        where += f" (lastmod {clock.iso(facts.lastmod_ms)})" if facts.lastmod_ms is not None else ""
    detail = f"{where}, at depth {listed.depth}, first seen {clock.iso(listed.first_seen_ms)}"
    return Step(step="found", outcome="seen", detail=detail)


def _robots(case: Case) -> Step:
    origin, robots = urls.parse(case.url).origin, case.source.robots
    file = f"{origin}/robots.txt"
    if not robots.obey:
        return Step(step="robots", outcome="ignored", detail=f"{file} is not asked for", rule="robots.obey: false")
    listed = None if case.facts is None else case.facts.listed
    if listed is not None and listed.code == Code.ROBOTS:
        said = "could not be had" if listed.rule == ROBOTS_UNAVAILABLE else "forbade it at the last visit"
        return Step(step="robots", outcome="refused", detail=f"{file} {said}", rule=listed.rule)
    if listed is None or listed.code in NEVER_REQUESTED or listed.last_fetched_ms is None:
        return _robots_by_copy(case, file)
    return Step(step="robots", outcome="allowed", detail=f"{file} did not forbid it at the last visit")


def _robots_by_copy(case: Case, file: str) -> Step:
    """What the last good copy says of a URL that was never asked for."""
    if case.robots is None:
        return Step(step="robots", outcome="unknown", detail=f"{file}: not asked (--live asks it)")
    lines = case.robots_refusals()
    if lines:
        return Step(step="robots", outcome="refused", detail=f"{file}, as read last, forbids it", rule=lines[0].rule)
    return Step(step="robots", outcome="allowed", detail=f"{file}, as read last, does not forbid it")


def _redirects(facts: UrlFacts) -> Iterator[Step]:
    listed = facts.listed
    hops = [] if listed.redirects is None else orjson.loads(listed.redirects)
    target = target_of(listed.error)
    if not hops and target is None:
        return
    trail = " → ".join(f"{hop['url']} ({hop['code']})" for hop in hops) or listed.url
    trail += f" → {target}" if target is not None else ""
    code = listed.code if listed.code in {Code.MOVED, Code.META_REFRESH, Code.REDIRECT_LOOP} else None
    outcome = "followed" if code is None else "refused" if listed.rule else "moved" if target else "failed"
    yield Step(step="redirect", outcome=outcome, detail=trail, rule=listed.rule if code is not None else None)


def _answer(facts: UrlFacts) -> Step:
    listed = facts.listed
    parts = [describe_code(listed.code)]
    error = listed.error
    if error is not None and target_of(error) is None:
        # Errors of statuses say no more than the status, and the URL that answered.
        parts[0] = error if error.startswith(parts[0]) else f"{parts[0]}; {error}"
    if listed.last_fetched_ms is not None:
        parts.append(f"last visit {clock.iso(listed.last_fetched_ms)}")
    if facts.failed_runs > 1:
        parts.append(f"failed in {facts.failed_runs} runs in a row")
    validators = [f"{name} {value}" for name, value in (("ETag", listed.etag), ("Last-Modified", listed.last_modified))]
    parts += [text for text in validators if not text.endswith(" None")]
    outcome = "read" if listed.code in READ else "moved" if listed.code in REDIRECTS else "failed"
    return Step(step="answer", outcome=outcome, detail="; ".join(parts))


def _content(case: Case, facts: UrlFacts) -> Iterator[Step]:
    listed = facts.listed
    parts = [f"{facts.mimetype or 'type unknown'}, {facts.content_length} bytes"]
    if listed.fields_digest:
        parts.append(f"checksum {listed.fields_digest.hex()}")
    if listed.last_changed_ms is not None:
        parts.append(f"last changed {clock.iso(listed.last_changed_ms)}")
    outcome = "kept"
    if facts.place is None:
        parts.append("no copy in the cache")
        outcome = "noted"
    else:
        try:
            parts.append(_fields(case, facts.place))
        except CacheError as error:
            parts.append(f"its copy cannot be read: {error}")
            outcome = "damaged"
    yield Step(step="content", outcome=outcome, detail="; ".join(parts))


def _fields(case: Case, place: tuple[int, int, int, int]) -> str:
    """The fields of the record in the cache, long ones by their length."""
    segment, offset, response_bytes, fields_bytes = place
    at = Place(segment=segment, offset=offset, response_bytes=response_bytes, fields_bytes=fields_bytes)
    with closing(DocumentCache(case.cache_dir)) as cache:
        fields = cache.read_fields(at, url=case.url)
    said = [f"{len(str(fields.get('content') or ''))} characters of text"]
    said += [f'{name} "{fields[name]}"' for name in ("title", "language") if fields.get(name)]
    return ", ".join(said)


def _keep(facts: UrlFacts) -> Iterator[Step]:
    listed = facts.listed
    if listed.code == Code.NOT_INDEXED:
        yield Step(step="keep", outcome="refused", detail="fetched, and not to be indexed", rule=listed.rule)
    elif listed.code in READ - {Code.EMPTY}:
        yield Step(step="keep", outcome="allowed", detail="no rule about what is indexed refused it")


def _standing(facts: UrlFacts) -> Iterator[Step]:
    """Copies, canonical links and display URLs: who stands for whom."""
    listed = facts.listed
    if facts.canonical is not None:
        outcome = "stands behind" if listed.code == Code.NOT_CANONICAL else "ignored"
        yield Step(step="canonical", outcome=outcome, detail=f"it names {facts.canonical}")
    if listed.code in {Code.DUPLICATE, Code.DUPLICATE_IN_RUN} and listed.duplicate_of is not None:
        yield Step(step="duplicate", outcome="copy", detail=f"a copy of {listed.duplicate_of}")
    elif facts.copies:
        yield Step(step="duplicate", outcome="stands for", detail=", ".join(facts.copies))
    if listed.code in {Code.DISPLAY_URL_CLASH, Code.INVALID_DISPLAY_URL}:
        detail = f"shown with the URL of {listed.duplicate_of}" if listed.duplicate_of else describe_code(listed.code)
        yield Step(step="display", outcome="refused", detail=detail, rule=listed.rule)


def _index(case: Case, facts: UrlFacts) -> Step:
    listed = facts.listed
    state = listed.document_state
    parts = [_DOCUMENTS[state]] if state is not None else []
    if listed.indexed_version is not None:
        version = f"version {listed.indexed_version}" if listed.indexed_version else "a version nobody knows"
        parts.append(f"the index has {version}")
    if listed.batch_id is not None and facts.batch_state is not None:
        parts.append(f"delivery {listed.batch_id} is {_DELIVERIES[facts.batch_state]}")
    if listed.index_error is not None:
        parts.append(f"the index refused it: {listed.index_error}")
    parts.append(f"id {urls.document_id(case.source.name, listed.url)}")
    return Step(step="index", outcome="in the index" if case.in_index else "not in the index", detail="; ".join(parts))


def _removal(facts: UrlFacts) -> Iterator[Step]:
    if facts.quarantine_run is not None:
        detail = f"run {facts.quarantine_run} would have removed more than the limits on deleting allow"
        yield Step(step="removal", outcome="quarantined", detail=detail)
    elif facts.leaving:
        yield Step(step="removal", outcome="waits", detail="removed at the end of the run, within the limits")


def _next_visit(case: Case, facts: UrlFacts) -> Step:
    listed = facts.listed
    if listed.fetch_state == FetchState.FETCHING and case.running:
        return Step(step="visit", outcome="now", detail="a running process visits it")
    if case.changed:
        detail = f"the next run looks at everything again: changed: {', '.join(case.changed)}"
    elif listed.fetch_state == FetchState.TODO:
        detail = "with the next run: it is still to be visited"
    elif listed.due_ms is None:
        return Step(step="visit", outcome="never", detail="not by itself: a rule refuses it")
    elif listed.due_ms <= clock.now_ms():
        detail = "with the next run"
    else:
        detail = f"with the first run after {clock.iso(listed.due_ms)}"
        hours = case.source.lifecycle.recrawl_every_hours
        detail += f" (lifecycle.recrawl_every_hours = {hours:g})" if hours else ""
    return Step(step="visit", outcome="due", detail=detail)
