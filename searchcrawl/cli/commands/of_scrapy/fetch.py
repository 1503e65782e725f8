"""Fetch a URL as Scrapy, a spider in Python or a source would."""

from __future__ import annotations

import argparse

from scrapy.commands import fetch
from scrapy.exceptions import UsageError

from searchcrawl.cli.scrapy_commands import find_source_file


class Command(fetch.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not opts.spider or find_source_file(opts.spider) is None:
            super().run(args, opts)
            return
        # Loaded where it is used: it loads all that visits and reads a page.
        from searchcrawl.cli.source_pages import fetch_once  # noqa: PLC0415

        if len(args) != 1:
            raise UsageError
        if opts.no_redirect:
            raise UsageError(f"--no-redirect: {opts.spider} is a source, whose rules say which redirects are followed")
        self._print_response(fetch_once(self.crawler_process, opts.spider, args[0]), opts)
