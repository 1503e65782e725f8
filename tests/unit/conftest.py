"""What many unit tests use: a clock, and a store with a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl import clock
from tests.filled_store import FilledStore


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in a list so that a test can change it."""
    moment = [1000.0]
    monkeypatch.setattr(clock, "monotonic", lambda: moment[0])
    monkeypatch.setattr(clock, "now_ms", lambda: int(moment[0] * 1000) + 5_000_000)
    return moment


@pytest.fixture
def filled(tmp_path: Path, store_url: str) -> Iterator[FilledStore]:
    """A store of each kind with a run, for a test to fill."""
    with closing(FilledStore(tmp_path, store_url)) as store:
        yield store
