"""Push what the cache holds to the index, of one source or of all."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.output import print_answer, print_error, print_note, progress_bar
from searchcrawl.exceptions import ConfigurationError, Exit, SourceBusy, exit_of
from searchcrawl.extensions.run_log import install_run_log
from searchcrawl.index.opening import use_index
from searchcrawl.operations import redelivery
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import load_source, load_sources
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted


class Command(BaseCommand):
    uses_settings = True
    shown_arguments = "[NAME]"
    example = "searchcrawl flush intranet"

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        project = self.load_project()
        sources: list[Source]
        errors: Sequence[ConfigurationError]
        if args:
            sources, errors = [load_source(project, args[0])], []
        else:
            good, errors = load_sources(project)
            sources = []
            for each in good.values():
                if each.no_delivery_key is None:
                    sources.append(each)
                else:
                    print_note(
                        f"searchcrawl: {each.name} is left out: it delivers nothing, because of {each.no_delivery_key}"
                    )
        for error in errors:
            print_error(error)
        ended = [int(exit_of(error)) for error in errors]
        with use_store(project) as database:
            ended += [self._flush(project, each, database, as_json=opts.json) for each in sources]
        return max(ended, default=Exit.DONE)

    def _flush(self, project: Project, source: Source, database: Database, *, as_json: bool) -> int:
        """Flushes one source and returns its exit code; one that is being crawled is skipped, and the others go on."""
        install_run_log(project, source)
        retry_seconds = self.load_settings().getfloat("SEARCHCRAWL_INDEX_PATIENCE_SECONDS")
        try:
            with use_index(project) as index, progress_bar(source.name) as on_progress:
                done = redelivery.flush(
                    project, source, database, index, retry_seconds=retry_seconds, on_progress=on_progress
                )
        except SourceBusy as error:
            print_error(error)
            return exit_of(error)
        show_sent(done, as_json=as_json)
        return Exit.DONE


def show_sent(done: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints how many documents of a source were sent and removed."""
    removed = f", {done['removed']} removed" if done["removed"] else ""
    failed = f", {done['failed']} refused by the index" if done["failed"] else ""
    to_fetch = (
        f", {counted(done['to_fetch'], 'is', 'are')} no longer in the cache, to be fetched: searchcrawl crawl {done['source']}"
        if done["to_fetch"]
        else ""
    )
    sent = counted(done["documents"], "document", "documents")
    print_answer(done, [f"{done['source']}: {sent} sent{removed}{failed}{to_fetch}"], as_json=as_json)
