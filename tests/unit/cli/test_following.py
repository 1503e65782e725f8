"""What a service tells of its ticks (J1)."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from searchcrawl.cli import following
from searchcrawl.cli.following import Found, TickFollower
from searchcrawl.scheduling.ticking import Ticked


def test_ticks_when_they_find_the_same_then_it_is_told_once_and_then_that_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: queue.SimpleQueue[dict[str, Found]] = queue.SimpleQueue()
    monkeypatch.setattr(following, "follow_tick", lambda project, database, found: told.put(found))
    anything: Any = None
    follower = TickFollower(anything)

    for unstarted, overdue in [("no space left", {"demo": 1})] * 3 + [("", {})]:
        follower.note(anything, Ticked(unstarted={"demo": unstarted, "other": ""}, overdue=overdue))
    first, second = (told.get(timeout=20) for _ in range(2))

    assert {name: [*events] for name, (events, _) in first.items()} == {"demo": ["not_started", "overdue"], "other": []}
    assert {name: [*events] for name, (events, _) in second.items()} == {"demo": []}
