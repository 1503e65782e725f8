"""What the headers of an answer say about how its bytes are to be read, where that is not what the bytes say (D2, C9)."""

from __future__ import annotations

import re
from typing import Final

from searchcrawl.html.content_type import join_content_type, parse_content_type
from searchcrawl.html.encoding import find_encoding, prescan
from searchcrawl.items import Headers

#: A tag of a language, in lower case.
LANGUAGE_TAG: Final = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,8})*")
_PAGE: Final = "text/html"
#: Types that are text, so that the same bytes may be sent as another one; what others are, the bytes tell.
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/x-", "application/ld+json")


def read_content_language(headers: Headers) -> str:
    """The one language of Content-Language; several are the languages of the readers, not of the text."""
    values = [value for name, value in headers if name.lower() == b"content-language"]
    if not values:
        return ""
    tag = b",".join(values).decode("latin-1").strip().replace("_", "-").lower()
    return tag if LANGUAGE_TAG.fullmatch(tag) else ""


def describe_reading(body: bytes, headers: Headers, mimetype: str) -> str:
    """How the headers make the bytes be read, in words that are compared; empty where a page is read as its bytes say."""
    kind = mimetype if mimetype != _PAGE and (mimetype.startswith(_TEXTS) or mimetype.endswith("+xml")) else ""
    parts = (kind, _find_charset(body, headers), read_content_language(headers))
    return " ".join(f"{name}={part}" for name, part in zip(("type", "charset", "language"), parts, strict=True) if part)


def _find_charset(body: bytes, headers: Headers) -> str:
    """The encoding of the header, if another one may be taken without it."""
    label = parse_content_type(join_content_type(headers)).charset
    declared = find_encoding(label) if label is not None else None
    if declared is None or (body.isascii() and b"\x1b" not in body):
        return ""
    named = prescan(body)
    if named is not None:
        return "" if named == declared else declared
    return "" if declared == "utf-8" and _is_utf8(body) else declared


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
