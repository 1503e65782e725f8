"""The commands, one module each, and what each does in one line: `searchcrawl --help` loads nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: By the name of the module, which is the command's.
DESCRIPTIONS: Final[Mapping[str, str]] = {
    "cache": "Count the documents and bytes that the cache holds of each source",
    "crawl": "Crawl a source: everything at first, then what may have changed",
    "explain": "Say why a URL is or is not in the index, and which rule decided",
    "flush": "Push what the cache holds to the index, of one source or of all",
    "init": "Make a new project with one commented source",
    "list": "List the sources that can be crawled",
    "quarantine": "Show deletions held back by the limits, carry them out, or keep the documents",
    "quick": "Crawl a site without any configuration, and say how to search it",
    "resend": "Send every document again from the cache to the index; no page is requested",
    "search": "Search the index",
    "sources": "Check searchcrawl.toml and all source files, or show what a source comes to",
    "status": "Show the state of a source, or of all: runs, counts, what waits",
    "test": "Fetch one page and show what would be stored; stores nothing",
    "urls": "List the URLs of a source: state, code, the rule that decided",
    "verify": "Compare index and URL table: missing, extra, stale, foreign documents; 1 where they differ",
}
