"""List the runs of a source, or of all, newest first: when, how each ended, and its counters."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any, Final

from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.output import print_line, print_objects, print_table, to_minute
from searchcrawl.queries.runs import is_known, list_runs
from searchcrawl.sources.loading import load_source
from searchcrawl.store.opening import use_store

#: The counters that the table has; ``--json`` has all.
_SHOWN: Final = ("fetched", "fetch_failures", "indexed", "deleted")
_COLUMNS: Final = ("run", "source", "started", "ended (exit)", "fetched", "failed", "indexed", "deleted")


class Command(BaseCommand):
    shown_arguments = "[NAME]"
    example = "searchcrawl runs intranet"

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project = self.load_project()
        name = args[0] if args else None
        with use_store(project) as database:
            if name is not None and not is_known(database, name):
                # A source whose file is gone has runs all the same; one of neither is unknown.
                load_source(project, name)
            runs = list_runs(database, name)
            if opts.json:
                print_objects(runs)
            else:
                _show(runs)


def _show(runs: Iterable[Mapping[str, Any]]) -> None:
    rows = [
        (
            run["id"],
            run["source"],
            to_minute(run["started"]),
            _describe_end(run),
            *(run["counts"][name] for name in _SHOWN),
        )
        for run in runs
    ]
    if rows:
        print_table(_COLUMNS, rows)
    else:
        print_line("no runs yet: searchcrawl crawl NAME begins one")


def _describe_end(run: Mapping[str, Any]) -> str:
    if not run["end_reason"]:
        return "not yet"
    return run["end_reason"] if run["exit_code"] is None else f"{run['end_reason']} ({run['exit_code']})"
