"""Ends the download of a body whose type nothing reads (908): the rest of it would be thrown away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from searchcrawl.items import Headers

#: So much of a body tells its type, and is kept of one that nothing reads.
BEGINNING_BYTES: Final = 8_192
#: A body that is no longer costs less than a new connection.
HARMLESS_BYTES: Final = 64 * 1024
_CODING: Final = b"content-encoding"


class UnreadBodies:
    """Which bodies need not come whole; ``is_unread`` says whether nothing reads one by its beginning, headers and URL."""

    def __init__(self, is_unread: Callable[[bytes, Headers, str], bool]) -> None:
        self._is_unread = is_unread

    def has(self, url: str, headers: Headers, beginning: bytes) -> bool:
        """Whether what comes after ``beginning`` changes nothing; never where a coding hides the type."""
        is_plain = all(name.lower() != _CODING for name, _ in headers)
        return is_plain and self._is_unread(beginning, headers, url)
