"""Fetch one page and show what would be stored; stores nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchcrawl import urls
from searchcrawl.cli.command import BaseCommand, Option, UsageError, find_path
from searchcrawl.cli.leaving import leaving_at_signals
from searchcrawl.cli.output import print_answer
from searchcrawl.cli.scrapy_commands import require_asyncio
from searchcrawl.codes import describe_code
from searchcrawl.operations.dry_run import open_dry_run, render_all
from searchcrawl.operations.source_lease import watch_stalls
from searchcrawl.queries.page import describe_page
from searchcrawl.render.rendered_page import RenderTrial
from searchcrawl.store.opening import use_store
from searchcrawl.terminal import to_one_line

_MAX_SHOWN_CHARACTERS = 600


class Command(BaseCommand):
    uses_settings = True
    requires_crawler_process = True
    shown_arguments = "URL --source NAME"
    example = "searchcrawl test https://www.example.org/page.html --source intranet"
    options = (
        Option("--source NAME", "by the rules of this source"),
        Option("--render", "render it, whatever render.mode says, and show its text before that as well"),
        Option("--trace FILE", "with --render: write what the browser did, for Playwright's viewer", kind=Path),
    )

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        if opts.source is None:
            raise UsageError("missing option: --source NAME")
        if opts.trace is not None and not opts.render:
            raise UsageError("--trace needs --render")
        if opts.trace is not None and not opts.trace.absolute().parent.is_dir():
            raise UsageError(f"--trace: no folder {to_one_line(str(opts.trace.parent))}")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        # Imported here, because it loads everything that fetches and reads.
        from searchcrawl.spiders.page_spider import visit_page  # noqa: PLC0415

        project, source = self.load_source(opts.source)
        if opts.render:
            source = render_all(source)
        url = urls.resolve_typed(find_path(args[0]), routes=source.scope.hash_routes)
        process = require_asyncio(self.crawler_process)
        with use_store(project) as database, open_dry_run(project, source, database) as run:
            if opts.render:
                run.trial = RenderTrial(trace=opts.trace)
            url = run.rewriting.normalise(url).url
            stall_seconds = self.load_settings().getfloat("SEARCHCRAWL_STALL_SECONDS")
            with leaving_at_signals(), watch_stalls(seconds=stall_seconds):
                seen = visit_page(process, run, url)
            view = describe_page(url, seen, run)
        print_answer(view, _lines(view), as_json=opts.json)


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the output: URL, code, redirects, fields, the beginning of the text, links with the rule that refuses."""
    yield view["url"]
    yield ": ".join(filter(None, [describe_code(view["code"]), view["rule"] or view["error"]]))
    for hop in view["redirects"]:
        yield f"  redirected from {hop['url']} ({hop['code']})"
    for name, value in view["fields"].items():
        yield f"  {name:<14}  {value}"
    if view["rendered"] is not None:
        yield f"  rendered by a browser: {view['rendered']}"
    for refused in view.get("refused_requests", ()):
        yield f"  refused to the page: {refused['requests']} × {refused['reason']}"
    for failing in view.get("failing_parts", ()):
        yield f"  lacking: {failing}"
    if view.get("gave_up") is not None:
        yield f"  not waited for any longer: {view['gave_up']}"
    if view.get("text_before") is not None:
        yield from ("", "  as it was sent:", *(_list_text(view["text_before"]) or ["  (no text)"]))
        yield from ("", "  as it was rendered:")
    elif view["text"]:
        yield ""
    yield from _list_text(view["text"])
    if view["links"]:
        yield ""
    for link in view["links"]:
        yield f"  {link['url']}" if link["allowed"] else f"  refused: {link['url']}  ({link['rule']})"


def _list_text(text: str) -> list[str]:
    """The beginning of a text, in lines."""
    lines = [f"  {line}" for line in text[:_MAX_SHOWN_CHARACTERS].splitlines()]
    return [*lines, f"  … {len(text)} characters in all"] if len(text) > _MAX_SHOWN_CHARACTERS else lines
