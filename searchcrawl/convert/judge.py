"""What becomes of a page that was read: indexed, noted, or followed elsewhere."""

from __future__ import annotations

from dataclasses import replace

from searchcrawl.admission.admit import rule_text
from searchcrawl.codes import Code
from searchcrawl.items import Document, Link, Outcome, Page
from searchcrawl.rules import keep
from searchcrawl.run import Run


def judged(document: Document, page: Page, run: Run) -> Document | Outcome:
    """The document with its page and code, or the end of the visit for a meta refresh (953)."""
    claim = document.claim
    keeping = keep.decide(
        page,
        own_urls=(claim.url, document.base_url),
        boundary=run.boundary,
        depth=claim.depth,
        meta_robots=run.source.keep.meta_robots,
        file=run.source.file,
    )
    rule = None if keeping.decision.allowed else rule_text(keeping.decision)
    if keeping.code == Code.META_REFRESH:
        links = (Link(page.refresh),) if page.refresh and keeping.decision.allowed else ()
        return Outcome(claim=claim, code=keeping.code, rule=rule, links=links, redirects=document.redirects)
    return replace(document, page=page, converter=None, code=keeping.code, rule=rule)
