"""What a browser asks before each of its requests."""

from __future__ import annotations

from typing import Protocol


class Wall(Protocol):
    """The rules about the requests of a browser. For the event loop."""

    def check_navigation(self, url: str) -> str | None:
        """The rule that forbids a page or a frame to go to ``url``; None if none does."""

    def check_resource(self, url: str, kind: str) -> str | None:
        """The rule that forbids a page to load ``url``, a resource of this kind; None if none does."""

    async def take_turn(self, url: str) -> None:
        """Waits until the host of ``url`` may be sent one more request."""
