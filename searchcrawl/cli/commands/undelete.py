"""Bring back the documents that a run removed: from the cache, or by fetching them again."""

from __future__ import annotations

import argparse

from searchcrawl.cli.command import BaseCommand, UsageError
from searchcrawl.cli.output import print_answer, progress_bar
from searchcrawl.extensions.run_log import install_run_log
from searchcrawl.index.opening import use_index
from searchcrawl.operations import quarantine
from searchcrawl.sources.loading import load_source
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted


class Command(BaseCommand):
    uses_settings = True
    shown_arguments = "RUN"
    example = "searchcrawl undelete 12"

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        if not (args[0].isascii() and args[0].isdigit() and len(args[0]) < 10):
            raise UsageError(f"RUN is the number of a run, as `status` shows it (got {args[0]})")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        run_id = int(args[0])
        project = self.load_project()
        retry_seconds = self.load_settings().getfloat("SEARCHCRAWL_INDEX_PATIENCE_SECONDS")
        with use_store(project) as database:
            source = load_source(project, quarantine.find_source_of(database, run_id))
            install_run_log(project, source)
            with use_index(project) as index, progress_bar(source.name) as on_progress:
                done = quarantine.undelete(
                    project, source, database, index, run_id, retry_seconds=retry_seconds, on_progress=on_progress
                )
        line = f"{source.name}: nothing that run {run_id} removed is missing"
        if any(done[name] for name in ("documents", "failed", "to_fetch")):
            failed = f", {done['failed']} could not be sent" if done["failed"] else ""
            others = counted(done["to_fetch"], "other", "others")
            to_fetch = f"; the next run fetches {others}" if done["to_fetch"] else ""
            line = f"{source.name}: {counted(done['documents'], 'document', 'documents')} sent{failed}{to_fetch}"
        print_answer(done, [line], as_json=opts.json)
