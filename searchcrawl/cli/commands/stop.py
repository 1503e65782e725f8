"""End the crawl of a source cleanly, wherever it runs."""

from __future__ import annotations

import argparse

from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.output import print_answer
from searchcrawl.operations import stopping
from searchcrawl.queries.status import find_known_name
from searchcrawl.store.opening import use_store

_WAIT_SECONDS = 60.0


class Command(BaseCommand):
    shown_arguments = "NAME"
    example = "searchcrawl stop intranet"
    description = (
        "The run ends with exit code 3 once what it has fetched is delivered; the next crawl goes on with it. A start that waits "
        "for its turn is taken back. Waits for the end of the run, a minute at most."
    )
    #: Whether it is not to be crawled again, either.
    suspends = False

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project = self.load_project()
        with use_store(project) as database:
            name = find_known_name(project, database, args[0])
            result = stopping.stop(database, name, wait_seconds=_WAIT_SECONDS, suspends=self.suspends)
            goes_on = stopping.is_left(database, name)
        texts = {
            # Its run may have been completed meanwhile, or it was a start that waited.
            "stopped": "stopped: the next crawl goes on with it"
            if goes_on
            else "stopped: no run of it is left to go on with",
            "stopping": "was told to end, and still sends what it has fetched: searchcrawl status says when it has ended",
            "idle": "was not running: the next crawl goes on with its last run" if goes_on else "was not running",
        }
        line = f"{name}: {texts[result]}{f'; suspended until searchcrawl resume {name}' if self.suspends else ''}"
        print_answer({"source": name, "result": result}, [line], as_json=opts.json)
