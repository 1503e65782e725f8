"""A simulated week of ticks with restarts, jumps of the clock and overruns (H1, H2)."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from searchcrawl.store.engine.database import Database
from tests.integration.support_ticking import MINUTE, MONDAY, World, cron


class Expected:
    """What has to happen, by counting minutes: a moment is started, or its run before has not ended, or it is skipped."""

    def __init__(self, minutes: range, *, skips: bool = False) -> None:
        self.minutes, self.skips = minutes, skips
        self.dealt_with = MONDAY - MINUTE

    def due(self, now: int, *, active: bool) -> str:
        """``started``, ``overrun``, ``skipped``, or "" where nothing is due."""
        first = (self.dealt_with - MONDAY) // MINUTE + 1
        passed = [MONDAY + number * MINUTE for number in range(first, (now - MONDAY) // MINUTE + 1)]
        moments = [moment for moment in passed if (moment - MONDAY) // MINUTE % (24 * 60) in self.minutes]
        if not moments:
            return ""
        self.dealt_with = moments[-1]
        if active:
            return "overrun"
        return "skipped" if self.skips and now - moments[-1] > 5 * MINUTE else "started"


@pytest.fixture
def expected() -> dict[str, Expected]:
    """The moments of each source: hourly, daily, and every 20 minutes."""
    return {
        "a": Expected(range(0, 24 * 60, 60)),
        "b": Expected(range(150, 24 * 60, 24 * 60)),
        "c": Expected(range(10, 24 * 60, 20), skips=True),
    }


def tick_once_or_twice(world: World, chance: random.Random) -> dict[str, str]:
    """What was said of each source by a tick, or by two at once; all that ticks know is in the store."""
    if chance.random() < 0.2:
        world.database.close()
        world.database = Database(world.project.database_url, world.root, patience_seconds=30)
    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(lambda _: world.tick(), range(chance.choice([1, 1, 2]))))
    kinds = ("started", "overrun", "skipped")
    return {name: " ".join(kind for kind in kinds for each in done if name in getattr(each, kind)) for name in "abc"}


@pytest.mark.parametrize("seed", range(3))
def test_hundred_ticks_when_a_week_has_restarts_jumps_and_overruns_then_each_due_run_begins_exactly_once(
    make: Callable[..., World], expected: dict[str, Expected], seed: int
) -> None:
    chance = random.Random(seed)
    often = cron("10/20 * * * *", "c", misfire="skip")
    schedules = {"hourly": cron("0 * * * *", "a"), "daily": cron("30 2 * * *", "b"), "often": often}
    world = make(max_parallel=9, schedules=schedules)
    happened, wanted = [], []
    ends: dict[str, int] = {}

    for number in range(100):
        # Most ticks come in time; else nothing ran for hours, or the clock is set, by half a day at most.
        minutes = chance.choice([1, 1, 20, 60, 97, chance.randint(-600, 900)]) if number else 0
        world.now += minutes * MINUTE
        for name in [name for name, moment in ends.items() if moment <= world.now]:
            del ends[name]
            world.end(name)
        wanted.append({name: each.due(world.now, active=name in world.leases) for name, each in expected.items()})
        happened.append(tick_once_or_twice(world, chance))
        for name in [name for name, said in happened[-1].items() if said == "started"]:
            world.begin(name)
            ends[name] = world.now + chance.choice([5, 30, 200]) * MINUTE

    assert happened == wanted
    assert world.launched == []
    assert sum(each["a"] == "started" for each in wanted) > 10
