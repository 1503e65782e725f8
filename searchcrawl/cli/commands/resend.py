"""Send every document again from the cache to the index; no page is requested."""

from __future__ import annotations

import argparse

from searchcrawl.cli.command import BaseCommand, Option
from searchcrawl.cli.commands.flush import show_sent
from searchcrawl.cli.output import progress_bar
from searchcrawl.exceptions import Exit
from searchcrawl.extensions.run_log import install_run_log
from searchcrawl.index.opening import use_index
from searchcrawl.operations import redelivery
from searchcrawl.store.opening import use_store


class Command(BaseCommand):
    uses_settings = True
    shown_arguments = "NAME"
    example = "searchcrawl resend intranet"
    options = (Option("--receiver NAME", "to this receiver instead, which loses what it has besides"),)

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        project, source = self.load_source(args[0])
        install_run_log(project, source)
        retry_seconds = self.load_settings().getfloat("SEARCHCRAWL_INDEX_PATIENCE_SECONDS")
        with use_store(project) as database:
            if opts.receiver is not None:
                done = redelivery.resend_to_receiver(
                    project, source, database, opts.receiver, retry_seconds=retry_seconds
                )
            else:
                with use_index(project) as index, progress_bar(source.name) as on_progress:
                    done = redelivery.resend(
                        project, source, database, index, retry_seconds=retry_seconds, on_progress=on_progress
                    )
        show_sent(done, as_json=opts.json)
        return Exit.DIFFERENT if done["failed"] or done["to_fetch"] else Exit.DONE
