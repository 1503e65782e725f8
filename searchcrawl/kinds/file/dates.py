"""Dates of files as headers of answers have them."""

from __future__ import annotations

from email.utils import formatdate


def format_date(seconds: float) -> bytes | None:
    """A time as HTTP has it; None for one that no calendar has."""
    try:
        return formatdate(seconds, usegmt=True).encode("ascii")
    except (OverflowError, ValueError, OSError):
        return None
