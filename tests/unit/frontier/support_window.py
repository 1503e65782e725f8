"""A window under a clock that a test sets."""

from __future__ import annotations

from searchcrawl.frontier.window import Window
from searchcrawl.politeness.host_registry import HostRegistry
from tests.factories import claim

HOST, OTHER = "a.test:80", "b.test:80"


def build_window(*, delay_seconds: float = 0.0, host_concurrency: int = 2, sites: int = 0) -> Window:
    return Window(HostRegistry(delay_seconds=delay_seconds, host_concurrency=host_concurrency, sites=sites))


def popped(tested: Window, moment: float) -> int | None:
    """The row that goes at a moment."""
    found = tested.pop(moment)
    return None if found is None else found[1].url_id


def met(tested: Window, now: list[float], host: str = HOST) -> Window:
    """``tested`` after a first visit of ``host``."""
    tested.fill(host, [claim(99)])
    assert popped(tested, now[0]) == 99
    tested.release(99)
    return tested
