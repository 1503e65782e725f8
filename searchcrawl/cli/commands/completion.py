"""Print the script with which a shell completes commands, options and names of sources.

The script has the shell call ``searchcrawl`` with a variable; then ``complete`` answers instead of a command. The options are
those of the parser of the command that was typed; no other one is loaded.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import argcomplete
from argcomplete.shell_integration import shellcode

from searchcrawl.cli import commands
from searchcrawl.cli.command import BaseCommand, UsageError
from searchcrawl.cli.dispatch import make_command
from searchcrawl.cli.output import print_object, print_text
from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.sources.checking import quote_value
from searchcrawl.sources.loading import find_project, list_names_below, load_project

_SHELLS = ("bash", "zsh", "fish")
_ARGUMENTS: Final = "arguments"
#: A word of a usage that is typed as it stands.
_LITERAL: Final = re.compile(r"[a-z]+")
_OPTIONAL: Final = re.compile(r"\[--.*?\]|--\S+( [A-Z]+)?|[][…]")


class Command(BaseCommand):
    requires_project = False
    arguments = (1, 1)
    shown_arguments = "bash | zsh | fish"
    example = "searchcrawl completion bash > ~/.local/share/bash-completion/completions/searchcrawl"
    description = (
        "Print the script with which a shell completes commands, options and names of sources. For zsh put it into a "
        'file "_searchcrawl" in a folder of $fpath, for fish into ~/.config/fish/completions/searchcrawl.fish.'
    )

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        if args[0] not in _SHELLS:
            raise UsageError(f"the shell must be one of {', '.join(_SHELLS)} (got {quote_value(args[0])})")
        script = shellcode(["searchcrawl"], shell=args[0])
        if opts.json:
            print_object({"shell": args[0], "script": script})
        else:
            print_text(script)


def complete() -> None:
    """Answers a shell, and ends the process."""
    typed = os.environ.get("COMP_LINE", "")
    parser = build_parser(typed.split()[1:])
    argcomplete.autocomplete(parser, always_complete_options=False)
    # Not called by a shell after all.
    sys.exit(1)


def build_parser(typed: Iterable[str]) -> argparse.ArgumentParser:
    """A parser of all commands; the one that was ``typed`` has its options, the others their names alone."""
    parser = argparse.ArgumentParser(prog="searchcrawl", conflict_handler="resolve")
    parser.add_argument("--version", action="store_true")
    below = parser.add_subparsers()
    chosen = next((word for word in typed if not word.startswith("-")), None)
    for name in commands.list_names():
        of_command = below.add_parser(name, help=commands.describe(name), conflict_handler="resolve")
        if name == chosen:
            command = make_command(name)
            command.add_options(of_command)
            # Its usage is for people.
            of_command.usage = None
            argument: Any = of_command.add_argument(_ARGUMENTS, nargs="*")
            argument.completer = _Words(list_words(command.syntax()))
            for option in list(of_command._actions):  # argparse has no other way to them
                if "--source" in option.option_strings:
                    of_source: Any = option
                    of_source.completer = _Words([["NAME"]], of_arguments=False)
    return parser


def list_words(syntax: str) -> list[list[str]]:
    """The words that a usage has for each argument; ``NAME`` is any source.

    ``check | show NAME`` is ``[["check", "show"], ["NAME"]]``.
    """
    found: list[list[str]] = []
    for way in _OPTIONAL.sub(" ", syntax).split("|"):
        for number, word in enumerate(way.split()):
            if number == len(found):
                found.append([])
            found[number].append(word)
    return found


class _Words:
    """The words that fit as the next argument; ``NAME`` is any source of the project here, ``PLAN`` a plan of it."""

    def __init__(self, words: Sequence[Sequence[str]], *, of_arguments: bool = True) -> None:
        self._words = words
        self._of_arguments = of_arguments

    def __call__(self, prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        before = (getattr(parsed_args, _ARGUMENTS, None) or []) if self._of_arguments else []
        words = self._words[len(before)] if len(before) < len(self._words) else ()
        found = [word for word in words if _LITERAL.fullmatch(word)]
        # No source, or no plan, where there is no project here, or it cannot be read: a shell shows no errors.
        with suppress(SearchcrawlError):
            if "NAME" in words:
                found += list_names_below(find_project())
            if "PLAN" in words:
                # Imported here: it is seldom asked for, and each press of the key loads this anew.
                from searchcrawl.operations.plan_file import list_plan_names  # noqa: PLC0415

                found += list_plan_names(load_project(find_project()))
        return [word for word in found if word.startswith(prefix)]
