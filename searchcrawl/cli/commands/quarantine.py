"""Show deletions held back by the limits, carry them out, or keep the documents."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from searchcrawl.cli.command import BaseCommand, Option, UsageError, whole_number
from searchcrawl.cli.output import print_answer, print_line, print_objects, print_table
from searchcrawl.exceptions import Exit
from searchcrawl.index.opening import use_index
from searchcrawl.operations import quarantine
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted

_ACTIONS: Final = ("list", "approve", "reject", "restore")
_ROWS_A_TABLE: Final = 1000


class Command(BaseCommand):
    shown_arguments = "list|approve|reject|restore NAME"
    example = "searchcrawl quarantine approve intranet"
    options = (
        Option("--rejected", "list the deletions that were rejected"),
        Option(
            "--run N",
            "approve, reject or restore the deletions of this run alone; else approve and reject mean those listed last",
            kind=whole_number,
        ),
    )

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        if args[0] not in _ACTIONS:
            raise UsageError(f"unrecognized argument: {args[0]} (there are {', '.join(_ACTIONS)})")
        if args[0] == "list" and opts.run is not None:
            raise UsageError("--run goes with approve, reject and restore")
        if args[0] != "list" and opts.rejected:
            raise UsageError("--rejected goes with list")

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        action, name = args
        project, source = self.load_source(name)
        with use_store(project) as database:
            if action == "list":
                listing = quarantine.list_rejected if opts.rejected else quarantine.list_waiting
                _show_list(listing(database, source), rejected=opts.rejected, as_json=opts.json)
                return Exit.DONE
            if action == "reject":
                done = quarantine.reject(project, source, database, only=opts.run)
            else:
                carry_out = quarantine.approve if action == "approve" else quarantine.restore
                with use_index(project) as index:
                    done = carry_out(project, source, database, index, only=opts.run)
        print_answer(done, [_describe(action, done)], as_json=opts.json)
        return Exit.DONE


def _show_list(removals: Iterator[dict[str, Any]], *, rejected: bool, as_json: bool) -> None:
    if as_json:
        print_objects(removals)
        return
    columns = ("run", "url", "reason", "since")
    nothing = True
    # There may be millions: a table of some at a time.
    while rows := [tuple(row[name] for name in columns) for row in islice(removals, _ROWS_A_TABLE)]:
        print_table(columns, rows)
        nothing = False
    if nothing:
        print_line("no deletion was rejected" if rejected else "no deletion waits")


def _describe(action: str, done: Mapping[str, Any]) -> str:
    name, waiting = done["source"], ""
    if done["waiting"]:
        waiting = f"; {counted(done['waiting'], 'other waits', 'others wait')} (searchcrawl quarantine list {name})"
    if action == "reject":
        return f"{name}: {counted(done['documents'], 'document stays', 'documents stay')} in the index{waiting}"
    failed = f", {done['failed']} refused by the index" if done["failed"] else ""
    return (
        f"{name}: {done['removed']} of {counted(done['documents'], 'document', 'documents')} removed{failed}{waiting}"
    )
