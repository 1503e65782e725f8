"""The clock of the frontier's tests."""

from __future__ import annotations

import pytest

from searchcrawl import clock


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in a list so that a test can change it."""
    moment = [1000.0]
    monkeypatch.setattr(clock, "monotonic", lambda: moment[0])
    monkeypatch.setattr(clock, "now_ms", lambda: int(moment[0] * 1000) + 5_000_000)
    return moment
