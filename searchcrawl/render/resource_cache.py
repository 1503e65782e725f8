"""Scripts and styles that pages of a source share: each is requested once in ten minutes, as a browser's cache would."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from searchcrawl import clock
from searchcrawl.render.wall import Answer

_KINDS: Final = frozenset({"script", "stylesheet"})
_SECONDS: Final = 600.0
_MAX_BYTES: Final = 32 << 20
_MAX_ENTRY_BYTES: Final = 4 << 20
#: What of a request an answer may depend on here; an answer that varies by anything else is not kept.
_SAME_FOR_ALL: Final = frozenset({"accept-encoding", "user-agent", "accept", "accept-language"})
#: Cache-Control is read so far.
_READ_BYTES: Final = 1000


class ResourceCache:
    """Keeps at most 32 MB; the one that was used longest ago goes first. ``seconds`` is the longest time for each."""

    def __init__(self, *, max_bytes: int = _MAX_BYTES, seconds: float = _SECONDS) -> None:
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._bytes = 0
        self._kept: OrderedDict[tuple[str, str], tuple[float, Answer]] = OrderedDict()

    def find(self, url: str, kind: str, headers: Mapping[str, str]) -> Answer | None:
        """The answer that is kept for a request; None if there is none."""
        key = url, headers.get("origin", "")
        found = self._kept.get(key)
        if found is None or kind not in _KINDS:
            return None
        if found[0] <= clock.monotonic():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return found[1]

    def keep(self, url: str, kind: str, headers: Mapping[str, str], answer: Answer) -> None:
        """Keeps an answer, where its kind, status and Cache-Control (RFC 9111) allow it."""
        size = len(answer.body)
        if kind not in _KINDS or answer.status != 200 or size > min(_MAX_ENTRY_BYTES, self._max_bytes):
            return
        seconds = min(self._seconds, _read_seconds(dict(answer.headers), self._seconds))
        if seconds <= 0:
            return
        key = url, headers.get("origin", "")
        if key in self._kept:
            self._drop(key)
        self._kept[key] = clock.monotonic() + seconds, answer
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, str]) -> None:
        self._bytes -= len(self._kept.pop(key)[1].body)


def _read_seconds(headers: Mapping[str, str], default: float) -> float:
    """How long an answer may be used without a question; 0: not at all."""
    varies = {name.strip().lower() for name in headers.get("vary", "")[:_READ_BYTES].split(",") if name.strip()}
    if varies - _SAME_FOR_ALL - {"origin"}:
        return 0.0
    seconds = default
    for part in headers.get("cache-control", "")[:_READ_BYTES].lower().split(","):
        name, _, value = part.strip().partition("=")
        if name in {"no-store", "no-cache"}:
            return 0.0
        if name == "max-age" and value.strip('"').isdecimal():
            seconds = float(value.strip('"')[:9])
    return seconds
