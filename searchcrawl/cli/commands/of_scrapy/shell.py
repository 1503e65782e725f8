"""Open a page in the shell of Scrapy."""

from __future__ import annotations

import argparse

from scrapy.commands import shell

from searchcrawl.cli.source_names import refuse_sources


class Command(shell.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        url = args[0] if args else "URL"
        refuse_sources([opts.spider], f"searchcrawl test {url} --source NAME")
        super().run(args, opts)
