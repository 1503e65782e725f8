"""What becomes of a page that was read: indexed, noted, or followed elsewhere."""

from __future__ import annotations

import logging
from dataclasses import replace

from searchcrawl import clock
from searchcrawl.admission.admit import rule_text
from searchcrawl.codes import Code
from searchcrawl.convert.completing import completed
from searchcrawl.convert.file_name import name_of
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.items import Document, Outcome, Page
from searchcrawl.rules import canonical as canonical_rule
from searchcrawl.rules import index_filter
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.display import DisplayMap
from searchcrawl.rules.index_filter import Fetched, KeepRules, modified_ms
from searchcrawl.rules.redirects import moved_to
from searchcrawl.run import Run

logger = logging.getLogger(__name__)


def judged(document: Document, page: Page, run: Run) -> Document | Outcome:
    """The document with its page and code, or the end of the visit for a meta refresh (953)."""
    claim = document.claim
    if page.malformed:
        named = ", ".join(map(repr, page.malformed))
        logger.info("%d: links of %s are no URLs: %s", Code.MALFORMED_URL, document.base_url, named)
    page = completed(page, document, run)
    keeping = index_filter.decide(
        page,
        own_urls=(claim.url, document.base_url),
        boundary=run.boundary,
        depth=claim.depth,
        meta_robots=run.source.keep.meta_robots,
        filtered=refusal_of(document, run),
        file=run.source.file,
        rewriting=run.rewriting,
    )
    rule = None if keeping.decision.allowed else rule_text(keeping.decision)
    if keeping.code == Code.META_REFRESH:
        links = () if keeping.target is None or rule is not None else (keeping.target,)
        error = None if keeping.target is None else moved_to(keeping.target.url)
        return Outcome(
            claim=claim, code=keeping.code, rule=rule, error=error, links=links, redirects=document.redirects
        )
    # What the server says of a page weighs more than what stands in it.
    canonical = canonical_rule.other_url(
        document.canonical, page.canonical, own=claim.url, boundary=run.boundary, rewriting=run.rewriting
    )
    judged = replace(
        document,
        page=page,
        converter=None,
        code=keeping.code,
        rule=rule,
        canonical=None if canonical is None else canonical.url,
        canonical_link=canonical,
    )
    return judged if run.display is None else _displayed(judged, run.display)


def refusal_of(document: Document, run: Run) -> Decision | None:
    """The filter of ``[keep]`` that refuses a document; None where none does (B8)."""
    return None if run.keep is None else run.keep.refusal(_fetched(document, run.keep))


def _fetched(document: Document, rules: KeepRules) -> Fetched:
    """What the filters ask of a document; what none of them asks for is not read."""
    return Fetched(
        url=document.claim.url,
        name=name_of(document.headers, document.base_url) if rules.asks_for_names else "",
        mimetype=document.mimetype,
        size_bytes=len(document.body),
        modified_ms=modified_ms(document.last_modified) if rules.asks_for_age else None,
        fetched_ms=clock.to_ms(document.fetched_at),
    )


def _displayed(document: Document, display: DisplayMap) -> Document:
    """The document with its display URL; one without a valid one is not indexed (1010)."""
    try:
        return replace(document, display_url=display.of(document.claim.url, document.claim.display_url))
    except InvalidUrl as error:
        if document.code != 200:
            return document
        return replace(document, code=Code.INVALID_DISPLAY_URL, rule=f"display: {error}")
