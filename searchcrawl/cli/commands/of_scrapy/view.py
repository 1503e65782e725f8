"""Open a page in a browser as Scrapy, or a source, sees it."""

from __future__ import annotations

import argparse

from scrapy.commands import view
from scrapy.exceptions import UsageError

from searchcrawl.cli.source_names import find_source_file


class Command(view.Command):
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
