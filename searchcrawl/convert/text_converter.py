"""Plain text: decoded and cleaned, no links."""

from __future__ import annotations

from typing import Final

from searchcrawl import clock
from searchcrawl.convert.converter import ConversionContext, Converter, RunsIn
from searchcrawl.html.encoding import decode_text
from searchcrawl.html.file_name import build_title
from searchcrawl.html.metas import read_robots_directives
from searchcrawl.html.page_text import collapse_lines
from searchcrawl.items import Page

#: Text that takes seconds to split and join would also stop the reactor from a thread, because only one thread runs at
#: a time.
_MAX_THREAD_BYTES: Final = 1_000_000


def convert_text(body: bytes, context: ConversionContext) -> Page:
    """The page of a text file. Its title is the name of the file; an empty file has none."""
    text, charset = decode_text(body, content_type=context.content_type, default_charset=context.default_charset)
    robots = read_robots_directives(
        metas=(), headers=context.robots_tags, user_agent=context.user_agent, now=clock.now()
    )
    text = collapse_lines(text)
    return Page(
        title=build_title(context.headers, context.url) if text else "",
        text=text,
        charset=charset,
        noindex=robots.noindex,
        noindex_by_header=robots.noindex_by_header,
        nofollow=robots.nofollow,
        nofollow_by_header=robots.nofollow_by_header,
        unavailable_ms=robots.unavailable_ms,
    )


def _choose_place(body: bytes) -> RunsIn:
    return RunsIn.THREAD if len(body) <= _MAX_THREAD_BYTES else RunsIn.PROCESS


TEXT: Final = Converter(
    name="text",
    mime_types=("text/plain", "text/markdown", "text/x-markdown", "text/csv"),
    convert=convert_text,
    choose_place=_choose_place,
    is_text=True,
)
