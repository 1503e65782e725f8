"""Plain text: decoded and cleaned, no links."""

from __future__ import annotations

from typing import Final

from searchcrawl.convert.build_page import build_page
from searchcrawl.convert.converter import ConversionContext, Converter, run_in_thread
from searchcrawl.html.encoding import decode_text
from searchcrawl.items import Page


def convert_text(body: bytes, context: ConversionContext) -> Page:
    """The page of a text file. Its title is the name of the file; an empty file has none."""
    text, charset = decode_text(body, content_type=context.content_type, default_charset=context.default_charset)
    return build_page(context, text=text, charset=charset)


TEXT: Final = Converter(
    name="text",
    mime_types=("text/plain", "application/yaml", "text/yaml", "application/toml"),
    convert=convert_text,
    choose_place=run_in_thread,
    is_text=True,
)
