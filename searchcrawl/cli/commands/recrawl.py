"""Have known URLs visited again by the next run, without validators."""

from __future__ import annotations

import argparse

from searchcrawl import urls
from searchcrawl.cli.command import BaseCommand, find_path
from searchcrawl.cli.output import print_answer
from searchcrawl.extensions.run_log import install_run_log
from searchcrawl.operations.visiting import recrawl
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted


class Command(BaseCommand):
    shown_arguments = "NAME"
    example = "searchcrawl recrawl intranet --failed"
    description = (
        "The next run asks for these URLs without validators, and processes also those again that have the same bytes. "
        "Until a run was completed status says why (force_recrawl). Nothing is requested by this command itself."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--url", metavar="U", help="this URL alone")
        which.add_argument("--failed", action="store_true", help="those whose last visit failed")
        which.add_argument("--all", action="store_true", help="all that are not refused by a rule; the default")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project, source = self.load_source(args[0])
        url = None if opts.url is None else urls.resolve_typed(find_path(opts.url), routes=source.scope.hash_routes)
        install_run_log(project, source)
        with use_store(project) as database:
            done = recrawl(project, source, database, url=url, failed=opts.failed)
        line = f"{source.name}: the next run visits {counted(done['to_fetch'], 'URL', 'URLs')} again"
        print_answer(done, [line], as_json=opts.json)
