"""Open a page in a browser as Scrapy sees it."""

from __future__ import annotations

import argparse

from scrapy.commands import view

from searchcrawl.cli.source_names import refuse_sources


class Command(view.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        url = args[0] if args else "URL"
        refuse_sources([opts.spider], f"searchcrawl test {url} --source NAME")
        super().run(args, opts)
