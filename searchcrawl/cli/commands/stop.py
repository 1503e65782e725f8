"""End the crawl of a source cleanly, wherever it runs."""

from __future__ import annotations

import argparse

from searchcrawl.cli.command import Command as BaseCommand
from searchcrawl.cli.jobs import find_known_name, show_stopped
from searchcrawl.operations.stopping import is_left, stop
from searchcrawl.store.opening import use_store

_WAIT_SECONDS = 60.0


class Command(BaseCommand):
    requires_project = True
    arguments = (1, 1)
    shown_arguments = "NAME"
    example = "searchcrawl stop intranet"

    def long_desc(self) -> str:
        return (
            "The run ends with exit code 3 once what it has fetched is delivered; the next crawl goes on with it. A start that waits "
            "for its turn is taken back. Waits for the end of the run, a minute at most."
        )

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project = self.load_project()
        with use_store(project) as database:
            name = find_known_name(project, database, args[0])
            result = stop(database, name, wait_seconds=_WAIT_SECONDS)
            goes_on = is_left(database, name)
        show_stopped(name, result, goes_on=goes_on, suspended=False, as_json=opts.json)
