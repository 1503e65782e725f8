"""Count the documents and bytes that the cache holds of each source."""

from __future__ import annotations

import argparse
from typing import Final

from searchcrawl.cli.command import BaseCommand, UsageError
from searchcrawl.cli.output import print_objects, print_table
from searchcrawl.exceptions import Exit
from searchcrawl.queries.status import count_cache
from searchcrawl.sources.loading import list_source_names, require_source_file
from searchcrawl.store.opening import use_store

_COLUMNS: Final = ("source", "records", "segments", "bytes")


class Command(BaseCommand):
    arguments = (1, None)
    shown_arguments = "count [NAME]"
    example = "searchcrawl cache count intranet"

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        action, *names = args
        if action != "count" or len(names) > 1:
            raise UsageError(f"unrecognized argument: {action if action != 'count' else names[1]}")
        project = self.load_project()
        wanted = [require_source_file(project, names[0])] if names else list_source_names(project)
        with use_store(project) as database:
            figures = [count_cache(project, database, name) for name in wanted]
        if opts.json:
            print_objects(figures)
        else:
            print_table(_COLUMNS, [tuple(each[column] for column in _COLUMNS) for each in figures])
        return Exit.DONE
