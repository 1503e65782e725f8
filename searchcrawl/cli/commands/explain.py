"""Say why a URL is or is not in the index, and which rule decided."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from searchcrawl.cli import as_user
from searchcrawl.cli.command import BaseCommand, Option, find_path
from searchcrawl.cli.leaving import leaving_at_signals
from searchcrawl.cli.output import print_line, print_object
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.queries.explain import UrlExplanation, explain_by_all
from searchcrawl.queries.explain_steps import add_live_answer
from searchcrawl.queries.status import list_gone_sources
from searchcrawl.sources.principals import find_principals
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.opening import use_store


class Command(BaseCommand):
    uses_settings = True
    shown_arguments = "URL"
    example = "searchcrawl explain https://www.example.org/old/page.html"
    options = (
        Option("--live", "ask the site too (one request, and its robots.txt)"),
        Option("--source NAME", "as this source sees it; else the one that decides"),
        Option("--as-user NAME", "whether this user may see it, and why"),
        as_user.OPTIONS[1],
    )

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        opts.user = as_user.read_user(opts)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project = self.load_project()
        with use_store(project) as database:
            gone = [each for each in list_gone_sources(project, database) if opts.source in {None, each.name}]
            sources = [] if gone and opts.source else self.load_sources(project, opts.source)
            if not sources and not gone:
                raise ConfigurationError("sources", "", "no source to ask: put one into sources/NAME.toml")
            names = [each.name for each in gone]
            first, *others = explain_by_all(project, sources, database, find_path(args[0]), gone=names)
            if opts.live and not first.context.inputs.is_gone:
                first = self._add_live_step(first, project, database)
            if opts.user is not None:
                first = first.add_verdict(find_principals(project, opts.user))
        others = [other for other in others if other.is_relevant]
        if opts.json:
            print_object(first.as_json(others))
        else:
            for line, hang in _format_lines(first, others):
                print_line(line, hang=hang)

    def _add_live_step(self, found: UrlExplanation, project: Project, database: Database) -> UrlExplanation:
        """The explanation with what the site answers now."""
        # These load Scrapy.
        from scrapy.crawler import AsyncCrawlerProcess  # noqa: PLC0415

        from searchcrawl.operations.dry_run import open_dry_run  # noqa: PLC0415  # the same
        from searchcrawl.operations.source_lease import watch_stalls  # noqa: PLC0415  # the same
        from searchcrawl.spiders.page_spider import visit_page  # noqa: PLC0415  # the same

        context = found.context
        stall_seconds = self.load_settings().getfloat("SEARCHCRAWL_STALL_SECONDS")
        opened = open_dry_run(project, context.source, database)
        with opened as run, leaving_at_signals(), watch_stalls(seconds=stall_seconds):
            seen = visit_page(AsyncCrawlerProcess(self.load_settings()), run, context.url, depth=context.depth or 0)
        return replace(found, steps=add_live_answer(found.steps, context, seen))


def _format_lines(found: UrlExplanation, others: Sequence[UrlExplanation]) -> Iterator[tuple[str, int]]:
    """The verdict and its reasons, then a line for each step, then the verdicts of other sources.

    Each with the column where it goes on if it is wrapped.
    """
    yield found.context.url, 2
    yield found.verdict.text, 2
    for number, reason in enumerate(found.verdict.reasons):
        yield f"  {'also' if number else 'decided by':<10}  {reason.step}: {reason.text}", 14
        if reason.advice:
            yield f"  {'to admit it':<10} {reason.advice}", 14
        if reason.hint:
            yield f"  {'perhaps':<10}  {reason.hint}", 14
    yield "", 0
    for step in found.steps:
        yield f"  {step.step:<11}  {step.outcome:<12}  {step.detail}", 29
    for other in others:
        yield f"source {other.context.source.name}: {other.verdict.text}", 2
