"""Pieces of Markdown that several pages of the reference are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown, and an empty line."""
    shown = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *(f"| {row} |" for row in shown), ""]


def literal(text: str) -> str:
    """Two backticks of a docstring are one in Markdown."""
    return text.replace("``", "`")
