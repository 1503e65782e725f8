"""Check searchcrawl.toml and all source files, or show what a source comes to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from searchcrawl.cli.command import BaseCommand, UsageError
from searchcrawl.cli.output import print_error, print_line, print_object, print_table, print_warnings
from searchcrawl.cli.settings_module import find_name_clashes
from searchcrawl.exceptions import ConfigurationError, Exit, StoreError, UnknownSource
from searchcrawl.queries.listed_now import ListedNow, list_now
from searchcrawl.queries.source_findings import ask_source, find_doubts, find_in_source, find_source_doubts
from searchcrawl.queries.status import GoneSource, list_gone_sources
from searchcrawl.sources.effective import list_effective_values
from searchcrawl.sources.loading import find_project, load_source, load_sources, read_project
from searchcrawl.sources.project import Project
from searchcrawl.sources.secrets import redact
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted

#: What a run needs beside the files.
_UNSEEN: Final = "folders of the project, store, index, host names, certificates, browser, clock, scrapyds"


class Command(BaseCommand):
    requires_project = False
    arguments = (1, 2)
    shown_arguments = "check | show NAME"
    example = "searchcrawl sources show intranet"
    description = (
        "check: every error of searchcrawl.toml and of the source files, a line each, and what cannot be meant: start "
        "URLs outside the scope or at addresses that may not be reached, MIME types that are none; tables, queries and "
        "columns that a database has not, and credentials that it refuses; as warnings a "
        "contact that is a placeholder, and sources whose files are gone. Whether a run finds its folders, index, "
        "hosts and browser is for doctor to say. "
        "show NAME: every key of a source with its value and where that was written: the source file, "
        '"searchcrawl.toml [parameters.SET]", "searchcrawl.toml [defaults]", "searchcrawl.toml" (user_agent), or '
        '"built-in"; the first in this order that has the key counts. Values from the environment or a file are '
        'shown as {"env": NAME} or {"file": PATH}, passwords as ***.'
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--list",
            action="store_true",
            help="with check: list what sources of files and rows have now, as a crawl does, and read none of it",
        )

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        match args:
            case ["check"]:
                return self._check(lists=opts.list, as_json=opts.json)
            case ["show", name]:
                return self._show(name, as_json=opts.json)
            case ["show"]:
                raise UsageError("missing argument: searchcrawl sources show NAME")
        raise UsageError(f"unrecognized argument: {' '.join(args)}")

    def _show(self, name: str, *, as_json: bool) -> int:
        project = self.load_project()
        try:
            source = load_source(project, name)
        except UnknownSource as error:
            # With what can be done where the store still knows the source.
            texts = [each.text for each in _find_gone(project) if each.name == name]
            raise UnknownSource(": ".join([str(error), *texts])) from error
        values = list_effective_values(project, source)
        if as_json:
            print_object(values)
        else:
            rows = [
                (key, json.dumps(entry["value"], ensure_ascii=False), entry["origin"]) for key, entry in values.items()
            ]
            print_table(("key", "value", "written in"), rows)
        return Exit.DONE

    def _check(self, *, lists: bool, as_json: bool) -> int:
        count, errors, doubts = check_files()
        listed: dict[str, ListedNow] = {}
        if lists and not errors:
            project = self.load_project()
            sources, _ = load_sources(project)
            listed = {name: list_now(project, source) for name, source in sources.items() if source.kind.is_listed}
        _answer(count, errors, doubts, listed, as_json=as_json)
        if errors:
            return Exit.CONFIGURATION
        return Exit.ENDED_EARLY if any(each.failed for each in listed.values()) else Exit.DONE


def _answer(
    count: int,
    errors: Sequence[ConfigurationError],
    doubts: Sequence[ConfigurationError],
    listed: Mapping[str, ListedNow],
    *,
    as_json: bool,
) -> None:
    if as_json:
        shown = [{"file": error.file, "key": error.key, "message": redact(error.message)} for error in errors]
        warnings = [{"file": each.file, "key": each.key, "message": redact(each.message)} for each in doubts]
        more: dict[str, Any] = {"warnings": warnings} if warnings else {}
        if listed:
            more["listed"] = {name: asdict(each) for name, each in listed.items()}
        print_object({"ok": not errors, "errors": shown, **more})
    else:
        _print(count, errors, doubts)
        for name, each in listed.items():
            left_out = f"; {each.refused} left out by rules" if each.refused else ""
            places = counted(each.containers, "folder or table", "folders or tables")
            print_line(f"{name}: {counted(each.listed, 'document', 'documents')} in {places}{left_out}")
            for failed in each.failed:
                print_line(f"  {failed['url']}: {failed['error']}")


def check_files() -> tuple[int, Sequence[ConfigurationError], Sequence[ConfigurationError]]:
    """How many sources are good, every error of the project, and what is no error: sources whose files are gone, say."""
    root = find_project()
    try:
        project, errors = read_project(root)
    except ConfigurationError as error:
        return 0, error.errors, ()
    if project is None:
        return 0, errors, ()
    sources, more = load_sources(project)
    errors = [*errors, *_try_converters(project, errors), *more]
    for source in sources.values():
        try:
            errors += find_in_source(project, source)
        except ConfigurationError as error:
            errors.append(error)
    errors += find_name_clashes(root)
    asked = [found for source in sources.values() for found in ask_source(project, source)]
    errors += [error for is_error, error in asked if is_error]
    of_sources = (doubt for source in sources.values() for doubt in find_source_doubts(source))
    doubts = [
        *find_doubts(project),
        *of_sources,
        *(doubt for is_error, doubt in asked if not is_error),
        *(ConfigurationError(each.file, "", each.text) for each in _find_gone(project)),
    ]
    return len(sources), errors, doubts


def _try_converters(project: Project, errors: Sequence[ConfigurationError]) -> Sequence[ConfigurationError]:
    """The converters that cannot be made, without those of which ``errors`` already has something."""
    if not project.converters:
        return ()
    from searchcrawl.convert.user_converter import find_converter_errors  # noqa: PLC0415  # most projects have none

    named = {(error.file, error.key) for error in errors}
    return [each for each in find_converter_errors(project) if (each.file, each.key) not in named]


def _find_gone(project: Project) -> Sequence[GoneSource]:
    """The sources whose files are gone; none where no store was made yet, or it cannot be read."""
    if not project.has_store:
        return ()
    try:
        with use_store(project) as database:
            return list_gone_sources(project, database)
    except StoreError as error:
        print_warnings([error])
        return ()


def _print(count: int, errors: Sequence[ConfigurationError], doubts: Sequence[ConfigurationError]) -> None:
    print_warnings(doubts)
    for error in errors:
        print_error(error)
    if not errors:
        print_line(f"{count} source{'' if count == 1 else 's'}, no errors")
        print_line(f"not looked at: {_UNSEEN}: searchcrawl doctor")
