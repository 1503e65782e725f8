"""Print the script with which a shell completes commands, options and names of sources."""

from __future__ import annotations

import argparse

from argcomplete.shell_integration import shellcode

from searchcrawl.cli.command import Command as BaseCommand
from searchcrawl.cli.command import UsageError
from searchcrawl.cli.output import print_object, print_text
from searchcrawl.sources.checking import quote_value

_SHELLS = ("bash", "zsh", "fish")


class Command(BaseCommand):
    arguments = (1, 1)
    shown_arguments = "bash | zsh | fish"
    example = "searchcrawl completion bash > ~/.local/share/bash-completion/completions/searchcrawl"

    def long_desc(self) -> str:
        return (
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
