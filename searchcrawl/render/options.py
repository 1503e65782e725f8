"""How a page is rendered (C10)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """The table ``[render]`` of a source as the browser needs it.

    A page is done once its DOM was quiet for ``quiet_ms``, or has an element of ``wait_for``, after ``max_seconds`` at
    most. ``block`` are kinds of resource in Playwright's words, besides images, fonts and media. ``scroll`` is how many
    times the page is scrolled to its end.
    """

    wait_for: str | None = None
    quiet_ms: int = 300
    max_seconds: float = 5.0
    pages: int = 2
    block: tuple[str, ...] = ()
    scroll: int = 0
    max_page_bytes: int = 64 << 20
