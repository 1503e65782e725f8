"""Check contracts of spiders in Python."""

from __future__ import annotations

import argparse

from scrapy.commands import check
from scrapy.exceptions import UsageError

from searchcrawl.cli.scrapy_commands import find_source_file


class Command(check.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        for name in args:
            if name and find_source_file(name) is not None:
                instead = f"searchcrawl sources check, and searchcrawl test URL --source {name} for one page"
                raise UsageError(f"{name} is a source, which has no callbacks: use {instead}")
        super().run(args, opts)
