"""Do what a plan says: process again what the cache holds, without a request."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.output import print_answer
from searchcrawl.cli.scrapy_commands import require_asyncio
from searchcrawl.exceptions import Exit, exit_of
from searchcrawl.extensions.run_log import install_run_log
from searchcrawl.index.opening import use_index
from searchcrawl.operations.plan_file import load_plan
from searchcrawl.operations.planning import approve_planned, begin_apply, describe_applied, describe_undecided
from searchcrawl.run import Run
from searchcrawl.sources.loading import load_source
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted


class Command(BaseCommand):
    uses_settings = True
    requires_crawler_process = True
    shown_arguments = "PLAN"
    example = "searchcrawl apply intranet-12"

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        # Imported here, because it loads everything that reads pages.
        from searchcrawl.frontier.replaying import count_left, count_undecided  # noqa: PLC0415

        project = self.load_project()
        source = load_source(project, load_plan(project, args[0]).source)
        logs = install_run_log(project, source)
        patience_seconds = self.load_settings().getfloat("SEARCHCRAWL_STORE_PATIENCE_SECONDS")
        with use_store(project, patience_seconds=patience_seconds) as database:
            run = begin_apply(project, source, database, load_plan(project, args[0]))
            code, counts, left, undecided = Exit.DONE, dict[str, int](), 0, 0
            if run is not None:
                for log in logs:
                    log.on_failure(run.shutdown.fail)
                code = self._replay(run)
                counts = run.copy_counts()
                left, undecided = count_left(run), count_undecided(run)
            removed = 0
            if code in {Exit.DONE, Exit.QUARANTINE}:
                with use_index(project) as index:
                    plan = load_plan(project, args[0])
                    removed = approve_planned(project, source, database, index, plan)
                if removed:
                    code = Exit.DONE
        done = describe_applied(counts, source, removed=removed, left=left, undecided=undecided)
        print_answer(done, _describe(done), as_json=opts.json)
        return code

    def _replay(self, run: Run) -> Exit:
        from searchcrawl.spiders.page_spider import replay_pages  # noqa: PLC0415  # it loads what reads pages

        replay_pages(require_asyncio(self.crawler_process), run)
        if run.shutdown.failure is not None:
            raise run.shutdown.failure
        if run.delivery_failure is not None:
            return exit_of(run.delivery_failure)
        return Exit.ENDED_EARLY if run.exit_code is None else Exit(run.exit_code)


def _describe(done: Mapping[str, Any]) -> Iterator[str]:
    sent = counted(done["documents"], "document", "documents")
    yield f"{done['source']}: {sent} sent, {done['removed']} removed, no page requested"
    if done["to_fetch"]:
        left = counted(done["to_fetch"], "URL is", "URLs are")
        yield f"{left} left to be fetched: searchcrawl crawl {done['source']}"
    if done["undecided"]:
        yield describe_undecided(done["undecided"])
