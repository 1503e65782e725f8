"""How a page is rendered (C10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageAction:
    """One action: ``kind`` is ``click`` or ``wait`` with a CSS selector, or ``scroll`` with a number of ``times``.

    ``matches`` says of the identity of a page whether it is done there.
    """

    kind: str
    selector: str = ""
    times: int = 0
    matches: Callable[[str], bool] = lambda url: True


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """The table ``[render]`` of a source as the browser needs it.

    A page is done once its DOM was quiet for ``quiet_ms``, or has an element of ``wait_for``, after ``max_seconds`` at
    most. ``block`` are kinds of resource in Playwright's words, besides images, fonts and media. ``scroll`` is how many
    times the page is scrolled to its end. ``actions`` are done before that, on the pages that they match. ``max_page_bytes``
    is how much all that a page loads may have, decoded.
    """

    wait_for: str | None = None
    quiet_ms: int = 300
    max_seconds: float = 5.0
    pages: int = 2
    block: tuple[str, ...] = ()
    scroll: int = 0
    max_page_bytes: int = 64 << 20
    actions: tuple[PageAction, ...] = ()
