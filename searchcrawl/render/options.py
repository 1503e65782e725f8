"""How a browser renders the pages of a source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """When a page is done, and what it may load; ``block`` are kinds of resource by Playwright's names."""

    wait_for: str | None = None
    quiet_ms: int = 300
    max_seconds: float = 5.0
    pages: int = 2
    block: tuple[str, ...] = ()
    scroll: int = 0
    allow_hosts: tuple[str, ...] = ()
