"""What the site answers now, beside what is known of a URL: the last step of ``explain --live`` (L1)."""

from __future__ import annotations

from searchcrawl.codes import describe_code
from searchcrawl.items import Document, Outcome
from searchcrawl.queries.explain import Explanation
from searchcrawl.queries.explain_steps import Step
from searchcrawl.rules.redirects import target_of


def live_step(explanation: Explanation, seen: Document | Outcome) -> Step:
    """The answer of this moment, and whether it is what the index or the cache has."""
    facts = explanation.case.facts
    before = None if facts is None else facts.listed.fields_digest
    parts = [f"now {describe_code(seen.code)}"]
    if seen.redirects:
        parts.append(" → ".join(f"{hop.url} ({hop.code})" for hop in seen.redirects))
    if isinstance(seen, Outcome):
        target = target_of(seen.error)
        parts.append(f"leads to {target}" if target is not None else seen.error or "")
        outcome = "refused" if seen.rule is not None else "moved" if target is not None else "failed"
    else:
        outcome = "read" if seen.code == 200 else "refused"
        parts.append(f"{seen.mimetype}, {len(seen.body)} bytes")
        if before is not None:
            parts.append("as it is known" if seen.fields_digest == before else "other than it is known")
    return Step(step="live", outcome=outcome, detail="; ".join(filter(None, parts)), rule=seen.rule)
