"""HTML: ordinary pages are parsed in the reactor, large ones in a worker process (X-D12)."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from typing import Final

from searchcrawl.bodies import Body
from searchcrawl.convert.converter import Converter, RunsIn
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import Page

#: Bodies beyond this are parsed in a worker process.
_OVERSIZED_BYTES: Final = 200_000
#: So are bodies with more tags. Fewer tags take less than a second, however they are nested.
_OVERSIZED_TAGS: Final = 20_000
_RECOGNISED_BYTES: Final = 8_192
_BLANKS: Final = re.compile(rb"\s*+")
_FIRST_TAG: Final = re.compile(rb"<(?:!doctype\s++html|(?:html|head|body|title)[\s>])", re.IGNORECASE)


def convert_html(body: bytes, context: ConversionContext) -> Page:
    """The page of an HTML body; never raises."""
    # A run in which no page changed, or is due, does without the parser.
    from searchcrawl.html.page import parse_html  # noqa: PLC0415

    return parse_html(body, context)


def convert_html_again(body: bytes, context: ConversionContext, text: str) -> Page | None:
    """The page of an HTML body with this text, without links; None where the whole body has to be parsed."""
    from searchcrawl.html.page import parse_head  # noqa: PLC0415  # as above

    return parse_head(body, context, text)


def read_html_text(body: bytes, content_type: str, *, default_charset: str = "utf-8") -> str:
    """The text of HTML that is a part of a document of another format."""
    headers = ((b"Content-Type", content_type.encode("latin-1", "replace")),)
    context = ConversionContext(url="http://part.invalid/", headers=headers, default_charset=default_charset)
    return convert_html(body, context).text


def _choose_place(body: Body) -> RunsIn:
    size = len(body)
    if size > _OVERSIZED_BYTES or not isinstance(body, bytes):
        return RunsIn.PROCESS
    oversized = size > 3 * _OVERSIZED_TAGS and body.count(b"<") > _OVERSIZED_TAGS
    return RunsIn.PROCESS if oversized else RunsIn.REACTOR


def _recognise(body: Body) -> bool:
    """Whether a body begins with a tag of a page, after comments and XML declarations."""
    head = body[:_RECOGNISED_BYTES].removeprefix(BOM_UTF8)
    position = 0
    while True:
        position = _BLANKS.match(head, position).end()  # type: ignore[union-attr]  # it matches everywhere
        if head.startswith(b"<!--", position):
            # The dashes of a comment's beginning may be those of its end.
            end = head.find(b"-->", position + 2) + len(b"-->")
        elif head[position : position + 5].lower() == b"<?xml":
            end = head.find(b">", position) + len(b">")
        else:
            return _FIRST_TAG.match(head, position) is not None
        if end <= position:
            return False
        position = end


HTML: Final = Converter(
    name="html",
    mime_types=("text/html", "application/xhtml+xml"),
    convert=convert_html,
    choose_place=_choose_place,
    recognise=_recognise,
    is_text=True,
    has_links=True,
    convert_again=convert_html_again,
)
