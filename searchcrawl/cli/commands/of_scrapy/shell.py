"""Open a page in the shell of Scrapy, also one of a source."""

from __future__ import annotations

import argparse

from scrapy.commands import shell
from scrapy.exceptions import UsageError

from searchcrawl.cli.scrapy_commands import find_source_file, require_asyncio


class Command(shell.Command):
    def long_desc(self) -> str:
        return f"{super().long_desc()} With --spider NAME of a source: as its crawl visits it; nothing is stored."

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not opts.spider or find_source_file(opts.spider) is None:
            super().run(args, opts)
            return
        # Loaded where it is used: it loads all that visits and reads a page.
        from searchcrawl.cli.source_pages import SourceShell, open_dry_run  # noqa: PLC0415
        from searchcrawl.sources.secrets import redact  # noqa: PLC0415
        from searchcrawl.terminal import guard_logs  # noqa: PLC0415

        if opts.no_redirect:
            raise UsageError(f"--no-redirect: {opts.spider} is a source, whose rules say which redirects are followed")
        guard_logs(alter=redact)
        with open_dry_run(opts.spider) as run:
            console = SourceShell(require_asyncio(self.crawler_process), run, opts.code)
            try:
                console.start(url=args[0] if args else None)
            finally:
                console.close()
