"""Which sitemaps may be asked for, and whose word on a URL counts (sitemaps.org, protocol.html#location)."""

from __future__ import annotations

from typing import Final

from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision

#: These say which pages are wanted; a sitemap is none.
_ABOUT_PAGES: Final = (
    ".include_paths",
    ".include_urls",
    ".dynamic_pages",
    ".depth",
    ".max_path_segments",
    ".max_query_parameters",
    ".max_repeated_segments",
)


def may_read(boundary: Boundary, url: str) -> Decision:
    """Whether a sitemap may be requested: its host and port are inside, and no exclude forbids it.

    The includes of paths and URLs and the limits on pages are not asked: ``/sitemap.xml`` may list
    what lies below ``/docs/``. What may be requested of its list, the boundary decides as for links.
    """
    decision = boundary.decide(url)
    if decision.allowed or not decision.key.endswith(_ABOUT_PAGES):
        return decision
    return Decision(True, file=decision.file)


def speaks_for(origins: frozenset[str] | None, origin: str) -> bool:
    """Whether a sitemap's lastmod counts for the URLs of ``origin`` (``scheme://host:port``).

    ``origins`` are its own and those whose robots.txt name it; None stands for all, as where the
    source file names it. Others could keep pages of foreign hosts from being visited.
    """
    return origins is None or origin in origins
