"""Whether a browser rendered a page, and why: a step of ``explain`` (C10, C11, L1)."""

from __future__ import annotations

from searchcrawl.codes import NEVER_REQUESTED
from searchcrawl.queries.explain_context import Context
from searchcrawl.rules import rendering
from searchcrawl.store.urls.url_queries import UrlFacts
from searchcrawl.wording import counted


def describe_rendering(context: Context, facts: UrlFacts) -> tuple[str, str] | None:
    """The outcome of the step and what it says; None where rendering is no question."""
    mode, listed = context.source.render.mode, facts.listed
    if facts.rendered is not None:
        return "rendered", f"by a browser: {facts.rendered}{_describe_gains(context)}"
    if mode == "never" or listed.code in NEVER_REQUESTED:
        return None
    if listed.error is not None and listed.error.startswith("not rendered: "):
        return "failed", listed.error
    if listed.document_state is None:
        return None
    if facts.mimetype is not None and "html" not in facts.mimetype:
        return "plain", f"{facts.mimetype} is not rendered"
    return "plain", f"taken as the server sends it (render.mode: {mode}){_describe_gains(context)}"


def _describe_gains(context: Context) -> str:
    """What rendering brought for pages whose plain answers leave a doubt, or look whole."""
    shown = [
        f"of {counted(known.rendered, 'page', 'pages')} like it whose plain answer {said}, rendering gave {known.gained} more text"
        + (": such pages are rendered" if rendering.is_worth_it(*known) else "")
        for said, known in context.gains
    ]
    return "".join(f"; {text}" for text in shown)
