"""Which rules of ``[keep]`` refuse a document as they are now, by what its row says of it (B8–B10, L1)."""

from __future__ import annotations

from searchcrawl import clock
from searchcrawl.html.file_name import find_file_name
from searchcrawl.queries.explain_context import Case
from searchcrawl.queries.reason import Because, because, is_changed, of_row
from searchcrawl.rules.decision import NO_INCLUDE, Decision, Proposal
from searchcrawl.rules.index_filter import META_ROBOTS_KEY, FetchedFacts, read_last_modified
from searchcrawl.sources.loading import build_index_filter
from searchcrawl.store.urls.url_facts import UrlFacts

_STEP = "keep"


def keep_refusals(case: Case, facts: UrlFacts) -> list[Because]:
    """All that refuse it; the name of the file is that of the URL, as no row keeps the one that was sent."""
    listed = facts.listed
    fetched = FetchedFacts(
        url=listed.url,
        name=find_file_name((), listed.url),
        mimetype=facts.mimetype or "",
        size_bytes=facts.content_length,
        modified_ms=read_last_modified(listed.last_modified),
        fetched_ms=listed.last_fetched_ms or clock.now_ms(),
    )
    noindex = (listed.rule or "").startswith(f"{META_ROBOTS_KEY}:")
    decisions = build_index_filter(case.source).list_refusals(fetched, noindex=noindex)
    return [because(_STEP, decision, case.source, _proposal(decision, fetched)) for decision in decisions]


def of_refused(case: Case, facts: UrlFacts, rule: str) -> list[Because]:
    """Why a document is not indexed (952): the rule of its row, then the others that refuse it now.

    Empty where that rule was edited since, and no other refuses.
    """
    first = of_row(rule, _STEP, case.source)
    now = keep_refusals(case, facts)
    same = [reason for reason in now if (reason.key, reason.rule) == (first.key, first.rule)]
    others = [reason for reason in now if reason not in same]
    if not same and is_changed(case.changed, rule):
        return others
    return [*(same or [first]), *others]


def _proposal(decision: Decision, fetched: FetchedFacts) -> Proposal | None:
    if decision.rule != NO_INCLUDE:
        return None
    values = {"mime_types": fetched.mimetype, "include_urls": fetched.url, "include_names": fetched.name}
    return Proposal(decision.key, values[decision.key.rpartition(".")[2]])
