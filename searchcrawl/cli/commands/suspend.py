"""End the crawl of a source cleanly, and have it crawled no more until it is resumed."""

from __future__ import annotations

from searchcrawl.cli.commands import stop


class Command(stop.Command):
    """As ``stop``, and what follows from it."""

    example = "searchcrawl suspend intranet"
    description = (
        "Ends its crawl as stop does. Until searchcrawl resume NAME, crawl refuses the source with exit code 3, and its schedule "
        "starts nothing. Its documents stay in the index."
    )
    suspends = True
