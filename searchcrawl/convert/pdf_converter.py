"""PDF: read by pypdfium2 in a worker process; links are not read (C8)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.convert.converter import ConversionContext, Converter, RunsIn
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.file_name import build_title
from searchcrawl.html.metas import read_robots_directives
from searchcrawl.html.page_text import collapse, collapse_lines
from searchcrawl.items import Page

MAX_PAGES: Final = 10_000
MAX_CHARACTERS: Final = 50_000_000
_RECOGNISED_BYTES: Final = 1_024
#: PDFium's marks for a hyphen at the end of a line that isn't part of the word.
_SOFT_HYPHEN: Final = re.compile("[\x02\ufffe](?:\r?\n)?")


def convert_pdf(body: bytes, context: ConversionContext) -> Page:
    """The text of all pages, and title, author and subject of the document's information.

    Without a title, the name of the file is the title. Raises ConversionFailed: 903 for what is broken or encrypted,
    904 beyond MAX_PAGES or MAX_CHARACTERS.
    """
    # The process of the crawl itself never calls this function, so it never loads the library.
    import pypdfium2  # noqa: PLC0415

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        raise ConversionFailed(f"PDF: {error}", code=Code.CONVERSION_FAILED) from error
    try:
        if len(document) > MAX_PAGES:
            raise ConversionFailed(f"PDF of {len(document)} pages", code=Code.CONVERSION_LIMIT)
        information: dict[str, str] = document.get_metadata_dict()
        text = collapse_lines(_SOFT_HYPHEN.sub("", "\n".join(_read_pages(document))))
    except pypdfium2.PdfiumError as error:
        raise ConversionFailed(f"PDF: {error}", code=Code.CONVERSION_FAILED) from error
    finally:
        document.close()
    robots = read_robots_directives(
        metas=(), headers=context.robots_tags, user_agent=context.user_agent, now=clock.now()
    )
    return Page(
        title=collapse(information.get("Title", "")) or build_title(context.headers, context.url),
        text=text,
        author=collapse(information.get("Author", "")),
        subject=collapse(information.get("Subject", "")),
        noindex=robots.noindex,
        noindex_by_header=robots.noindex_by_header,
        nofollow=robots.nofollow,
        nofollow_by_header=robots.nofollow_by_header,
        unavailable_ms=robots.unavailable_ms,
    )


def _read_pages(document: Any) -> Iterator[str]:
    """The text of each page, in order."""
    characters = 0
    for page in document:
        textpage = page.get_textpage()
        text: str = textpage.get_text_bounded()
        textpage.close()
        page.close()
        characters += len(text)
        if characters > MAX_CHARACTERS:
            raise ConversionFailed(f"PDF of over {MAX_CHARACTERS} characters", code=Code.CONVERSION_LIMIT)
        yield text


def _choose_place(body: bytes) -> RunsIn:
    return RunsIn.PROCESS


def _recognise(body: bytes) -> bool:
    return b"%PDF-" in body[:_RECOGNISED_BYTES]


PDF: Final = Converter(
    name="pdf",
    mime_types=("application/pdf", "application/x-pdf"),
    convert=convert_pdf,
    choose_place=_choose_place,
    recognise=_recognise,
)
