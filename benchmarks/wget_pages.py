"""Which HTML pages wget reaches: an independent answer to what a complete crawl is."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks.nginx_server import Asked, Site
from searchcrawl.urls import parse

#: Network trouble or "the server issued an error response": dead links of real pages give 8.
ACCEPTED_EXIT_CODES = (0, 8)


def identity(site: Site, asked: Asked) -> str:
    """The URL of a request as searchcrawl spells it, without fragment."""
    return parse(site.root_url.rstrip("/") + asked.uri).href


def html_pages(site: Site, asked: list[Asked]) -> set[str]:
    """Identities of the HTML pages that came with status 200."""
    return {identity(site, one) for one in asked if one.status == 200 and one.mime_type == "text/html"}


def pages_by_wget(site: Site) -> set[str]:
    """Crawls ``site`` with wget, to any depth, and returns the HTML pages it reached."""
    mark = site.mark()
    with tempfile.TemporaryDirectory() as folder:
        command = ["wget", "--quiet", "--recursive", "--level=inf", "--no-host-directories", "--tries=2", site.root_url]
        code = subprocess.run(command, cwd=Path(folder), check=False).returncode
    if code not in ACCEPTED_EXIT_CODES:
        raise SystemExit(f"bench: wget ended with {code}")
    return html_pages(site, site.asked_since(mark))
