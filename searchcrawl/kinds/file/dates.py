"""Dates of files as headers of answers."""

from __future__ import annotations

from email.utils import formatdate


def list_dates(seconds: float | None) -> tuple[tuple[bytes, bytes], ...]:
    """When a file was written, in seconds since 1970, as a header; none for a time that no calendar has, or that is not known."""
    try:
        return () if seconds is None else ((b"Last-Modified", formatdate(seconds, usegmt=True).encode("ascii")),)
    except (OverflowError, ValueError, OSError):
        return ()
