"""Parse a URL with a spider in Python, or as a source reads it."""

from __future__ import annotations

import argparse

from scrapy import Request
from scrapy.commands import parse
from scrapy.exceptions import UsageError

from searchcrawl.cli.scrapy_commands import find_source_file

#: What is of callbacks, which a source does not have.
_OF_CALLBACKS = ("callback", "rules", "meta", "cbkwargs")


class Command(parse.Command):
    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.spider and find_source_file(opts.spider) is not None:
            for name in _OF_CALLBACKS:
                if getattr(opts, name):
                    raise UsageError(f"--{name}: {opts.spider} is a source, which has no callbacks")
        super().process_options(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not opts.spider or find_source_file(opts.spider) is None:
            super().run(args, opts)
            return
        # Loaded where it is used: it loads all that visits and reads a page.
        from searchcrawl.cli.source_pages import describe_once  # noqa: PLC0415

        if len(args) != 1:
            raise UsageError
        view = describe_once(self.crawler_process, opts.spider, args[0])
        self.add_items(1, [{**view["fields"], "content": view["text"]}] if view["fields"] else [])
        self.add_requests(1, [Request(link["url"]) for link in view["links"] if link["allowed"]])
        self.print_results(opts)
