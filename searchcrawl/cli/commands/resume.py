"""Let a suspended source be crawled again; runs nothing."""

from __future__ import annotations

import argparse

from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.output import print_answer
from searchcrawl.operations.stopping import resume
from searchcrawl.queries.status import find_known_name
from searchcrawl.store.opening import use_store


class Command(BaseCommand):
    shown_arguments = "NAME"
    example = "searchcrawl resume intranet"
    description = "The next crawl, by hand or by its schedule, goes on where the source was suspended."

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project = self.load_project()
        with use_store(project) as database:
            name = find_known_name(project, database, args[0])
            was_suspended = resume(database, name)
        answer = {"source": name, "result": "resumed" if was_suspended else "idle"}
        line = f"{name}: {'resumed: the next crawl goes on with it' if was_suspended else 'was not suspended'}"
        print_answer(answer, [line], as_json=opts.json)
