"""Run as a service in the foreground: start what is due, restart what died."""

from __future__ import annotations

import argparse
from contextlib import closing
from functools import partial

from searchcrawl.cli.command import Command as BaseCommand
from searchcrawl.cli.commands.tick import STORE_PATIENCE_SECONDS, describe_tick, show_tick
from searchcrawl.cli.output import print_error, print_object, try_output
from searchcrawl.scheduling.service import Service
from searchcrawl.scheduling.ticking import Ticked
from searchcrawl.store.engine.database import Database


class Command(BaseCommand):
    requires_project = True
    example = "searchcrawl run"

    def long_desc(self) -> str:
        return (
            "Does what tick does, every two seconds, until a signal (Ctrl-C, SIGTERM): then its crawls end cleanly, as after "
            "stop, and go on when it runs again. What dies is started again after a pause, which grows."
        )

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project = self.load_project()

        def show(done: Ticked) -> None:
            if opts.json and (done.started or done.overrun or done.skipped or done.failed):
                print_object(describe_tick(done))
            elif not opts.json:
                show_tick(done)

        def tell(done: Ticked) -> None:
            # Nobody may read it any more: the crawls go on.
            try_output(partial(show, done))

        # A store that is away for longer does not end it either, and no signal waits for the store.
        with closing(Database(project.database_url, project.root, patience_seconds=STORE_PATIENCE_SECONDS)) as database:
            Service(self.load_project, database, tell=tell, warn=print_error).run()
