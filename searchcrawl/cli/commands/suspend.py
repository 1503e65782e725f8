"""End the crawl of a source cleanly, and have it crawled no more until it is resumed."""

from __future__ import annotations

import argparse

from searchcrawl.cli.command import Command as BaseCommand
from searchcrawl.cli.jobs import find_known_name, show_stopped
from searchcrawl.operations.stopping import is_left, suspend
from searchcrawl.store.opening import use_store

_WAIT_SECONDS = 60.0


class Command(BaseCommand):
    requires_project = True
    arguments = (1, 1)
    shown_arguments = "NAME"
    example = "searchcrawl suspend intranet"

    def long_desc(self) -> str:
        return (
            "Ends its crawl as stop does. Until searchcrawl resume NAME, crawl refuses the source with exit code 3, and its schedule "
            "starts nothing. Its documents stay in the index."
        )

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project = self.load_project()
        with use_store(project) as database:
            name = find_known_name(project, database, args[0])
            result = suspend(database, name, wait_seconds=_WAIT_SECONDS)
            goes_on = is_left(database, name)
        show_stopped(name, result, goes_on=goes_on, suspended=True, as_json=opts.json)
