"""Who may see the document of a URL, and whether a user does, as its record in the cache has it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from searchcrawl.access import HIDDEN, Access, describe_access, judge, read_record
from searchcrawl.cache.opening import use_cache
from searchcrawl.exceptions import CacheError
from searchcrawl.queries.explain_context import Context
from searchcrawl.queries.explain_reasons import Step
from searchcrawl.rules.lifecycle import is_denied
from searchcrawl.store.urls.url_queries import UrlFacts

_STEP = "permissions"


def show_access(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """Who may see it; nothing where everyone may."""
    found = _read(context, facts)
    if isinstance(found, Access):
        yield Step(_STEP, "restricted", describe_access(found))


def add_verdict(steps: Sequence[Step], context: Context, principals: Collection[str]) -> tuple[Step, ...]:
    """The steps with whether a user with these principals may see it, and which of them decide."""
    found = "it has no document" if context.facts is None else _read(context, context.facts)
    if isinstance(found, str):
        step = Step(_STEP, "unknown", found)
    else:
        verdict = judge(found, principals)
        step = Step(_STEP, "seen" if verdict.sees else "hidden", verdict.reason)
    return (*(each for each in steps if each.step != _STEP), step)


def _read(context: Context, facts: UrlFacts) -> Access | str | None:
    """Who may see it, None: everyone; or why nobody can say."""
    if context.source.kind.says_access and is_denied(facts.failures):
        return HIDDEN
    if facts.place is None:
        return "no copy in the cache says who may see it"
    try:
        with use_cache(context.inputs.project, context.source.name) as cache:
            return read_record(cache.read_fields(facts.place, url=facts.listed.url))
    except CacheError as error:
        return f"its copy cannot be read: {error}"
