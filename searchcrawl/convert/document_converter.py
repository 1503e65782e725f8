"""Office files, books, mails and lightweight markup: read by xberg in a worker process; links are not read (C8)."""

from __future__ import annotations

import asyncio
import re
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from searchcrawl.bodies import Body, open_body, read_whole
from searchcrawl.codes import Code
from searchcrawl.convert.archive_reader import MAX_MEMBERS, MAX_RATIO, MAX_UNPACKED_BYTES
from searchcrawl.convert.converter import MAX_FILE_MEMORY_BYTES, Converter, build_page, run_in_process
from searchcrawl.convert.detection import ENCRYPTED
from searchcrawl.convert.mail_text import hide_html, simplify_mail
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import Page

_OPEN_XML: Final = "application/vnd.openxmlformats-officedocument"
_OASIS: Final = "application/vnd.oasis.opendocument"


class Format(NamedTuple):
    """A format: its types, the first of them its own; the ending of its files; and what the library calls it.

    ``is_text``: its files are text in any encoding.
    """

    mime_types: tuple[str, ...]
    ending: str
    known_as: str
    is_text: bool = False


def _office(ending: str, mimetype: str, *others: str, known_as: str = "") -> Format:
    return Format((mimetype.lower(), *others), ending, known_as or mimetype)


def _text(ending: str, mimetype: str, *others: str) -> Format:
    return Format((mimetype, *others), ending, mimetype, is_text=True)


_WORD: Final = "application/vnd.ms-word"
_EXCEL: Final = "application/vnd.ms-excel"
_POWERPOINT: Final = "application/vnd.ms-powerpoint"

FORMATS: Final = (
    _office("doc", "application/msword", "application/vnd.msword", "application/doc"),
    _office("docx", f"{_OPEN_XML}.wordprocessingml.document"),
    _office("dotx", f"{_OPEN_XML}.wordprocessingml.template"),
    _office("docm", f"{_WORD}.document.macroEnabled.12"),
    _office("dotm", f"{_WORD}.template.macroEnabled.12"),
    _office("xls", _EXCEL, "application/msexcel", "application/x-msexcel", "application/xls"),
    _office("xlsx", f"{_OPEN_XML}.spreadsheetml.sheet"),
    _office("xltx", f"{_OPEN_XML}.spreadsheetml.template"),
    _office("xlsm", f"{_EXCEL}.sheet.macroEnabled.12"),
    _office("xltm", f"{_EXCEL}.template.macroEnabled.12"),
    _office("xlsb", f"{_EXCEL}.sheet.binary.macroEnabled.12"),
    _office("ppt", _POWERPOINT, "application/mspowerpoint", "application/powerpoint"),
    _office("pptx", f"{_OPEN_XML}.presentationml.presentation"),
    _office("potx", f"{_OPEN_XML}.presentationml.template"),
    _office("ppsx", f"{_OPEN_XML}.presentationml.slideshow"),
    _office("pptm", f"{_POWERPOINT}.presentation.macroEnabled.12"),
    _office("potm", f"{_POWERPOINT}.template.macroEnabled.12"),
    _office("ppsm", f"{_POWERPOINT}.slideshow.macroEnabled.12", known_as=f"{_OPEN_XML}.presentationml.slideshow"),
    _office("odt", f"{_OASIS}.text"),
    _office("ott", f"{_OASIS}.text-template", known_as=f"{_OASIS}.text"),
    _office("ods", f"{_OASIS}.spreadsheet"),
    _office("ots", f"{_OASIS}.spreadsheet-template", known_as=f"{_OASIS}.spreadsheet"),
    _office("odp", f"{_OASIS}.presentation"),
    _office("otp", f"{_OASIS}.presentation-template", known_as=f"{_OASIS}.presentation"),
    _office("rtf", "application/rtf", "text/rtf", "application/x-rtf", "text/richtext"),
    _office("epub", "application/epub+zip"),
    _office("eml", "message/rfc822", "application/x-mimearchive"),
    _office("msg", "application/vnd.ms-outlook"),
    _office("wpd", "application/vnd.wordperfect", "application/wordperfect"),
    _office("hwp", "application/x-hwp", "application/vnd.hancom.hwp"),
    _office("hwpx", "application/haansofthwpx", "application/hwp+zip", "application/vnd.hancom.hwpx"),
    _office("fb2", "application/x-fictionbook+xml", "application/fb2+xml"),
    _office("docbook", "application/docbook+xml"),
    _office("jats", "application/x-jats+xml", "application/jats+xml"),
    _office("dbf", "application/vnd.dbf", "application/x-dbf", "application/dbase"),
    _text("md", "text/markdown", "text/x-markdown"),
    _text("rst", "text/prs.fallenstein.rst", "text/x-rst"),
    _text("org", "text/org", "text/x-org"),
    _text("adoc", "text/asciidoc", "text/x-asciidoc"),
    _text("typ", "text/vnd.typst"),
    _text("ipynb", "application/x-ipynb+json"),
)

BY_TYPE: Final = MappingProxyType({mimetype: each for each in FORMATS for mimetype in each.mime_types})

#: Types by the ending of a file's name, for bodies whose header and bytes say nothing.
BY_ENDING: Final = MappingProxyType(
    {
        **{each.ending: each.mime_types[0] for each in FORMATS},
        "markdown": "text/markdown",
        "asciidoc": "text/asciidoc",
        "csv": "text/csv",
        "tsv": "text/tab-separated-values",
        "json": "application/json",
        "jsonl": "application/x-ndjson",
        "ndjson": "application/x-ndjson",
        "xml": "application/xml",
        "rss": "application/rss+xml",
        "atom": "application/atom+xml",
        "opml": "text/x-opml",
        "txt": "text/plain",
        "log": "text/plain",
        "yaml": "application/yaml",
        "yml": "application/yaml",
        "toml": "application/toml",
        "htm": "text/html",
        "html": "text/html",
        "pdf": "application/pdf",
    }
)


#: What the library says of a file that passes a limit.
_OVER_LIMIT: Final = ("Security", "ZIP bomb", "exceeds limit", "limit exceeded", "Nesting too deep", "out of memory")
#: The library unpacks no larger part of a .docx, whatever it is told.
MAX_DOCX_PART_BYTES: Final = 100 << 20
#: More than a file within all other limits has.
_UNLIMITED: Final = 1 << 31
#: What the library adds to headings of office files.
_STYLE: Final = re.compile(r" \(style_name: [^()\n]{1,80}\)$", re.MULTILINE)
#: Formats whose subject is their title.
_MAIL: Final = "message/rfc822"
_MESSAGE: Final = "application/vnd.ms-outlook"
_MAILS: Final = frozenset({_MAIL, _MESSAGE})
_OLD_OFFICE: Final = frozenset({"application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"})
_RTF: Final = "application/rtf"
_DOCBOOK: Final = "application/docbook+xml"
_MAX_HEADING_CHARS: Final = 150


def convert_document(body: Body, context: ConversionContext) -> Page:
    """The text of a file, and title, author, subject and dates that it has of itself.

    Raises ConversionFailed: 903 for what is broken or needs a password, 904 beyond a limit.
    """
    if context.mimetype == ENCRYPTED:
        raise ConversionFailed("it needs a password", code=Code.CONVERSION_FAILED)
    form = BY_TYPE.get(context.mimetype)
    if form is None:
        raise ConversionFailed(f"no format of {context.mimetype}", code=Code.CONVERSION_FAILED)
    charset = ""
    if form.is_text:
        text, charset = context.decode(read_whole(body), markup=False)
        body = text.encode("utf-8", "replace")
    elif form is BY_TYPE[_MAIL]:
        body = simplify_mail(read_whole(body), context.default_charset)
    elif form is BY_TYPE[_MESSAGE]:
        body = hide_html(read_whole(body))
    found = asyncio.run(_extract(body, form))
    text = found.content if form.is_text else _STYLE.sub("", found.content)
    return build_page(context, text=text, charset=charset, **_read_fields(found.metadata, text, body, form))


async def _extract(body: Body, form: Format) -> Any:
    # The process of the crawl itself never calls this function, so it never loads the library.
    import xberg  # noqa: PLC0415

    # The time and memory of this process bound all else; what is nested deeper would overflow the library's stack.
    limits = xberg.SecurityLimits(
        max_archive_size=MAX_UNPACKED_BYTES,
        max_compression_ratio=MAX_RATIO,
        max_files_in_archive=MAX_MEMBERS,
        max_content_size=MAX_UNPACKED_BYTES,
        max_entity_length=MAX_UNPACKED_BYTES,
        max_iterations=_UNLIMITED,
        max_table_cells=_UNLIMITED,
    )
    # Nothing is recognised in pictures, and nothing is kept on the disk.
    config = xberg.ExtractionConfig(
        use_cache=False, disable_ocr=True, enable_quality_processing=False, security_limits=limits
    )
    if isinstance(body, bytes):
        given = xberg.ExtractInput(kind="bytes", bytes=body, mime_type=form.known_as)
    else:
        # It copies bytes that it is given several times.
        given = xberg.ExtractInput(kind="uri", uri=body.path, mime_type=form.known_as)
    try:
        result = await xberg.extract(given, config)
    except MemoryError:
        raise
    except Exception as error:
        raise _build_error(form.ending, str(error)) from error
    if result.errors or not result.results:
        raise _build_error(form.ending, result.errors[0].message if result.errors else "nothing was read")
    return result.results[0]


def _build_error(name: str, message: str) -> ConversionFailed:
    over = any(sign in message for sign in _OVER_LIMIT)
    line = " ".join(message.split())[:300]
    return ConversionFailed(f"{name}: {line}", code=Code.CONVERSION_LIMIT if over else Code.CONVERSION_FAILED)


def _read_fields(about: Any, text: str, body: Body, form: Format) -> dict[str, Any]:
    """The arguments of ``build_page`` for what a file says of itself."""
    kind = form.mime_types[0]
    own = Properties()
    if kind in _OLD_OFFICE:
        own = read_ole_properties(body)
    elif kind == _RTF:
        own = read_rtf_properties(body)
    title, author, subject = own.title, own.author, own.subject
    if kind != _RTF:
        title, subject = title or about.title or "", subject or about.subject or ""
        author = author or ", ".join(about.authors or ()) or about.created_by or ""
    if kind in _MAILS:
        title, subject = title or subject, ""
    elif kind == _DOCBOOK:
        # The library writes a summary of its own there.
        subject = ""
    elif form.is_text and not title:
        title = _find_heading(text)
    values = {
        "keywords": ", ".join(about.keywords or ()),
        "created": about.created_at or own.created,
        "modified": about.modified_at or own.modified,
    }
    return {"title": title, "author": author, "subject": subject, "values": values}


def _find_heading(text: str) -> str:
    """The first line of a text, if it looks like a heading."""
    line = text[:_MAX_HEADING_CHARS].lstrip().partition("\n")[0].rstrip()
    return "" if len(line) >= _MAX_HEADING_CHARS - 1 or line.endswith((".", ":", ",", ";")) else line


DOCUMENTS: Final = Converter(
    name="documents",
    is_kept=True,
    mime_types=(*(each for form in FORMATS if not form.is_text for each in form.mime_types), ENCRYPTED),
    convert=convert_document,
    convert_large=convert_document,
    choose_place=run_in_process,
    max_memory_bytes=MAX_FILE_MEMORY_BYTES,
)
MARKUP: Final = Converter(
    name="markup",
    is_kept=True,
    mime_types=tuple(each for form in FORMATS if form.is_text for each in form.mime_types),
    convert=convert_document,
    choose_place=run_in_process,
    is_text=True,
    max_memory_bytes=MAX_FILE_MEMORY_BYTES,
)


_HEAD_BYTES: Final = 65_536
#: The texts of the group about the document.
_RTF_VALUE: Final = re.compile(rb"\{\\(title|author|subject)\s([^{}]{1,4096})\}")
_RTF_PAGE: Final = re.compile(rb"\\ansicpg([0-9]{1,5})")
#: A character by its number, with one for programs that do not know it; bytes; and other words of the format.
_RTF_NUMBER: Final = re.compile(r"\\u(-?[0-9]{1,5}) ?(?:\\'[0-9a-fA-F]{2}|\?)?")
_RTF_BYTES: Final = re.compile(r"(?:\\'[0-9a-fA-F]{2})+")
_RTF_WORD: Final = re.compile(r"\\[a-zA-Z]{1,32}-?[0-9]{0,10} ?")
_UTF_8: Final = 65_001


class Properties(NamedTuple):
    """The values; dates are in ISO 8601. What a file does not say is empty."""

    title: str = ""
    author: str = ""
    subject: str = ""
    created: str = ""
    modified: str = ""


def read_ole_properties(body: Body) -> Properties:
    """The summary of an OLE2 file; empty where it has none, or none that can be read."""
    # The process of the crawl itself never calls this function, so it never loads the library.
    import olefile  # noqa: PLC0415

    try:
        with olefile.OleFileIO(open_body(body)) as file:
            about = file.get_metadata()
    except (OSError, ValueError, IndexError, TypeError, KeyError, EOFError):
        return Properties()
    # The number is stored with a sign.
    page = (about.codepage or 1252) & 0xFFFF
    codec = "utf-8" if page == _UTF_8 else f"cp{page}"
    texts = [_decode(each, codec) for each in (about.title, about.author, about.subject)]
    dates = [each.isoformat() if each else "" for each in (about.create_time, about.last_saved_time)]
    return Properties(*texts, *dates)


def _decode(value: bytes | str | None, codec: str) -> str:
    if not isinstance(value, bytes):
        return value or ""
    try:
        return value.decode(codec, "replace").strip("\0")
    except LookupError:
        return value.decode("windows-1252", "replace").strip("\0")


def read_rtf_properties(body: Body) -> Properties:
    """Title, author and subject in the beginning of an RTF file."""
    head = body[:_HEAD_BYTES]
    page = _RTF_PAGE.search(head)
    codec = f"cp{int(page[1])}" if page else "cp1252"
    found = {name.decode(): _decode_rtf(text.decode("latin-1"), codec) for name, text in _RTF_VALUE.findall(head)}
    return Properties(**found)


def _decode_rtf(text: str, codec: str) -> str:
    text = _RTF_NUMBER.sub(lambda match: chr(int(match[1]) % 65_536), text)
    text = _RTF_BYTES.sub(lambda match: _decode(bytes.fromhex(match[0].replace("\\'", "")), codec), text)
    # The numbers are those of UTF-16.
    return _RTF_WORD.sub("", text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
