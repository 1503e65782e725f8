"""Forget URLs: out of index, cache and table at once, and refused from then on."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchcrawl.admission.trap_watch import list_trapped
from searchcrawl.cli.command import BaseCommand, Option, UsageError, find_path
from searchcrawl.cli.output import print_answer, print_error, print_line, print_note, print_warnings
from searchcrawl.exceptions import ConfigurationError, Exit, SearchcrawlError, exit_of
from searchcrawl.extensions.run_log import install_run_log
from searchcrawl.failpoints import reach
from searchcrawl.operations import forgetting
from searchcrawl.operations.forgetting import ForgetCall, Known, PastLimit
from searchcrawl.operations.handing_over import hand_over
from searchcrawl.rules.forgotten import FILE, PATTERN, digest
from searchcrawl.rules.url_rules import explain_no_match
from searchcrawl.sources.forgotten_list import add_lines, check_line, read_lines_of
from searchcrawl.sources.loading import list_source_names, require_source_file
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.opening import use_store
from searchcrawl.store.runs import run_table
from searchcrawl.wording import counted


class Command(BaseCommand):
    uses_settings = True
    arguments = (0, None)
    shown_arguments = "[URL…]"
    example = "searchcrawl forget https://www.example.org/people/jane.html"
    description = (
        f"The URLs are added to {FILE} of the project, which no source may request any more, and what is known of them "
        "is removed: documents from the index, records from the cache, rows from the table. A source that is crawled "
        "meanwhile asks for them no more, and is not changed (exit 5): call again. Without URLs, what the file says is carried out."
    )
    options = (
        Option("--pattern P", "a URL rule, as in scope.exclude_urls; repeatable", repeatable=True),
        Option("--traps NAME", "what the index has of ended traps of a source, as status counts it"),
        Option("--file F", f"a file in the form of {FILE}, with a URL or a pattern a line"),
        Option("--yes", "also where patterns and archives have more documents than the limits on deleting"),
    )

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        project = self.load_project()
        before = digest(project.forgotten)
        with use_store(project) as database:
            lines = [*_read_lines(args, opts), *_list_trapped(project, database, opts.traps)]
            if not lines and opts.traps is not None:
                print_line(f"the index has no documents of ended traps of {opts.traps}")
                return Exit.DONE
            lines = lines or list(project.forgotten)
            found = forgetting.survey(project, database, lines)
            past = forgetting.find_past_limits(database, found)
            if past and not opts.yes:
                return _refuse(past)
            add_lines(project.root, [*lines, *found.aliases])
            reach("forget.listed")
            retry_seconds = self.load_settings().getfloat("SEARCHCRAWL_INDEX_PATIENCE_SECONDS")
            call = ForgetCall(self.load_project(), database, before, found.last_id, bool(past), retry_seconds)
            ended = [_forget(call, known, as_json=opts.json) for _, known in sorted(found.known.items())]
            unknown = [name for name in list_source_names(project) if name not in found.known]
            ended += [_check_index(call, name) for name in unknown]
            hand_over(project, database, retry_seconds=retry_seconds)
        if not opts.json:
            print_line(f"{FILE}: what it names is refused from now on")
        return max(ended, default=Exit.DONE)


def _read_lines(args: list[str], opts: argparse.Namespace) -> list[str]:
    try:
        lines = [check_line(find_path(url), is_typed=True) for url in args]
        lines += [check_line(f"{PATTERN} {pattern}") for pattern in opts.pattern]
    except ConfigurationError as error:
        raise UsageError(error.message) from error
    for pattern in opts.pattern:
        if (reason := explain_no_match(pattern)) is not None:
            raise UsageError(f"--pattern {reason} (got {pattern!r})")
    return lines if opts.file is None else [*lines, *read_lines_of(Path(opts.file))]


def _list_trapped(project: Project, database: Database, name: str | None) -> list[str]:
    if name is None:
        return []
    require_source_file(project, name)
    trapped = database.read(run_table.read_of, name, lambda opened, source_id: [*list_trapped(opened, source_id)], [])
    return [document.url for document in trapped]


def _refuse(past: list[PastLimit]) -> int:
    for name, documents, total in past:
        print_note(
            f"searchcrawl forget: patterns, and files in archives, are {documents} of "
            f"{counted(total, 'document', 'documents')} of {name}, more than its limits on deleting allow: nothing was done; "
            "--yes forgets them all the same"
        )
    return Exit.PAST_LIMITS


def _forget(call: ForgetCall, known: Known, *, as_json: bool) -> int:
    """Has one source forget, and prints its receipt; returns its exit code. An error of one does not stop the others."""
    name = known.source.name
    if isinstance(known.error, ConfigurationError):
        print_warnings([known.error])
    try:
        if not forgetting.is_concerned(call.project, call.database, known):
            _show(forgetting.build_receipt(name), as_json=as_json)
            return _check_index(call, name)
        install_run_log(call.project, known.source)
        receipt, failure = forgetting.forget_in(call, known)
    except (SearchcrawlError, OSError) as error:
        print_error(error)
        return exit_of(error)
    _show(receipt, as_json=as_json)
    if failure is None:
        return _check_index(call, name)
    print_error(failure)
    return exit_of(failure)


def _check_index(call: ForgetCall, name: str) -> int:
    """Says where the index may have what is forgotten although no row names it; returns the exit code of one source."""
    try:
        forgetting.check_index(call.project, call.database, name)
    except SearchcrawlError as error:
        print_error(error)
        return exit_of(error)
    return Exit.DONE


def _show(receipt: Mapping[str, Any], *, as_json: bool) -> None:
    forgotten = counted(receipt["documents"], "document", "documents")
    removed = counted(receipt["removed"], "removal", "removals")
    failed, to_fetch = receipt["failed"], receipt["to_fetch"]
    lines = [
        f"{receipt['source']}: {forgotten} forgotten, {removed} from the index"
        + (f", {counted(failed, 'removal', 'removals')} refused by the index" if failed else "")
        + (f"; the next run fetches {counted(to_fetch, 'other', 'others')} with the same text" if to_fetch else "")
    ]
    if receivers := receipt.get("receivers"):
        lines.append(f"{receipt['source']}: have not heard of it yet: {', '.join(receivers)}")
    print_answer(receipt, lines, as_json=as_json)
