"""How a page is rendered (C10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from searchcrawl.rules.url_rules import build_url_test


@dataclass(frozen=True, slots=True)
class Action:
    """A step that is done in a page: a click or a wait for an element of ``selector``, or ``count`` scrolls to the end.

    ``match`` is the URL rule that names its pages; None: all.
    """

    match: str | None
    kind: Literal["click", "wait", "scroll"]
    selector: str = ""
    count: int = 0

    def is_for(self, url: str) -> bool:
        """Whether it is done in the page of ``url``, an identity."""
        return self.match is None or build_url_test(self.match)(url)


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """The table ``[render]`` of a source as the browser needs it.

    A page is done once its DOM was quiet for ``quiet_ms``, or has an element of ``wait_for``, after ``max_seconds`` at
    most. ``block`` are kinds of resource in Playwright's words, besides images, fonts and media. ``scroll`` is how many
    times the page is scrolled to its end. ``actions`` are done in their order. With ``post`` scripts may send POST to the
    origin of the page and to hosts that the wall names. ``max_page_bytes`` bounds all that a page loads, decoded.
    With ``hash_routes`` a fragment that is a route is part of the URLs that the page gives to the history.
    """

    wait_for: str | None = None
    quiet_ms: int = 300
    max_seconds: float = 5.0
    pages: int = 2
    block: tuple[str, ...] = ()
    scroll: int = 0
    actions: tuple[Action, ...] = ()
    post: bool = False
    max_page_bytes: int = 64 << 20
    hash_routes: bool = False

    def list_actions(self, url: str) -> Sequence[Action]:
        """What is done in the page of ``url``, an identity, in this order."""
        return [action for action in self.actions if action.is_for(url)]
