"""Whether a browser rendered a page, why, and whether it was whole: a step of ``explain`` (C10, C11, L1)."""

from __future__ import annotations

from searchcrawl.codes import NEVER_REQUESTED
from searchcrawl.queries.explain_context import Context
from searchcrawl.rules import rendering, wholeness
from searchcrawl.rules.wholeness import NO_TEXT, RUNS, Record
from searchcrawl.store.urls.url_queries import UrlFacts
from searchcrawl.wording import counted


def describe_rendering(context: Context, facts: UrlFacts) -> tuple[str, str] | None:
    """The outcome of the step and what it says; None where rendering is no question."""
    mode, listed = context.source.render.mode, facts.listed
    record = wholeness.parse(facts.parts)
    if listed.error is not None and listed.error.startswith("not rendered: "):
        return "failed", listed.error + _describe_runs(facts, record) + _describe_refused(record)
    if facts.rendered is not None:
        said = f"by a browser: {facts.rendered}{_describe_lacks(facts, record)}{_describe_refused(record)}"
        return "rendered", said + _describe_gains(context)
    if mode == "never" or listed.code in NEVER_REQUESTED or listed.document_state is None:
        return None
    if facts.mimetype is not None and "html" not in facts.mimetype:
        return "plain", f"{facts.mimetype} is not rendered"
    return "plain", f"taken as the server sends it (render.mode: {mode}){_describe_gains(context)}"


def _describe_lacks(facts: UrlFacts, record: Record | None) -> str:
    if facts.lacks == NO_TEXT:
        return f"; it is whole, and has {NO_TEXT}"
    if facts.lacks is not None:
        return f"; incomplete: {facts.lacks}{_describe_runs(facts, record)}"
    if record is None:
        return ""
    if record.accepted:
        number = counted(len(record.accepted), "thing", "things")
        return f"; as it is now: it lacks {number} that it lacked in {RUNS} runs"
    return "; complete"


def _describe_runs(facts: UrlFacts, record: Record | None) -> str:
    """In how many runs in a row a page ended so."""
    if facts.lacks is None or record is None or not record.runs:
        return ""
    return f" ({counted(record.runs, 'run', 'runs in a row')}; after {RUNS} it is taken as it is)"


def _describe_refused(record: Record | None) -> str:
    """What the wall refused to the page, by rule."""
    if record is None or not record.refused:
        return ""
    return f"; refused to it: {', '.join(f'{count} × {rule}' for rule, count in record.refused)}"


def _describe_gains(context: Context) -> str:
    """What rendering brought for pages whose plain answers leave a doubt, or look whole."""
    shown = [
        f"of {counted(known.rendered, 'page', 'pages')} like it whose plain answer {said}, rendering gave {known.gained} more text"
        + (": such pages are rendered" if rendering.is_worth_it(*known) else "")
        for said, known in context.gains
    ]
    return "".join(f"; {text}" for text in shown)
