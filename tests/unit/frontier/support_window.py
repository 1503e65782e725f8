"""A window under a clock that a test sets."""

from __future__ import annotations

from searchcrawl.frontier.window import Window
from tests.factories import claim

HOST, OTHER = "a.test:80", "b.test:80"


def popped(tested: Window, moment: float) -> int | None:
    """The row that goes at a moment."""
    found = tested.pop(moment)
    return None if found is None else found[1].url_id


def met(tested: Window, now: list[float], host: str = HOST) -> Window:
    """``tested`` after a first visit of ``host``."""
    tested.fill(host, [claim(99)])
    assert popped(tested, now[0]) == 99
    tested.ended(99)
    return tested
