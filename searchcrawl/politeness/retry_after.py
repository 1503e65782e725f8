"""The Retry-After header, in both of its forms (RFC 9110 §10.2.3; L5)."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from searchcrawl import clock

#: A server may not keep us away for longer than this.
MAX_SECONDS: Final = 7 * 86_400.0


def retry_after_seconds(value: bytes | None) -> float | None:
    """Seconds from now that ``value`` asks to wait, 0 to a week; None where it says nothing usable."""
    if value is None:
        return None
    text = value.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), MAX_SECONDS)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max((moment - clock.now()).total_seconds(), 0.0), MAX_SECONDS)
