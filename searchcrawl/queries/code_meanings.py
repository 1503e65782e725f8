"""What became of a URL, in words: each code that a row can have (interface.md §3; C7, J2)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from searchcrawl.codes import Code

_OURS: Final[Mapping[int, str]] = {
    Code.NOT_FETCHED: "not yet fetched",
    Code.TIMEOUT: "the answer took too long",
    Code.CONVERSION_FAILED: "it could not be converted",
    Code.CONVERSION_LIMIT: "its conversion passed a limit of memory, time or size",
    Code.IO_ERROR: "the connection broke",
    Code.CONNECTION_REFUSED: "the host refused the connection",
    Code.ADDRESS_NOT_FOUND: "its host has no address, or none that may be reached",
    Code.NO_CONVERTER: "nothing reads files of its type",
    Code.DUPLICATE: "a copy of another page",
    Code.DUPLICATE_IN_RUN: "a copy of another page of the same run",
    Code.EMPTY: "an empty document",
    Code.ROBOTS: "robots.txt forbids it",
    Code.NOT_INDEXED: "fetched, and not to be indexed",
    Code.META_REFRESH: "it sends its readers to another URL",
    Code.MOVED: "it moved for good to another URL",
    Code.OUTSIDE_BOUNDARY: "outside the boundary",
    Code.DISPLAY_URL_CLASH: "another page is shown with the same URL",
    Code.READ_ERROR: "its body came incomplete or cannot be decoded",
    Code.LOGIN_FAILED: "the login failed",
    Code.TOO_LARGE: "it is larger than fetch.max_bytes",
    Code.TRAP_LIMIT: "beyond a limit that ends traps",
    Code.CERTIFICATE: "the host's certificate is refused",
    Code.REDIRECT_LOOP: "its redirects lead in a circle, or are too many",
    Code.NOT_CANONICAL: "it names another URL as the canonical one",
    Code.SENTINEL: "it looks like the host's answer to any URL, or like its login form",
    Code.NO_LOCATION: "a redirect without a usable Location",
    Code.MALFORMED_URL: "malformed or too long",
    Code.HEADER_ERROR: "the header of the answer is broken",
    Code.BINARY_AS_TEXT: "binary data sent as text",
    Code.INVALID_DISPLAY_URL: "it cannot be shown with a valid URL",
}


def meaning_of(code: int) -> str:
    """``404 Not Found``, or a code of ours with its meaning: ``909, a copy of another page``."""
    if code in _OURS:
        return f"{code}, {_OURS[code]}" if code else _OURS[code]
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return f"{code}, a status that HTTP does not name"
