"""Words after numbers in what people read."""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    """A number with the words after it: ``1 page is``, ``2 pages are``, ``0 pages are``."""
    return f"{number} {one if number == 1 else many}"
