"""The title of what has none: the name of its file."""

from __future__ import annotations

from urllib.parse import unquote

from searchcrawl.html.page_text import collapse
from searchcrawl.urls import parse


def file_name_of(url: str) -> str:
    """The last segment of a URL's path, readable; its host where the path ends in a slash."""
    parsed = parse(url)
    name = parsed.path.rpartition("/")[2]
    return collapse(unquote(name, errors="replace")) or parsed.host
