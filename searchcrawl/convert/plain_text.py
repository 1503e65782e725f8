"""Plain text to a page: decoded and cleaned, no links."""

from __future__ import annotations

from collections.abc import Sequence

from searchcrawl import clock
from searchcrawl.convert.file_name import file_name_of
from searchcrawl.html.encoding import decode_text
from searchcrawl.html.page_text import collapse_lines
from searchcrawl.html.robots_meta import robots_directives
from searchcrawl.items import Page


def convert_text(
    body: bytes,
    *,
    url: str,
    content_type: str,
    default_charset: str,
    robots_headers: Sequence[str],
    user_agent: str,
    name: str = "",
) -> Page:
    """The page of a text file; arguments as of ``html.page.parse_html``. The title is the file's
    ``name`` or, where that is empty, the one in its URL.
    """
    text, charset = decode_text(body, content_type=content_type, default_charset=default_charset)
    robots = robots_directives(metas=(), headers=robots_headers, user_agent=user_agent, now=clock.now())
    text = collapse_lines(text)
    return Page(
        title=(name or file_name_of(url)) if text else "",
        text=text,
        charset=charset,
        noindex=robots.noindex,
        nofollow=robots.nofollow,
        unavailable_ms=robots.unavailable_ms,
    )
