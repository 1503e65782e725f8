"""The formats that a library reads in a worker process, and the types and names by which a body is known to have one."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple

_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
_OASIS: Final = "application/vnd.oasis.opendocument"


class Format(NamedTuple):
    """A format: its types, the first of them its own; the endings of its files; and what the library calls it.

    ``is_text``: its files are text in any encoding.
    """

    mime_types: tuple[str, ...]
    endings: tuple[str, ...]
    known_as: str
    is_text: bool = False


def _office(ending: str, mimetype: str, *others: str, known_as: str = "") -> Format:
    return Format((mimetype.lower(), *others), (ending,), known_as or mimetype)


def _text(ending: str, mimetype: str, *others: str) -> Format:
    return Format((mimetype, *others), (ending,), mimetype, is_text=True)


_WORD: Final = "application/vnd.ms-word"
_EXCEL: Final = "application/vnd.ms-excel"
_POWERPOINT: Final = "application/vnd.ms-powerpoint"

FORMATS: Final = (
    _office("doc", "application/msword", "application/vnd.msword", "application/doc"),
    _office("docx", f"{_OFFICE}.wordprocessingml.document"),
    _office("dotx", f"{_OFFICE}.wordprocessingml.template"),
    _office("docm", f"{_WORD}.document.macroEnabled.12"),
    _office("dotm", f"{_WORD}.template.macroEnabled.12"),
    _office("xls", _EXCEL, "application/msexcel", "application/x-msexcel", "application/xls"),
    _office("xlsx", f"{_OFFICE}.spreadsheetml.sheet"),
    _office("xltx", f"{_OFFICE}.spreadsheetml.template"),
    _office("xlsm", f"{_EXCEL}.sheet.macroEnabled.12"),
    _office("xltm", f"{_EXCEL}.template.macroEnabled.12"),
    _office("xlsb", f"{_EXCEL}.sheet.binary.macroEnabled.12"),
    _office("ppt", _POWERPOINT, "application/mspowerpoint", "application/powerpoint"),
    _office("pptx", f"{_OFFICE}.presentationml.presentation"),
    _office("potx", f"{_OFFICE}.presentationml.template"),
    _office("ppsx", f"{_OFFICE}.presentationml.slideshow"),
    _office("pptm", f"{_POWERPOINT}.presentation.macroEnabled.12"),
    _office("potm", f"{_POWERPOINT}.template.macroEnabled.12"),
    _office("ppsm", f"{_POWERPOINT}.slideshow.macroEnabled.12", known_as=f"{_OFFICE}.presentationml.slideshow"),
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
        **{ending: each.mime_types[0] for each in FORMATS for ending in each.endings},
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
