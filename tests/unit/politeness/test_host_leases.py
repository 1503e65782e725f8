"""Processes that share hosts, under a clock that the tests set: the gap holds, all advance, whatever happens to one (C2, X-S3).

Each process has a window with claims that never end, and takes its hosts from one store.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, pairwise
from pathlib import Path
from typing import Final

import pytest

from searchcrawl import clock
from searchcrawl.exceptions import StoreError
from searchcrawl.frontier.window import Window
from searchcrawl.politeness.host_leases import HostLeases
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.politeness.rate_limiter import RateLimiter, SharedRateLimiter
from searchcrawl.store.engine.database import Database
from searchcrawl.store.engine.sqlite_dialect import SqliteDialect
from searchcrawl.store.runs import holder
from searchcrawl.store.runs.lease import BEAT_SECONDS, EXPIRY_MS
from tests.factories import claim

HOSTS: Final = tuple(f"h{number}.test:80" for number in range(4))
STEP_SECONDS: Final = 0.05
#: Sums of binary fractions are not exact.
EARLY_SECONDS: Final = 1e-6
_LABEL: Final = "simulated"


class World:
    """The clock, the store, and what the hosts saw: (moment, end, process) of each request."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = 1000.0
        self.log: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
        self.dead: set[str] = set()
        self.registering = ""
        self.labels = count(1)

    def gaps(self) -> list[float]:
        return [after[0] - before[0] for of_host in self.log.values() for before, after in pairwise(sorted(of_host))]

    def shares(self, host: str) -> dict[str, float]:
        """What part of the requests to a host each process has sent."""
        sent = [process for *_, process in self.log[host]]
        return {process: sent.count(process) / len(sent) for process in {*sent}}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with closing(Database("sqlite:///shared.db", tmp_path)) as database:
        world = World(database)
        own, has_ended = holder.describe_own(), holder.has_ended
        monkeypatch.setattr(clock, "monotonic", lambda: world.now)
        monkeypatch.setattr(clock, "boot_ms", lambda: int(world.now * 1000))
        monkeypatch.setattr(clock, "now_ms", lambda: int(world.now * 1000) + 5_000_000)
        monkeypatch.setattr(SqliteDialect, "read_clock_ms", lambda dialect, transaction: clock.now_ms())
        monkeypatch.setattr(holder, "describe_own", lambda: f"{own} {_LABEL} {world.registering}")
        monkeypatch.setattr(holder, "has_ended", lambda text: text.rpartition(" ")[2] in world.dead or has_ended(text))
        yield world


class Process:
    """One that visits all hosts without end."""

    def __init__(
        self, world: World, *, delay_seconds: float, host_concurrency: int = 2, answer_seconds: float = 0.1
    ) -> None:
        self.label = f"p{next(world.labels)}"
        self._world = world
        self._answer_seconds = answer_seconds
        self._lease_until_ms = 0.0
        self._beat_at = world.now
        self._hosts = HostRegistry(delay_seconds=delay_seconds, host_concurrency=host_concurrency)
        self._window = Window(self._hosts)
        self.leases = HostLeases(world.database, self._hosts, lease_until_ms=lambda: self._lease_until_ms)
        self._numbers = count(1)
        #: requests whose turn has come and that are not sent yet, and those under way, each with its end
        self._turns: list[tuple[str, int]] = []
        self._open: list[tuple[float, str, int]] = []
        for host in HOSTS:
            self._fill(host)

    def step(self, chance: random.Random) -> None:
        """Does all that is due now, in any order: its threads wait for nobody."""
        parts: list[Callable[[], None]] = [self._beat, self._send, self._end_requests, self._take_turns, self._update]
        chance.shuffle(parts)
        for part in parts:
            part()
        self._send()

    def stop(self) -> None:
        """Ends as a crawl does."""
        self.leases.stop()

    def _update(self) -> None:
        self._world.registering = self.label
        self.leases.update()

    def _beat(self) -> None:
        if self._world.now >= self._beat_at:
            self._beat_at = self._world.now + BEAT_SECONDS
            until_ms = clock.boot_ms() + EXPIRY_MS
            self._world.database.write(self.leases.renew)
            self._lease_until_ms = until_ms

    def _take_turns(self) -> None:
        while clock.boot_ms() <= self._lease_until_ms and (found := self._window.pop(self._world.now)) is not None:
            host, taken = found
            self._turns.append((host, taken.url_id))
            self._fill(host)

    def _send(self) -> None:
        for host, number in self._turns:
            if self._hosts.may_send(host):
                ends = self._world.now + self._answer_seconds
                self._world.log[host].append((self._world.now, ends, self.label))
                self._open.append((ends, host, number))
            else:
                self._window.release(number)
        self._turns.clear()

    def _end_requests(self) -> None:
        ended = [one for one in self._open if one[0] <= self._world.now]
        self._open = [one for one in self._open if one not in ended]
        for _, host, number in ended:
            self._hosts.start_delay(host)
            self._window.release(number)

    def _fill(self, host: str) -> None:
        self._window.fill(host, [claim(next(self._numbers)) for _ in range(4)])


def run(world: World, processes: list[Process], seconds: float, chance: random.Random) -> None:
    end = world.now + seconds
    while world.now < end:
        world.now += STEP_SECONDS
        for process in chance.sample(processes, len(processes)):
            process.step(chance)


@pytest.mark.parametrize(("number", "delay_seconds"), [(2, 0.3), (2, 3.0), (3, 1.0)])
def test_c2_hosts_when_processes_share_them_then_the_gap_holds_and_each_has_its_part(
    world: World, number: int, delay_seconds: float
) -> None:
    processes = [Process(world, delay_seconds=delay_seconds) for _ in range(number)]

    run(world, processes, 60 * number, random.Random(number))

    assert min(world.gaps()) >= delay_seconds - EARLY_SECONDS
    for host in HOSTS:
        assert min(world.shares(host).values()) > (0.33 if number == 2 else 0.15)
        assert len(world.shares(host)) == number
        # Handing over takes less than what is gained.
        assert len(world.log[host]) > 0.6 * 60 * number / (delay_seconds + 0.15)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(50))
def test_c2_hosts_when_processes_are_killed_and_stopped_then_the_gap_holds_and_all_go_on(
    world: World, seed: int
) -> None:
    chance = random.Random(seed)
    delay_seconds = chance.choice([0.5, 2.0])
    running = [Process(world, delay_seconds=delay_seconds) for _ in range(3)]
    stopped: list[tuple[float, Process]] = []
    blows = {"kill": 0, "stop": 0, "end": 0}

    for _ in range(12):
        run(world, running, chance.uniform(1, 8), chance)
        blow, victim = chance.choice([*blows]), running.pop(chance.randrange(len(running)))
        blows[blow] += 1
        if blow == "stop":
            # Some are stopped past the end of their lease, some not.
            stopped.append((world.now + chance.choice([3, 29, 31, 60]), victim))
        else:
            if blow == "end":
                victim.stop()
            world.dead.add(victim.label)
        while len(running) < 2:
            running.append(Process(world, delay_seconds=delay_seconds))
        running += [process for until, process in stopped if until <= world.now]
        stopped = [(until, process) for until, process in stopped if until > world.now]
    before = {host: len(world.log[host]) for host in HOSTS}
    run(world, running + [process for _, process in stopped], 45, chance)

    assert min(world.gaps()) >= delay_seconds - EARLY_SECONDS
    assert all(len(world.log[host]) > before[host] + 5 for host in HOSTS)
    last = {process for host in HOSTS for moment, _, process in world.log[host] if moment > world.now - 30}
    assert {process.label for process in running} <= last


def test_c2_process_when_it_was_stopped_past_its_lease_then_it_sends_nothing_before_it_has_its_hosts_anew(
    world: World,
) -> None:
    chance = random.Random(1)
    stopped, other = Process(world, delay_seconds=1.0), Process(world, delay_seconds=1.0)
    run(world, [stopped, other], 10, chance)
    stopped_at = world.now
    run(world, [other], 70, chance)
    resumed_at = world.now
    run(world, [stopped, other], 20, chance)

    of_other = {host: [moment for moment, _, process in world.log[host] if process == other.label] for host in HOSTS}
    took_over = [min(moment for moment in of_other[host] if moment > stopped_at + 9) for host in HOSTS]
    assert max(took_over) < stopped_at + EXPIRY_MS / 1000 + 5
    assert min(world.gaps()) >= 1.0 - EARLY_SECONDS
    again = [
        min(moment for moment, _, who in world.log[h] if who == stopped.label and moment > stopped_at) for h in HOSTS
    ]
    assert resumed_at < min(again) <= max(again) < resumed_at + 15


@pytest.mark.parametrize("host_concurrency", [1, 3])
def test_hosts_when_there_is_no_delay_then_only_one_process_asks_a_host_at_a_time_as_often_as_is_allowed(
    world: World, host_concurrency: int
) -> None:
    processes = [
        Process(world, delay_seconds=0.0, host_concurrency=host_concurrency, answer_seconds=0.2) for _ in range(2)
    ]

    run(world, processes, 40, random.Random(1))

    for host in HOSTS:
        requests = sorted(world.log[host])
        open_at_once = [
            [other for other in requests if other[0] <= moment < other[1] - 1e-6] for moment, *_ in requests
        ]
        assert max(map(len, open_at_once)) == host_concurrency
        assert {len({process for *_, process in found}) for found in open_at_once} == {1}
        assert min(world.shares(host).values()) > 0.33
        assert len(world.shares(host)) == 2


def test_hosts_when_only_one_process_wants_them_then_it_keeps_them(world: World) -> None:
    process = Process(world, delay_seconds=0.5)

    run(world, [process], 30, random.Random(1))

    for host in HOSTS:
        # A request each 0.65 s: the delay counts from the end of the answer, and time goes in steps.
        assert len(world.log[host]) >= 44


def test_host_when_its_owner_ends_then_the_next_one_waits_only_for_its_delay(world: World) -> None:
    chance = random.Random(1)
    one, other = Process(world, delay_seconds=2.0), Process(world, delay_seconds=2.0)
    run(world, [one], 5, chance)
    run(world, [one, other], 0.1, chance)
    one.stop()
    ended_at = world.now
    run(world, [other], 10, chance)

    for host in HOSTS:
        first = min(moment for moment, _, process in world.log[host] if process == other.label)
        assert first - ended_at < 2.0 + 1.0
    assert min(world.gaps()) >= 2.0 - EARLY_SECONDS


def test_dry_run_when_it_was_stopped_past_its_lease_then_it_takes_the_host_anew(world: World) -> None:
    host, chance = HOSTS[0], random.Random(1)
    hosts = HostRegistry(delay_seconds=1.0, host_concurrency=1)
    leases, crawl = HostLeases(world.database, hosts), Process(world, delay_seconds=1.0)
    hosts.announce_side_request(host)
    world.registering = "dry"
    assert hosts.reserve(host, world.now) is None
    leases.update()
    reserved = hosts.reserve(host, world.now)
    run(world, [crawl], 60, chance)

    sends = [hosts.may_send(host)]
    leases.update()
    sends.append(hosts.may_send(host))
    start = None
    for _ in range(200):
        run(world, [crawl], STEP_SECONDS, chance)
        world.registering = "dry"
        leases.update()
        start = hosts.reserve(host, world.now)
        if start is not None:
            break
    assert start is not None
    run(world, [crawl], start - world.now, chance)

    assert (reserved, sends) == (1000.0, [False, False])
    assert hosts.may_send(host)
    assert start - max(moment for moment, *_ in world.log[host]) >= 1.0 - EARLY_SECONDS


def test_thread_when_the_store_fails_then_the_crawl_ends_and_those_that_wait_learn_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = HostRegistry(delay_seconds=0.0, host_concurrency=1)
    leases, failures = HostLeases(world.database, hosts, lease_until_ms=lambda: world.now * 1000 + 1), list[Exception]()

    def fail(*_: object, **__: object) -> None:
        raise StoreError("no space left")

    monkeypatch.setattr(world.database, "write", fail)
    hosts.announce_side_request(HOSTS[0])
    assert hosts.try_acquire_request(HOSTS[0], world.now) > 0
    leases.start(lambda: None, failures.append)
    leases.stop(tells=False)

    assert [str(error) for error in failures] == ["no space left"]
    with pytest.raises(StoreError):
        hosts.try_acquire_request(HOSTS[0], world.now)


def test_shared_rate_limiter_when_compared_then_it_limits_all_that_can_be_limited() -> None:
    methods = {name for name in vars(RateLimiter) if not name.startswith("_")}

    assert methods <= vars(SharedRateLimiter).keys()
