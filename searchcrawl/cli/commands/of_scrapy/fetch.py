"""Fetch a URL as Scrapy or a spider in Python would."""

from __future__ import annotations

import argparse

from scrapy.commands import fetch

from searchcrawl.cli.source_names import refuse_sources


class Command(fetch.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        url = args[0] if args else "URL"
        refuse_sources([opts.spider], f"searchcrawl test {url} --source NAME")
        super().run(args, opts)
