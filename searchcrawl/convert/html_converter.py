"""HTML: ordinary pages are parsed in the reactor, large ones in a worker process (X-D12)."""

from __future__ import annotations

import re
from typing import Final

from searchcrawl.convert.converter import ConversionContext, Converter, RunsIn
from searchcrawl.html.page import parse_html
from searchcrawl.items import Page

#: Bodies beyond this are parsed in a worker process.
_OVERSIZED_BYTES: Final = 1_000_000
#: So are bodies with more tags. Fewer tags take less than a second, however they are nested.
_OVERSIZED_TAGS: Final = 20_000
_RECOGNISED_BYTES: Final = 8_192
_BEGINNING: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.{0,4000}?-->\s*|<\?xml[^>]{0,400}>\s*)*<(?:!doctype\s+html|(?:html|head|body|title)[\s>])",
    re.IGNORECASE | re.DOTALL,
)


def convert_html(body: bytes, context: ConversionContext) -> Page:
    """The page of an HTML body; never raises."""
    return parse_html(
        body,
        url=context.url,
        content_type=context.content_type,
        default_charset=context.default_charset,
        robots_headers=context.robots_tags,
        user_agent=context.user_agent,
        attribute_origins=context.attribute_origins,
    )


def _choose_place(body: bytes) -> RunsIn:
    size = len(body)
    oversized = size > _OVERSIZED_BYTES or (size > 3 * _OVERSIZED_TAGS and body.count(b"<") > _OVERSIZED_TAGS)
    return RunsIn.PROCESS if oversized else RunsIn.REACTOR


def _recognise(body: bytes) -> bool:
    return _BEGINNING.match(body[:_RECOGNISED_BYTES]) is not None


HTML: Final = Converter(
    name="html",
    mime_types=("text/html", "application/xhtml+xml"),
    convert=convert_html,
    choose_place=_choose_place,
    recognise=_recognise,
    is_text=True,
    has_links=True,
)
