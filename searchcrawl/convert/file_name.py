"""The name of a file: the one that the server gives it, or the last segment of its URL (RFC 6266)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from searchcrawl.html.content_disposition import parse_disposition
from searchcrawl.html.page_text import collapse
from searchcrawl.urls import parse

_SEPARATOR: Final = re.compile(r"[/\\]")


def file_name_of(url: str) -> str:
    """The last segment of a URL's path, readable; its host where the path ends in a slash."""
    return _segment(url) or parse(url).host


def sent_name(headers: tuple[tuple[bytes, bytes], ...]) -> str:
    """The name that Content-Disposition gives the file, without folders; empty where it gives none."""
    for name, value in headers:
        if name.lower() == b"content-disposition":
            sent = parse_disposition(_text(value)).file_name
            return collapse(_SEPARATOR.split(sent)[-1]) if sent else ""
    return ""


def name_of(headers: tuple[tuple[bytes, bytes], ...], url: str) -> str:
    """The name of a file as rules see it: the one sent, or the last segment of ``url``; a folder has none."""
    return sent_name(headers) or _segment(url)


def _segment(url: str) -> str:
    return collapse(unquote(parse(url).path.rpartition("/")[2], errors="replace"))


def _text(value: bytes) -> str:
    """Servers send names in UTF-8, though a header is ISO 8859-1."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
