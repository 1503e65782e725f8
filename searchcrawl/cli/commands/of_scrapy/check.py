"""Check contracts of spiders in Python."""

from __future__ import annotations

import argparse

from scrapy.commands import check

from searchcrawl.cli.scrapy_commands import refuse_sources


class Command(check.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        refuse_sources(args, "searchcrawl sources check, and searchcrawl test URL --source NAME for one page")
        super().run(args, opts)
