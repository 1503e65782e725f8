"""Check searchcrawl.toml and all source files, or show what a source comes to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from searchcrawl.cli.command import Command as BaseCommand
from searchcrawl.cli.command import UsageError
from searchcrawl.cli.output import error_lines, print_line, print_note, print_object, print_table
from searchcrawl.exceptions import ConfigurationError, InvalidFile
from searchcrawl.exit_codes import Exit
from searchcrawl.sources.effective import list_effective_values
from searchcrawl.sources.loading import find_project, load_project, load_source, load_sources, read_start_urls
from searchcrawl.sources.secrets import redact


class Command(BaseCommand):
    arguments = (1, 2)
    shown_arguments = "check | show NAME"
    example = "searchcrawl sources show intranet"

    def long_desc(self) -> str:
        return (
            "check: every error of searchcrawl.toml and of the source files, a line each. "
            "show NAME: every key of a source with its value and where that was written: the source file, "
            '"searchcrawl.toml [parameters.SET]", "searchcrawl.toml [defaults]", "searchcrawl.toml" (user_agent), or '
            '"built-in"; the first in this order that has the key counts. Values from the environment or a file are '
            'shown as {"env": NAME} or {"file": PATH}, passwords as ***.'
        )

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        match args:
            case ["check"]:
                return _run_check(as_json=opts.json)
            case ["show", name]:
                return self._show(name, as_json=opts.json)
            case ["show"]:
                raise UsageError("missing argument: searchcrawl sources show NAME")
        raise UsageError(f"unrecognized argument: {' '.join(args)}")

    def _show(self, name: str, *, as_json: bool) -> int:
        project = self.load_project()
        values = list_effective_values(project, load_source(project, name))
        if as_json:
            print_object(values)
        else:
            rows = [(key, _as_text(entry["value"]), entry["origin"]) for key, entry in values.items()]
            print_table(("key", "value", "written in"), rows)
        return Exit.DONE


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _run_check(*, as_json: bool) -> int:
    count, errors = _check()
    if as_json:
        shown = [{"file": error.file, "key": error.key, "message": redact(error.message)} for error in errors]
        print_object({"ok": not errors, "errors": shown})
    else:
        _print(count, errors)
    return Exit.CONFIGURATION if errors else Exit.DONE


def _check() -> tuple[int, Sequence[ConfigurationError]]:
    """How many sources are good, and every error of the project."""
    root = find_project()
    try:
        project = load_project(root)
    except InvalidFile as several:
        return 0, several.errors
    except ConfigurationError as error:
        return 0, [error]
    sources, errors = load_sources(project)
    for source in sources.values():
        try:
            read_start_urls(project, source)
        except ConfigurationError as error:
            errors.append(error)
    return len(sources), errors


def _print(count: int, errors: Sequence[ConfigurationError]) -> None:
    for error in errors:
        for line in error_lines(error):
            print_note(line)
    if not errors:
        print_line(f"{count} source{'' if count == 1 else 's'}, no errors")
