"""What ``status`` warns of where a browser renders pages: incomplete ones, refused parts, and pages without a text (C10, C11)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from searchcrawl.counters import REFUSED_PARTS, RENDERED
from searchcrawl.rules.wholeness import NO_TEXT, RUNS
from searchcrawl.sources.config import Source
from searchcrawl.store.urls.url_queries import Lacking
from searchcrawl.wording import counted


def warn_of_rendering(
    source: Source, counts: Mapping[str, int], lacking: Sequence[Lacking]
) -> Iterator[tuple[str, str]]:
    """The codes and texts of the warnings; ``counts`` are those of the last run, ``lacking`` is of ``find_lacking``."""
    if lacking and lacking[0].lacks is None:
        yield "incomplete", _describe_incomplete(*lacking[:2])
    if lacking and lacking[-1].lacks == NO_TEXT:
        yield "rendered_empty", _describe_empty(source, lacking[-1])
    yield from _warn_of_refused(source, counts)


def _describe_empty(source: Source, empty: Lacking) -> str:
    url = shlex.quote(empty.url)
    pages = counted(empty.pages, "page was rendered, and still has", "pages were rendered, and still have")
    return (
        f"{pages} next to no text, such as {empty.url}: searchcrawl test {url} --source {source.name} --render shows what it lacks; "
        f"render.wait_for or render.allow_hosts in {source.file} may help"
    )


def _describe_incomplete(total: Lacking, most: Lacking) -> str:
    pages = counted(total.pages, "rendered page is incomplete", "rendered pages are incomplete")
    if most.pages == total.pages:
        which = most.lacks
    else:
        which = f"for example, {most.lacks}" if most.pages == 1 else f"for {most.pages} of them, {most.lacks}"
    return (
        f"{pages}: {which}; a known text stays until its page is whole again, or has ended the same way in {RUNS} runs: "
        f"searchcrawl explain {shlex.quote(most.url)}"
    )


def _warn_of_refused(source: Source, counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Names each rule because of which most rendered pages of the last run lack something."""
    rendered = counts.get(RENDERED, 0)
    for name, pages in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if name.startswith(REFUSED_PARTS) and 2 * pages > rendered:
            rule = name.removeprefix(REFUSED_PARTS)
            asked = (
                f"{pages} of {counted(rendered, 'rendered page', 'rendered pages')} asked for what is refused by {rule}"
            )
            yield "refused_parts", f"{asked}{_propose(rule, source)}"


def _propose(rule: str, source: Source) -> str:
    """The key that would allow what a rule refuses; empty where none does."""
    if rule.startswith("method POST"):
        return f"; render.post = true in {source.file} sends it"
    if rule.startswith("robots.txt"):
        return ""
    if rule.endswith(" is outside the boundary"):
        return f"; render.allow_hosts in {source.file} allows a host"
    return f"; {rule.partition(':')[0]} in {source.file} decides it" if rule.startswith(("scope.", "render.")) else ""
