"""What tells one version of a file on a server from another, where all that it says are sizes and times."""

from __future__ import annotations

from typing import Final

#: A file that was changed less than this ago may change once more within the same moment.
_YOUNG_MS: Final = 2_000
#: The clock of a server may be so far ahead: a time beyond is no time of writing.
_AHEAD_MS: Final = 3_600_000


def build_token(now_ms: int, size: int | None, modified_ms: int | None, *more: object) -> bytes:
    """The token of a file that was looked at not before a moment; empty for one that is too young to tell, or of which nothing is said."""
    if size is None or modified_ms is None or is_young(now_ms, modified_ms):
        return b""
    return " ".join(map(str, (size, modified_ms, *more))).encode("utf-8", "surrogatepass")


def is_young(now_ms: int, modified_ms: int) -> bool:
    """Whether a file may change once more without a change of its date, at a moment by the clock of its server."""
    return now_ms - _YOUNG_MS < modified_ms <= now_ms + _AHEAD_MS
