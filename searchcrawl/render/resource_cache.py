"""Scripts and styles that pages of a source share: each is requested once in ten minutes, as a browser's cache would.

What is kept is the answer to one request, with all its headers and of pages of one origin. So nobody gets what another asker was
given; the browser decides, from the same headers, who may read it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from searchcrawl import clock
from searchcrawl.render.browser_request import DecodedAnswer

_KINDS: Final = frozenset({"script", "stylesheet", "unknown"})
#: What an answer may be of which nothing says what it is for: on plain http data may look like a script.
SHARED_TYPES: Final = ("text/javascript", "application/javascript", "application/x-javascript", "text/css")
_SECONDS: Final = 600.0
_MAX_BYTES: Final = 32 << 20
_MAX_ENTRY_BYTES: Final = 4 << 20
#: It names the page, not its origin; an answer that varies by it is not kept.
_NOT_OF_KEY: Final = "referer"
#: Cache-Control and Vary are read so far.
_READ_BYTES: Final = 1000


class Key(NamedTuple):
    """What tells one request from another: the origin of the page, the URL, the headers, and whether credentials of the crawl go along."""

    page_origin: str
    url: str
    headers: tuple[tuple[str, str], ...]
    has_credentials: bool


def build_key(page_origin: str, url: str, headers: Sequence[tuple[str, str]], *, has_credentials: bool) -> Key:
    """The key of a request; ``headers`` are those that it is sent with, in lower case."""
    kept = tuple(sorted(pair for pair in headers if pair[0] != _NOT_OF_KEY))
    return Key(page_origin, url, kept, has_credentials)


class ResourceCache:
    """Keeps at most 32 MB; the one that was used longest ago goes first. ``seconds`` is the longest time for each."""

    def __init__(self, *, max_bytes: int = _MAX_BYTES, seconds: float = _SECONDS) -> None:
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._bytes = 0
        self._kept: OrderedDict[Key, tuple[float, DecodedAnswer]] = OrderedDict()

    def find(self, key: Key, kind: str) -> DecodedAnswer | None:
        """The answer that is kept for a request; None if there is none."""
        found = self._kept.get(key)
        if found is None or kind not in _KINDS:
            return None
        if found[0] <= clock.monotonic():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return found[1]

    def keep(self, key: Key, kind: str, answer: DecodedAnswer) -> None:
        """Keeps an answer, where its kind, status and Cache-Control (RFC 9111) allow it."""
        size = len(answer.body)
        headers = dict(answer.headers)
        if kind not in _KINDS or answer.status != 200 or size > min(_MAX_ENTRY_BYTES, self._max_bytes):
            return
        if kind == "unknown" and not headers.get("content-type", "").lower().startswith(SHARED_TYPES):
            return
        seconds = 0.0 if "set-cookie" in headers else min(self._seconds, _read_seconds(headers, self._seconds))
        if seconds <= 0:
            return
        if key in self._kept:
            self._drop(key)
        self._kept[key] = clock.monotonic() + seconds, answer
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        self._bytes -= len(self._kept.pop(key)[1].body)


def _read_seconds(headers: Mapping[str, str], default: float) -> float:
    """How long an answer may be used without a question; 0: not at all."""
    varies = {name.strip().lower() for name in headers.get("vary", "")[:_READ_BYTES].split(",")}
    if varies & {_NOT_OF_KEY, "*"}:
        return 0.0
    seconds = default
    for part in headers.get("cache-control", "")[:_READ_BYTES].lower().split(","):
        name, _, value = part.strip().partition("=")
        if name in {"no-store", "no-cache"}:
            return 0.0
        if name == "max-age" and value.strip('"').isdecimal():
            seconds = float(value.strip('"')[:9])
    return seconds
