"""``searchcrawl sources check``: every error of searchcrawl.toml and of all source files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from scrapy.exceptions import UsageError

from searchcrawl.command_line import Command as BaseCommand
from searchcrawl.command_line import Exit, error_lines, print_object
from searchcrawl.exceptions import ConfigurationError, InvalidFile
from searchcrawl.sources.loading import find_project, load_project, load_sources, start_urls


class Command(BaseCommand):
    arguments = (1, 2)
    example = "searchcrawl sources check"

    def syntax(self) -> str:
        return "check"

    def short_desc(self) -> str:
        return "Check searchcrawl.toml and all source files"

    def answer(self, args: list[str], opts: argparse.Namespace) -> int:
        if args[0] == "show":
            print("searchcrawl sources show: not available yet", file=sys.stderr)
            return Exit.WRONG_USE
        if args != ["check"]:
            raise UsageError(f"unrecognized argument: {' '.join(args)}")
        count, errors = _check()
        if opts.json:
            shown = [{"file": error.file, "key": error.key, "message": error.message} for error in errors]
            print_object({"ok": not errors, "errors": shown})
        else:
            _print(count, errors)
        return Exit.CONFIGURATION if errors else Exit.DONE


def _check() -> tuple[int, Sequence[ConfigurationError]]:
    """How many sources are good, and every error."""
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
            start_urls(project, source)
        except ConfigurationError as error:
            errors.append(error)
    return len(sources), errors


def _print(count: int, errors: Sequence[ConfigurationError]) -> None:
    for error in errors:
        for line in error_lines(error):
            print(line, file=sys.stderr)
    if not errors:
        print(f"{count} source{'' if count == 1 else 's'}, no errors")
