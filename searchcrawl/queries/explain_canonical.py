"""What a page names as its canonical URL, and why that counts or is ignored (L5)."""

from __future__ import annotations

from typing import Final, NamedTuple

from searchcrawl import urls
from searchcrawl.cache.segment import StoredPage
from searchcrawl.codes import Code, describe_code
from searchcrawl.convert.converter import ConversionContext, RunsIn
from searchcrawl.convert.html_converter import HTML
from searchcrawl.duplicates.resolution import MAX_HOPS
from searchcrawl.html.links import find_header_canonical
from searchcrawl.queries.explain_context import Context, read_page
from searchcrawl.queries.explain_reasons import Reason, build_reason
from searchcrawl.sources.config import Source
from searchcrawl.store.urls.url_queries import UrlFacts

_WORD: Final = b"canonical"


class Naming(NamedTuple):
    """What the step says: its outcome, its detail, and the rule that decides."""

    outcome: str
    detail: str
    rule: str | None = None


def describe_canonical(context: Context, facts: UrlFacts) -> Naming | None:
    """What becomes of the canonical URL that a page names; None if it names none but itself, or that is not known."""
    if facts.listed.code == Code.NOT_CANONICAL:
        return Naming("stands behind", f"it names {facts.canonical or facts.listed.duplicate_of}")
    if facts.canonical is not None:
        fault = _find_fault(context, facts.listed.url)
        return Naming("ignored", f"it names {facts.canonical}" + (f": {fault}" if fault else ""))
    return _describe_refused(context, facts)


def _find_fault(context: Context, own_url: str) -> str | None:
    """Why a canonical URL with a row does not stand for the page that names it; None if it is not known."""
    chain = context.canonical_chain
    if not chain:
        return None
    first = chain[0]
    if not first.is_good:
        return "that URL is still to be visited" if not first.code else f"that URL: {describe_code(first.code)}"
    if first.redirected:
        return "that URL only redirects to another one"
    if urls.key(own_url) in {target.canonical_key for target in chain}:
        return "canonical links lead from there back to this page"
    return f"more than {MAX_HOPS} canonical links follow each other" if len(chain) > MAX_HOPS else None


def _describe_refused(context: Context, facts: UrlFacts) -> Naming | None:
    """A canonical URL that has no row, as the rules are now: the record of the page says what it names."""
    page = read_page(context, facts)
    if page is None:
        return None
    headers = [value.decode("latin-1") for name, value in page.headers if name.lower() == b"link"]
    routes = context.source.scope.hash_routes
    in_header = find_header_canonical(headers, base_url=page.base_url or page.url, routes=routes)
    if urls.has_route(facts.listed.url) and not urls.has_route(in_header or ""):
        # As a visit takes it: what has no route is said of the frame.
        in_header = None
    named = in_header or _find_in_markup(page, context.source, facts.mimetype)
    if named is not None and urls.has_route(facts.listed.url) and not urls.has_route(named):
        return None
    if named is None or named == facts.listed.url:
        return None
    naming = f"{'its header Link' if in_header else 'it'} names {named}"
    found = context.inputs.rewriting.normalise(named, facts.listed.url)
    if found.url == facts.listed.url:
        return None
    reasons = _list_reasons(context, found.url)
    if found.code:
        reasons = [build_reason("rewrite", found.decision, context.source)]
    if not reasons:
        return Naming("ignored", f"{naming}: no rule refuses that now; it counts from the next visit on")
    first = reasons[0]
    advice = (
        f"; to admit it, {' and '.join(reason.advice for reason in reasons if reason.advice)}" if first.advice else ""
    )
    return Naming("ignored", f"{naming}: refused by {first.text}{advice}", first.row_rule)


def _list_reasons(context: Context, url: str) -> list[Reason]:
    """The rules that keep a canonical URL from getting a row; it has no depth of its own."""
    source, boundary = context.source, context.inputs.boundary
    found = [
        build_reason("boundary", decision, source, boundary.propose_include(url, decision), boundary.measure(url, None))
        for decision in boundary.list_refusals(url)
    ]
    return found or context.list_unlinked()


def _find_in_markup(page: StoredPage, source: Source, mimetype: str | None) -> str | None:
    """The canonical URL in the markup of a page, as a visit reads it; None for what a worker process would read."""
    if mimetype not in HTML.mime_types or _WORD not in page.body.lower():
        return None
    if HTML.choose_place(page.body) is not RunsIn.REACTOR:
        return None
    about = ConversionContext(
        url=page.base_url or page.url,
        headers=page.headers,
        default_charset=source.fetch.default_charset,
        routes=source.scope.hash_routes,
    )
    return HTML.convert(page.body, about).canonical
