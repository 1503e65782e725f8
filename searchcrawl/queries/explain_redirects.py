"""The redirects of a URL: where its last visit was led, and which URLs lead to it (C6, L1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import orjson

from searchcrawl.codes import REDIRECTS, Code, describe_code
from searchcrawl.queries.explain_context import Context, leads_outside, read_page
from searchcrawl.rules.redirects import read_target
from searchcrawl.store.urls.url_queries import ListedUrl, UrlFacts

#: An error ends with the URL that answered, or was to.
_SCHEMES: Final = ("http://", "https://")


class Trail(NamedTuple):
    """What the step says: its outcome, its detail, and the rule that decides."""

    outcome: str
    detail: str
    rule: str | None = None


def find_last_url(listed: ListedUrl) -> str | None:
    """Where redirects led that were followed, or were not to be; None where they did not, or nobody noted it."""
    target = read_target(listed.error)
    if target is not None or listed.redirects is None or listed.error is None:
        return target
    last = listed.error.rpartition(": ")[2]
    return last if last.startswith(_SCHEMES) and " " not in last else None


def describe_redirects(context: Context, facts: UrlFacts) -> Trail | None:
    """The redirects of its last visit; None without any."""
    listed = facts.listed
    hops = [] if listed.redirects is None else orjson.loads(listed.redirects)
    target = find_last_url(listed)
    if not hops and target is None:
        return None
    if target is None and (page := read_page(context, facts)) is not None:
        target = page.base_url
    trail = " → ".join(f"{hop['url']} ({hop['code']})" for hop in hops) or listed.url
    trail += f" → {target}" if target is not None else ""
    if listed.code == Code.ROBOTS:
        return Trail("refused", trail, listed.rule)
    if listed.code not in REDIRECTS | {Code.REDIRECT_LOOP} and not leads_outside(listed):
        return Trail("followed", trail)
    return Trail("refused" if listed.rule else "moved" if target else "failed", trail, listed.rule)


def list_leads(context: Context) -> Iterator[Trail]:
    """The URLs that redirect to one which has no row."""
    for one in context.led:
        yield Trail("target", f"{one.url} redirects to it")
    for one in context.led_away:
        yield Trail("target", f"{one.url} redirects to it, and has no page of it: {describe_code(one.code)}")
