"""Why a URL is or is not in the index: one sentence, the rule that decided, and those that would decide alike (L1).

The rules are those of the source file as it is now, the rest is what the last visit left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from searchcrawl.codes import COPIES, REDIRECTS, REFUSED, ROBOTS_UNAVAILABLE, Code, describe_code
from searchcrawl.queries.explain_context import Case, robots_line
from searchcrawl.queries.keep_reasons import keep_refusals, of_refused
from searchcrawl.queries.reason import Because, is_changed, of_row, written
from searchcrawl.queries.url_state import UrlState
from searchcrawl.rules.boundary import refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.redirects import target_of
from searchcrawl.rules.removal import is_evidence
from searchcrawl.store.states import DocumentState, FetchState
from searchcrawl.store.urls.url_facts import UrlFacts

_IN: Final = "in the index"
_NOT_IN: Final = "not in the index"
#: In which step a rule that a row keeps decided.
_STEPS: Final[Mapping[int, str]] = {
    Code.EMPTY: "content",
    Code.INVALID_DISPLAY_URL: "display",
}
#: What ends a visit when it is passed; 1,000 times the bytes sent is a limit that no key sets.
_LIMITS: Final[Mapping[int, str]] = {Code.TOO_LARGE: "max_bytes", Code.REDIRECT_LOOP: "max_redirects"}
_MORE_THAN: Final = re.compile(r"more than ([0-9]+)(?![0-9]| times)")
_WAITING: Final = {
    UrlState.CACHED: "fetched, and waits to be delivered",
    UrlState.SENDING: "being delivered",
    UrlState.TODO: "to be fetched again: it is to be indexed, and its copy is gone from the cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``decided`` is what decided, ``also`` what would decide alike without it."""

    text: str
    decided: Because
    also: tuple[Because, ...] = ()


def verdict_of(case: Case) -> Verdict:
    """The verdict on a URL, seen by its source or not."""
    refusals = [case.discarded] if case.discarded is not None else case.refusals()
    if case.facts is None:
        return _never_seen(case, refusals)
    listed = case.facts.listed
    if refusals:
        return _outside(case, refusals)
    if listed.code in REFUSED and listed.rule is not None:
        return _refused_before(case, listed.rule)
    if listed.fetch_state != FetchState.SETTLED:
        return _to_visit(case, case.facts)
    reasons = _of_visit(case, case.facts)
    if not reasons:
        return _kept(case, case.facts) if listed.code == 200 else _edited_since(case, case.facts)
    text = f"{_standing(case, case.facts)}: {_why(case, case.facts)}"
    return Verdict(text=text, decided=reasons[0], also=tuple(reasons[1:]))


def _never_seen(case: Case, refusals: Sequence[Because]) -> Verdict:
    if refusals:
        meaning = describe_code(_code_of(refusals[0]))
        text = f"{_NOT_IN}: never seen, and it would be refused ({meaning})"
        return Verdict(text=text, decided=refusals[0], also=tuple(refusals[1:]))
    forbidding = case.robots_refusals()
    if forbidding:
        text = f"{_NOT_IN}: never seen, and it would be refused ({describe_code(Code.ROBOTS)})"
        return Verdict(text=text, decided=forbidding[0], also=tuple(forbidding[1:]))
    if case.is_start:
        key = "start.urls" if case.source.start.urls else "start.files"
        file, name = written(case.source, key)
        decided = Because(step="found", rule="a start URL", file=file, key=name)
        return Verdict(text=f"{_NOT_IN}: the next run asks for it, as a start URL", decided=decided)
    if case.run is None:
        decided = Because(step="found", rule="its source was never crawled")
        return Verdict(text=f"{_NOT_IN}: its source was never crawled; the rules would let it pass", decided=decided)
    decided = Because(step="found", rule="no page links to it")
    text = f"{_NOT_IN}: never seen: no page that was read links to it, and no sitemap lists it"
    return Verdict(text=text, decided=decided)


def _outside(case: Case, refusals: Sequence[Because]) -> Verdict:
    meaning = describe_code(_code_of(refusals[0]))
    # A run that looked at it under these rules has settled it so.
    settled = case.facts is not None and case.facts.listed.code in REFUSED
    standing = _standing(case, case.facts) if settled or not case.in_index else f"{_IN}, and leaves with the next run"
    return Verdict(text=f"{standing}: {meaning}", decided=refusals[0], also=tuple(refusals[1:]))


def _code_of(refusal: Because) -> int:
    key = refusal.key or ""
    # The key as the boundary names it, wherever it is written.
    return refusal_code(Decision(False, key=key[max(key.find("scope."), 0) :]))


def _edited_since(case: Case, facts: UrlFacts) -> Verdict:
    """Of a page that a rule refused at its last visit, and that none refuses now."""
    if facts.listed.code in REDIRECTS:
        target = target_of(facts.listed.error)
        text = f"{_NOT_IN}: {_why(case, facts)}, which no rule refuses now: the next run asks for it"
        return Verdict(text=text, decided=Because(step="redirect", rule=f"leads to {target}"))
    standing = f"{_IN}, and stays" if case.in_index else f"{_NOT_IN} as yet"
    rule = facts.listed.rule or facts.listed.error or describe_code(facts.listed.code)
    text = f"{standing}: refused at the last visit ({rule}), by no rule as they are now"
    first, *rest = case.admissions()
    return Verdict(text=text, decided=first, also=tuple(rest))


def _refused_before(case: Case, rule: str) -> Verdict:
    """The boundary itself lets it pass now: a rule about all URLs of the source refused it, or one that was edited."""
    if is_changed(case.changed, rule):
        first, *rest = case.admissions()
        standing = f"{_IN}, and stays" if case.in_index else f"{_NOT_IN} as yet"
        text = f"{standing}: refused when it was found ({rule}), by no rule as they are now"
        return Verdict(text=text, decided=first, also=tuple(rest))
    code = 0 if case.facts is None else case.facts.listed.code
    step = "rewrite" if rule.startswith("rewrite") else "boundary"
    text = f"{_standing(case, case.facts)}: {describe_code(code)}"
    return Verdict(text=text, decided=of_row(rule, step, case.source))


def _to_visit(case: Case, facts: UrlFacts) -> Verdict:
    now = facts.listed.fetch_state == FetchState.FETCHING and case.running
    what = "being visited now" if now else "to be visited" if facts.listed.code == 0 else "to be visited again"
    so_far = f", so far {describe_code(facts.listed.code)}" if facts.listed.code not in (0, 200) else ""
    if case.in_index:
        first, *rest = case.admissions()
        return Verdict(text=f"{_IN}, and {what}{so_far}", decided=first, also=tuple(rest))
    return Verdict(text=f"{_NOT_IN}: {what}{so_far}", decided=Because(step="visit", rule=what))


def _kept(case: Case, facts: UrlFacts) -> Verdict:
    """Of a page that was fetched well, and is or will be in the index."""
    refusals = keep_refusals(case, facts) if any(key.startswith("keep.") for key in case.changed) else []
    if refusals:
        leaves = f"{_IN}, and leaves with the next run" if case.in_index else f"{_NOT_IN} as yet, and will not be"
        return Verdict(text=f"{leaves}: {refusals[0].text}", decided=refusals[0], also=tuple(refusals[1:]))
    first, *rest = case.admissions()
    waits = _WAITING.get(case.state) if case.state is not None else None
    if waits is None and case.in_index:
        return Verdict(text=_IN, decided=first, also=tuple(rest))
    if waits is None:
        held = "kept in the cache, and not sent" if facts.place is not None else "removed, or never sent"
        return Verdict(text=f"{_NOT_IN}: {held}", decided=Because(step="index", rule=held))
    if case.in_index:
        return Verdict(text=f"{_IN}, and a newer version is {waits}", decided=first, also=tuple(rest))
    return Verdict(text=f"not yet in the index: {waits}", decided=Because(step="index", rule=waits))


def _standing(case: Case, facts: UrlFacts | None) -> str:
    if facts is None or not case.in_index:
        return _NOT_IN
    listed = facts.listed
    if facts.quarantine_run is not None:
        return f"{_IN}, and its removal waits in quarantine"
    if listed.document_state == DocumentState.REMOVING or listed.code in COPIES:
        return f"{_IN}, and being removed"
    if facts.leaving or is_evidence(listed.code, listed.rule, case.source.lifecycle.remove_on):
        return f"{_IN}, and leaves at the end of a run"
    return f"{_IN} as it was, and the last visit brought nothing better"


def _why(case: Case, facts: UrlFacts) -> str:
    listed = facts.listed
    if listed.index_error is not None and listed.code == 200:
        return "the index refuses the document"
    if listed.code in COPIES or listed.code == Code.DISPLAY_URL_CLASH:
        return (
            f"{describe_code(listed.code)}: {listed.duplicate_of}"
            if listed.duplicate_of
            else describe_code(listed.code)
        )
    if listed.code in REDIRECTS:
        target = target_of(listed.error)
        return f"{describe_code(listed.code)}: {target}" if target else describe_code(listed.code)
    if listed.rule == ROBOTS_UNAVAILABLE:
        return f"{int(Code.ROBOTS)}, robots.txt could not be had"
    if case.state is UrlState.GONE and not case.in_index:
        return f"removed: {describe_code(listed.code)}"
    return describe_code(listed.code)


def _of_visit(case: Case, facts: UrlFacts) -> list[Because]:
    """What the last visit of a row brought that keeps it from being indexed; empty where nothing does."""
    listed = facts.listed
    if listed.code == 200:
        return [Because(step="index", rule=listed.index_error)] if listed.index_error is not None else []
    if listed.code == Code.ROBOTS and not case.source.robots.obey:
        return []
    if listed.code == Code.ROBOTS and listed.rule is not None:
        first = robots_line(case.url, listed.rule)
        return [first, *(line for line in case.robots_refusals() if line.rule != first.rule)]
    if listed.code in COPIES:
        return [Because(step="duplicate", rule=f"{_relation(listed.code)} {listed.duplicate_of or 'another URL'}")]
    if listed.code == Code.DISPLAY_URL_CLASH:
        return [Because(step="display", rule=f"shown with the URL of {listed.duplicate_of or 'another page'}")]
    if listed.code in REDIRECTS:
        return _of_redirect(case, facts)
    if listed.code == Code.NOT_INDEXED and listed.rule is not None:
        return of_refused(case, facts, listed.rule)
    if listed.rule is not None:
        return [of_row(listed.rule, _STEPS.get(listed.code, "answer"), case.source)]
    limit = _limit_passed(case, facts)
    if limit is not None:
        return [limit[0]] if limit[1] else []
    return [Because(step="answer", rule=describe_code(listed.code))]


def _of_redirect(case: Case, facts: UrlFacts) -> list[Because]:
    listed = facts.listed
    target = target_of(listed.error)
    refusals = case.refusals(target) if target is not None and listed.rule is not None else []
    if refusals:
        return refusals
    if listed.rule is not None:
        # Without the target nobody knows whether the rule still holds.
        return [of_row(listed.rule, "boundary", case.source)] if target is None else []
    kind = "meta refresh" if listed.code == Code.META_REFRESH else "moved for good"
    return [Because(step="redirect", rule=f"{kind} to {target}" if target is not None else kind)]


def _limit_passed(case: Case, facts: UrlFacts) -> tuple[Because, bool] | None:
    """The limit of ``[fetch]`` that ended the visit, where it was one, and whether it is as it was."""
    name = _LIMITS.get(facts.listed.code)
    passed = _MORE_THAN.search(facts.listed.error or "")
    if name is None or passed is None:
        return None
    file, key = written(case.source, f"fetch.{name}")
    reason = Because(step="answer", rule=f"{name} = {passed[1]}", file=file, key=key)
    return reason, getattr(case.source.fetch, name) <= int(passed[1])


def _relation(code: int) -> str:
    return "its canonical URL is" if code == Code.NOT_CANONICAL else "a copy of"
