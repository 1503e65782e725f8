"""What a process reads of the hosts that others have blocked, each second (X-R10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from sqlalchemy import insert

from searchcrawl import clock
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.politeness.rate_limiter import RateLimiter, SharedRateLimiter
from searchcrawl.politeness.slot_reservations import SlotReservations
from searchcrawl.store.host_table import HostPause
from searchcrawl.store.schema import hosts
from tests.filled_store import FilledStore

MANY = 3000


class Noting(HostRegistry):
    """Notes how many blocks it is told."""

    def __init__(self) -> None:
        super().__init__(delay_seconds=0.0, host_concurrency=2)
        self.told: list[int] = []

    def set_blocks(self, blocks: Iterable[HostPause], *arguments: Any, **values: Any) -> None:
        found = list(blocks)
        self.told.append(len(found))
        super().set_blocks(found, *arguments, **values)


def block(filled: FilledStore, count: int) -> None:
    until_ms = clock.now_ms() + 600_000
    rows = [{"name": f"h{n}.test:80", "closed_until_ms": until_ms, "closed_code": 429} for n in range(count)]
    with filled.database.write_once() as transaction:
        transaction.execute(insert(hosts), rows)


@pytest.mark.parametrize(("count", "told"), [(500, 500), (MANY, 0)])
def test_blocks_when_they_are_very_many_then_only_those_of_hosts_in_use_are_read(
    filled: FilledStore, count: int, told: int
) -> None:
    block(filled, count)
    registry = Noting()
    reservations = SlotReservations(filled.database, registry, wake=lambda: None)

    found = reservations.read_blocks()

    assert (found, registry.told) == (True, [told])


def test_host_when_it_comes_into_use_among_very_many_blocks_then_its_own_is_read(filled: FilledStore) -> None:
    block(filled, MANY)
    registry = Noting()
    reservations = SlotReservations(filled.database, registry, wake=lambda: None)
    reservations.read_blocks()
    for name in ("h7.test:80", "free.test:80"):
        registry.announce_side_request(name)
        registry.try_acquire_request(name, clock.monotonic())

    changed = reservations.update()

    assert (changed, registry.told) == (True, [0, 1])
    assert [registry.blocked_code(name) for name in ("h7.test:80", "free.test:80")] == [429, None]
    assert registry.try_acquire_request("free.test:80", clock.monotonic()) == 0.0


def test_shared_rate_limiter_when_compared_then_it_limits_all_that_can_be_limited() -> None:
    methods = {name for name in vars(RateLimiter) if not name.startswith("_")}

    assert methods <= vars(SharedRateLimiter).keys()
