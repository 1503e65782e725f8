"""PDF: read by pypdfium2 in a worker process; links are not read (C8)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from searchcrawl.bodies import Body, open_body
from searchcrawl.codes import Code
from searchcrawl.convert.converter import MAX_FILE_MEMORY_BYTES, Converter, build_page, run_in_process
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.page_text import MAX_CHARACTERS
from searchcrawl.items import Page

MAX_PAGES: Final = 10_000
_RECOGNISED_BYTES: Final = 1_024
#: PDFium's marks for a hyphen at the end of a line that isn't part of the word.
_SOFT_HYPHEN: Final = re.compile("[\x02\ufffe](?:\r?\n)?")
#: The dates of a document's information, by the name under which a source may map them.
_DATES: Final = {"created": "CreationDate", "modified": "ModDate"}
_DATE: Final = re.compile(
    r"(?:D:)?([0-9]{4})([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?(?:([+-])([0-9]{2})'?([0-9]{2})?)?",
    re.ASCII,
)


def convert_pdf(body: Body, context: ConversionContext) -> Page:
    """The text of all pages, and title, author and subject of the document's information.

    Without a title, the name of the file is the title. Raises ConversionFailed: 903 for what is broken or encrypted,
    904 beyond MAX_PAGES or MAX_CHARACTERS.
    """
    # The process of the crawl itself never calls this function, so it never loads the library.
    import pypdfium2  # noqa: PLC0415

    try:
        document = pypdfium2.PdfDocument(body if isinstance(body, bytes) else open_body(body), autoclose=True)
    except pypdfium2.PdfiumError as error:
        raise ConversionFailed(f"PDF: {error}", code=Code.CONVERSION_FAILED) from error
    try:
        if len(document) > MAX_PAGES:
            raise ConversionFailed(f"PDF of {len(document)} pages", code=Code.CONVERSION_LIMIT)
        information: dict[str, str] = document.get_metadata_dict()
        text = _SOFT_HYPHEN.sub("", "\n".join(_read_pages(document)))
    except pypdfium2.PdfiumError as error:
        raise ConversionFailed(f"PDF: {error}", code=Code.CONVERSION_FAILED) from error
    finally:
        document.close()
    dates = {name: _write_date(information.get(key, "")) for name, key in _DATES.items()}
    return build_page(
        context,
        text=text,
        title=information.get("Title", ""),
        author=information.get("Author", ""),
        subject=information.get("Subject", ""),
        values={"keywords": information.get("Keywords", ""), **dates},
    )


def _write_date(text: str) -> str:
    """A date of a PDF (``D:20240305101500+01'00'``) in ISO 8601; empty where it is none."""
    found = _DATE.match(text)
    if found is None:
        return ""
    year, month, day, hour, minute, second, sign, hours, minutes = found.groups()
    zone = f"{sign}{hours}:{minutes or '00'}" if sign else "Z"
    return f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone}"


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


PDF: Final = Converter(
    name="pdf",
    is_kept=True,
    mime_types=("application/pdf", "application/x-pdf"),
    convert=convert_pdf,
    convert_large=convert_pdf,
    choose_place=run_in_process,
    recognise=lambda body: b"%PDF-" in body[:_RECOGNISED_BYTES],
    max_memory_bytes=MAX_FILE_MEMORY_BYTES,
)
