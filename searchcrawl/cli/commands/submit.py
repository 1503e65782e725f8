"""Put one URL into the queue of a source, also while it is crawled."""

from __future__ import annotations

import argparse

from searchcrawl.cli.command import BaseCommand, Option, UsageError, find_path
from searchcrawl.cli.output import print_answer, print_note
from searchcrawl.exceptions import Exit
from searchcrawl.operations.visiting import Result, submit
from searchcrawl.store.opening import use_store


class Command(BaseCommand):
    shown_arguments = "URL --source NAME"
    example = "searchcrawl submit https://www.example.org/new.html --source intranet"
    description = (
        "The rules of the source decide as for a link: nothing is widened by it. A crawl that is under way takes the URL "
        "in within seconds, else the next one does. recrawl --url has a known URL visited again. Ends with 2 for one that "
        "is not taken."
    )
    options = (Option("--source NAME", "the source"),)

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        if opts.source is None:
            raise UsageError("missing option: --source NAME")
        project, source = self.load_source(opts.source)
        with use_store(project) as database:
            done = submit(project, source, database, find_path(args[0]))
        line = f"{done.url}: {done.result}{f' ({done.rule})' if done.rule else ''}"
        print_answer({"result": done.result}, [line], as_json=opts.json)
        if done.result is Result.OK and source.lifecycle.orphans == "delete":
            print_note(f'{source.path}: lifecycle.orphans = "delete": it leaves again unless something else names it')
        return Exit.DONE if done.result in {Result.OK, Result.DUPLICATE} else Exit.WRONG_USE
