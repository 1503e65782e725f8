"""Show what an edited source file will change, without a request; apply does it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from scrapy.crawler import AsyncCrawlerProcess

from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.output import print_line, print_object, print_table
from searchcrawl.cli.scrapy_commands import require_asyncio
from searchcrawl.exceptions import Exit, StoreError
from searchcrawl.extensions.run_log import install_run_log
from searchcrawl.failpoints import reach
from searchcrawl.operations.plan_file import EditPlan, save_plan
from searchcrawl.operations.planning import describe_trial, describe_undecided, open_trial
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import describe_keys
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.opening import use_store


class Command(BaseCommand):
    uses_settings = True
    requires_crawler_process = True
    shown_arguments = "NAME"
    example = "searchcrawl plan intranet"

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        project, source = self.load_source(args[0])
        process = require_asyncio(self.crawler_process)
        with use_store(project) as database:
            plan = _try(process, project, source, database)
        path = save_plan(project, plan)
        reach("plan.written")
        if opts.json:
            print_object(plan.describe())
        else:
            _show(plan.describe(), str(path.relative_to(project.root)))
        return Exit.PAST_LIMITS if plan.past_limits else Exit.DONE


def _try(process: AsyncCrawlerProcess, project: Project, source: Source, database: Database) -> EditPlan:
    # Imported here, because it loads everything that reads pages.
    from searchcrawl.frontier.replaying import count_left, count_undecided  # noqa: PLC0415
    from searchcrawl.spiders.page_spider import replay_pages  # noqa: PLC0415

    with open_trial(project, source, database) as (run, fence):
        install_run_log(run.project, source)
        pages = replay_pages(process, run)
        failure = run.shutdown.failure or run.delivery_failure
        if failure is not None:
            raise failure
        if run.exit_code is None:
            raise StoreError("the plan was not made to its end")
        left, undecided = count_left(run), count_undecided(run)
        return describe_trial(run, fence, pages=pages, left=left, undecided=undecided, project=project)


def _show(plan: Mapping[str, Any], path: str) -> None:
    edited = describe_keys(plan["edited"]) or "nothing that documents depend on"
    print_line(f"{plan['source']}: edited: {edited}")
    names = {
        "enter": "URLs or documents that enter",
        "leave": "documents that leave the index",
        "reprocess": "pages processed again from the cache",
        "send": "documents sent, because they differ",
        "refetch": "known URLs to be fetched again",
    }
    print_table(("", "count"), [(text, plan[name]) for name, text in names.items()])
    if plan["reasons"]:
        print_table(("", "reason", "count"), [(row["action"], row["reason"], row["count"]) for row in plan["reasons"]])
    for action, rows in plan["samples"].items():
        for row in rows:
            print_line(f"  {action}: {row['url']}  ({row['reason']})")
    if plan["undecided"]:
        print_line(describe_undecided(plan["undecided"]))
    if plan["past_limits"]:
        print_line("These removals pass the limits on deleting (lifecycle.max_delete_percent, max_delete_documents).")
    print_line(f"To do this: searchcrawl apply {plan['plan']}  ({path})")
