"""What leads to a URL, and where it leads: redirects, and the canonical URL that its page names (C6, L1, L5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from searchcrawl import urls
from searchcrawl.cache.segment import StoredPage
from searchcrawl.codes import REDIRECTS, Code, describe_code
from searchcrawl.commit.resolution import MAX_HOPS
from searchcrawl.convert.converter import RunsIn
from searchcrawl.convert.html_converter import HTML
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.links import find_header_canonical
from searchcrawl.queries.explain_context import Context, leads_outside, read_page
from searchcrawl.queries.explain_reasons import Step, build_reason
from searchcrawl.rules.redirects import read_target
from searchcrawl.sources.config import Source
from searchcrawl.store.urls.url_queries import ListedUrl, UrlFacts

#: An error ends with the URL that answered, or was to.
_SCHEMES: Final = ("http://", "https://")
_WORD: Final = b"canonical"


def find_last_url(listed: ListedUrl) -> str | None:
    """Where redirects led that were followed, or were not to be; None where they did not, or nobody noted it."""
    target = read_target(listed.error)
    if target is not None or listed.redirects is None or listed.error is None:
        return target
    last = listed.error.rpartition(": ")[2]
    return last if last.startswith(_SCHEMES) and " " not in last else None


def show_redirects(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """The redirects of its last visit."""
    listed = facts.listed
    hops = [] if listed.redirects is None else orjson.loads(listed.redirects)
    target = find_last_url(listed)
    if not hops and target is None:
        return
    if target is None and (page := read_page(context, facts)) is not None:
        target = page.base_url
    trail = " → ".join(f"{hop['url']} ({hop['code']})" for hop in hops) or listed.url
    trail += f" → {target}" if target is not None else ""
    if listed.code == Code.ROBOTS:
        yield Step("redirect", "refused", trail, listed.rule)
    elif listed.code not in REDIRECTS | {Code.REDIRECT_LOOP} and not leads_outside(listed):
        yield Step("redirect", "followed", trail)
    else:
        yield Step("redirect", "refused" if listed.rule else "moved" if target else "failed", trail, listed.rule)


def show_leads(context: Context) -> Iterator[Step]:
    """The URLs that redirect to one which has no row."""
    for one in context.led:
        yield Step("redirect", "target", f"{one.url} redirects to it")
    for one in context.led_away:
        detail = f"{one.url} redirects to it, and has no page of it: {describe_code(one.code)}"
        yield Step("redirect", "target", detail)


def show_canonical(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """What becomes of the canonical URL that a page names; nothing if it names none but itself, or that is not known."""
    if facts.listed.code == Code.NOT_CANONICAL:
        yield Step("canonical", "stands behind", f"it names {facts.canonical or facts.listed.duplicate_of}")
    elif facts.canonical is not None:
        fault = _find_fault(context, facts.listed.url)
        yield Step("canonical", "ignored", f"it names {facts.canonical}" + (f": {fault}" if fault else ""))
    else:
        yield from _show_refused(context, facts)


def _find_fault(context: Context, own_url: str) -> str:
    """Why a canonical URL with a row does not stand for the page that names it; empty if it is not known."""
    chain = context.canonical_chain
    if not chain:
        return ""
    first = chain[0]
    if not first.is_good:
        return "that URL is still to be visited" if not first.code else f"that URL: {describe_code(first.code)}"
    if first.redirected:
        return "that URL only redirects to another one"
    if urls.key(own_url) in {target.canonical_key for target in chain}:
        return "canonical links lead from there back to this page"
    return f"more than {MAX_HOPS} canonical links follow each other" if len(chain) > MAX_HOPS else ""


def _show_refused(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """A canonical URL that has no row, as the rules are now: the record of the page says what it names."""
    own_url, routes = facts.listed.url, context.source.scope.hash_routes
    page = read_page(context, facts)
    if page is None:
        return
    headers = [value.decode("latin-1") for name, value in page.headers if name.lower() == b"link"]
    in_header = find_header_canonical(headers, base_url=page.base_url or page.url, routes=routes)
    has_route = urls.has_route(own_url)
    if has_route and not urls.has_route(in_header or ""):
        # As a visit takes it: what has no route is said of the frame.
        in_header = None
    named = in_header or _find_in_markup(page, context.source, facts.mimetype)
    if named is None or named == own_url or (has_route and not urls.has_route(named)):
        return
    found = context.inputs.rewriting.normalise(named, own_url)
    if found.url == own_url:
        return
    # It has no depth of its own.
    decisions = context.inputs.boundary.list_refusals(found.url)
    reasons = context.build_refusals(found.url, decisions, None) or context.list_unlinked()
    if found.code:
        reasons = [build_reason("rewrite", found.decision, context.source)]
    naming = f"{'its header Link' if in_header else 'it'} names {named}"
    if not reasons:
        yield Step("canonical", "ignored", f"{naming}: no rule refuses that now; it counts from the next visit on")
        return
    first = reasons[0]
    advice = " and ".join(reason.advice for reason in reasons if reason.advice) if first.advice else ""
    refused = f"{naming}: refused by {first.text}" + (f"; to admit it, {advice}" if advice else "")
    yield Step("canonical", "ignored", refused, first.row_rule)


def _find_in_markup(page: StoredPage, source: Source, mimetype: str | None) -> str | None:
    """The canonical URL in the markup of a page, as a visit reads it; None for what a worker process would read."""
    body = page.body
    if mimetype not in HTML.mime_types or not isinstance(body, bytes) or _WORD not in body.lower():
        return None
    if HTML.choose_place(body) is not RunsIn.REACTOR:
        return None
    about = ConversionContext(
        url=page.base_url or page.url,
        headers=page.headers,
        default_charset=source.fetch.default_charset,
        routes=source.scope.hash_routes,
    )
    return HTML.convert(body, about).canonical
