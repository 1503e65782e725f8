"""Open a page in a browser as Scrapy, or a source, sees it."""

from __future__ import annotations

from scrapy.commands import view

from searchcrawl.cli.commands.of_scrapy import fetch


class Command(fetch.Command, view.Command):
    """As ``fetch``, with the options of Scrapy's ``view`` and its way to show a page."""
