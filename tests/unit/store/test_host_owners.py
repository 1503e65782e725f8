"""Which process may ask a host: taken by one, handed over, and free again once its owner has ended (C2, X-S3)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Final

import pytest
from sqlalchemy import select, update

from searchcrawl import clock
from searchcrawl.politeness.backoff import HostBackoff
from searchcrawl.store import host_owners, host_table, owned_hosts
from searchcrawl.store.engine.database import Database
from searchcrawl.store.host_owners import TakenHost
from searchcrawl.store.host_table import HostReport
from searchcrawl.store.runs import holder, lease
from searchcrawl.store.runs.lease import BEAT_SECONDS, EXPIRY_MS
from searchcrawl.store.schema import host_owners as owners_of_hosts
from searchcrawl.store.schema import hosts
from tests.unit.store.support_store import SOURCE

HOST: Final = "a.test:80"
DELAY_MS: Final = 2000
DAY_MS: Final = 86_400_000
_ENDED: Final = "import os; print(os.getpid())"


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time of the clock that processes share, and of the boot clock, in a list so that a test can change them."""
    moment = [1_900_000_000_000, 50_000_000]
    read = "searchcrawl.store.engine.{}_dialect.{}Dialect.read_clock_ms"
    for name, kind in (("sqlite", "Sqlite"), ("postgresql", "Postgresql")):
        monkeypatch.setattr(read.format(name, kind), lambda dialect, transaction: moment[0])
    monkeypatch.setattr(clock, "now_ms", lambda: moment[0])
    monkeypatch.setattr(clock, "boot_ms", lambda: moment[1])
    return moment


def pass_time(moment: list[int], milliseconds: int) -> None:
    for place in range(2):
        moment[place] += milliseconds


@pytest.fixture
def host(database: Database, moment: list[int]) -> int:
    return database.write(host_table.find_or_add, [HOST])[HOST]


def register(database: Database) -> int:
    return database.write(host_owners.register)


def take(database: Database, owner: int, host: int, delay_ms: int = DELAY_MS) -> TakenHost | None:
    """The host, where it is this owner's now."""
    taken = database.write(host_owners.take, owner, {host: delay_ms})
    assert taken is not None
    return taken.get(host)


def wait(database: Database, owner: int, host: int, delay_ms: int = DELAY_MS) -> int | None:
    """The same, for how long it is not to be asked yet."""
    taken = take(database, owner, host, delay_ms)
    return None if taken is None else taken.wait_ms


def contested(database: Database, owner: int) -> tuple[list[int], dict[int, int]]:
    wanted, handed = database.read(host_owners.find_contested, owner)
    return wanted, {host: taken.wait_ms for host, taken in handed.items()}


def hand_over(database: Database, owner: int, host: int, wait_ms: int = 0) -> None:
    database.write(host_owners.hand_over, owner, {host: wait_ms})


def set_holder(database: Database, owner: int, text: str) -> None:
    with database.write_once() as transaction:
        transaction.execute(update(owners_of_hosts).where(owners_of_hosts.c.id == owner).values(holder=text))


def kill(database: Database, owner: int) -> None:
    """Has an owner be a process that has ended."""
    pid = subprocess.run([sys.executable, "-c", _ENDED], capture_output=True, text=True, check=True).stdout.strip()
    set_holder(database, owner, changed(process=pid, started="1"))


def changed(**facts: str) -> str:
    """This process as a holder, but for some facts."""
    text = holder.describe_own()
    for name, value in facts.items():
        text = re.sub(rf" {name} \S+", f" {name} {value}", text)
    return text


def test_host_when_one_has_taken_it_then_the_other_does_not_get_it_and_the_owner_is_told(
    database: Database, host: int
) -> None:
    one, other = register(database), register(database)

    taken = [wait(database, one, host), wait(database, other, host), wait(database, one, host)]

    assert taken == [0, None, 0]
    assert (contested(database, one), contested(database, other)) == (([host], {}), ([], {}))


@pytest.mark.parametrize("is_clock_set", [0, DAY_MS, -DAY_MS])
def test_host_when_it_is_handed_over_then_the_other_has_it_with_what_it_has_to_be_spared(
    database: Database, moment: list[int], host: int, is_clock_set: int
) -> None:
    one, other = register(database), register(database)
    take(database, one, host)
    take(database, other, host)
    hand_over(database, one, host, 5000)
    # Whoever waits looks at a clock that was set meanwhile.
    moment[0] += min(is_clock_set, 0)
    pass_time(moment, 1000)

    before = contested(database, other)
    refused = wait(database, one, host)
    database.write(host_owners.accept, other, [host])
    again = wait(database, one, host)

    assert before == ([], {host: 4000 if is_clock_set >= 0 else 5000})
    assert (refused, again) == (None, None)
    # While the new one does not know of the host nobody wants it from it.
    assert contested(database, other) == ([host], {})
    assert contested(database, one) == ([], {})


def test_host_when_nobody_wants_it_then_it_is_given_back_and_free(
    database: Database, moment: list[int], host: int
) -> None:
    one, other = register(database), register(database)
    take(database, one, host)
    hand_over(database, one, host, 1500)
    pass_time(moment, 500)

    assert contested(database, one) == ([], {})
    assert wait(database, other, host) == 1000


def test_host_when_it_was_handed_over_already_then_its_last_owner_changes_nothing(
    database: Database, host: int
) -> None:
    one, other = register(database), register(database)
    take(database, one, host)
    take(database, other, host)
    hand_over(database, one, host, 1500)

    hand_over(database, one, host, 0)
    database.write(host_owners.note_delays, one, {host: 9000})

    assert contested(database, other) == ([], {host: 1500})


def test_owner_when_it_ends_then_wanted_hosts_are_with_those_who_want_them_and_others_are_free(
    database: Database, host: int
) -> None:
    free = database.write(host_table.find_or_add, ["b.test:80"])["b.test:80"]
    one, other = register(database), register(database)
    database.write(host_owners.take, one, {host: DELAY_MS, free: DELAY_MS})
    take(database, other, host)

    hand_over(database, one, free, 700)
    database.write(host_owners.end, one)

    assert contested(database, other) == ([], {host: 0})
    assert wait(database, other, free) == 700


def test_owner_when_it_was_killed_then_its_host_is_taken_at_once_and_waits_one_delay_from_now(
    database: Database, moment: list[int], host: int
) -> None:
    one, other = register(database), register(database)
    take(database, one, host, 3000)
    pass_time(moment, 1000)
    kill(database, one)

    # The longer delay of both counts.
    assert wait(database, other, host, 500) == 3000


def test_owner_when_robots_asked_for_a_longer_delay_then_it_counts_after_its_death(
    database: Database, host: int
) -> None:
    one, other = register(database), register(database)
    take(database, one, host, 0)
    database.write(host_owners.note_delays, one, {host: 7000})
    kill(database, one)

    assert wait(database, other, host, 0) == 7000


@pytest.mark.parametrize("clock_set_ms", [0, DAY_MS, -DAY_MS, EXPIRY_MS, -EXPIRY_MS])
def test_lease_when_it_was_not_renewed_then_another_takes_the_host_and_waits_one_delay_from_its_end(
    database: Database, moment: list[int], host: int, clock_set_ms: int
) -> None:
    one, other = register(database), register(database)
    take(database, one, host, 3000)
    pass_time(moment, EXPIRY_MS - 1)
    database.write(host_owners.renew, other)
    held = wait(database, other, host)
    pass_time(moment, 1001)
    moment[0] += clock_set_ms

    taken = wait(database, other, host)
    renewed = [database.write(host_owners.renew, number) for number in (one, other)]

    assert (held, taken, renewed) == (None, 2000, [False, True])
    # It has lost everything, and gets nothing more.
    assert database.write(host_owners.take, one, {host: 0}) is None
    assert contested(database, other) == ([], {})


@pytest.mark.parametrize("clock_set_ms", [EXPIRY_MS, -EXPIRY_MS, 10 * DAY_MS, -10 * DAY_MS])
def test_lease_when_only_the_clock_of_the_store_was_set_then_the_owner_keeps_its_hosts(
    database: Database, moment: list[int], host: int, clock_set_ms: int
) -> None:
    one, other = register(database), register(database)
    take(database, one, host)

    moment[0] += clock_set_ms
    third = register(database)

    assert [wait(database, number, host) for number in (other, third)] == [None, None]
    assert database.write(host_owners.renew, one)


def test_lease_when_the_clock_of_the_store_was_set_and_the_owner_is_on_another_machine_then_it_has_time_to_learn_of_it(
    database: Database, moment: list[int], host: int
) -> None:
    one, other = register(database), register(database)
    take(database, one, host, 3000)
    set_holder(database, one, changed(boot="another", machine="another"))

    moment[0] += DAY_MS

    assert wait(database, other, host) == BEAT_SECONDS * 1000 + 3000
    assert not database.write(host_owners.renew, one)


def test_host_when_the_one_that_wants_it_has_ended_then_the_next_one_is_told(database: Database, host: int) -> None:
    one, dead, other = register(database), register(database), register(database)
    take(database, one, host)
    take(database, dead, host)
    kill(database, dead)
    hand_over(database, one, host, 400)

    # The dead one never asked it; that is not known.
    assert wait(database, other, host) == DELAY_MS
    take(database, one, host)
    assert contested(database, other) == ([host], {})


def test_host_when_one_that_wanted_it_is_gone_then_nobody_waits_for_it(database: Database, host: int) -> None:
    one, gone = register(database), register(database)
    take(database, one, host)
    take(database, gone, host)
    database.write(host_owners.end, gone)

    hand_over(database, one, host, 400)

    assert wait(database, one, host) == 400


def test_host_when_several_want_it_then_the_one_that_waits_longest_is_next(database: Database, host: int) -> None:
    owner, *others = (register(database) for _ in range(4))
    take(database, owner, host)
    for number, waited_ms in zip(others, (500, 9000, 3000), strict=True):
        database.write(host_owners.take, number, {host: DELAY_MS}, {host: waited_ms})

    hand_over(database, owner, host)

    assert [contested(database, number)[1] for number in others] == [{}, {host: 0}, {}]


def test_pause_when_a_host_asked_for_one_then_whoever_takes_it_learns_of_it(database: Database, host: int) -> None:
    one = register(database)
    asked = HostReport(pause_seconds=HostBackoff(0.25, 60.0).pause_seconds, until_ms=clock.now_ms() + 9000, code=429)
    database.write(host_table.add_reports, {host: asked}, since_ms=0, now_ms=clock.now_ms())

    assert take(database, one, host) == TakenHost(0, 9000, 429)


def test_owners_when_they_ended_then_no_number_is_given_again_and_old_ones_are_forgotten(
    database: Database, moment: list[int], host: int
) -> None:
    numbers = []
    for _ in range(3):
        numbers.append(register(database))
        database.write(host_owners.end, numbers[-1])
    numbers.append(register(database))
    take(database, numbers[-1], host)
    kill(database, numbers[-1])
    pass_time(moment, 2 * DAY_MS)
    numbers.append(register(database))

    assert len(set(numbers)) == 5
    with database.read_once() as transaction:
        assert [row.id for row in transaction.execute(select(owners_of_hosts))] == [numbers[-1]]
    assert wait(database, numbers[-1], host) == 0


def test_owner_when_people_ask_then_it_is_named_as_long_as_it_lives_with_who_is_next(
    database: Database, host: int
) -> None:
    lease_of_demo = database.write(lease.take, SOURCE, name="demo")
    one, other = register(database), register(database)
    before = database.read(owned_hosts.find_turn, HOST)
    take(database, one, host)
    named = database.read(owned_hosts.find_turn, HOST)
    set_holder(database, other, holder.describe_process(os.getppid()))
    take(database, other, host)
    wanted = database.read(owned_hosts.find_turn, HOST)
    counts = database.read(owned_hosts.count_hosts, SOURCE, clock.now_ms())
    database.write(lease.release, lease_of_demo)
    kill(database, one)

    this = holder.describe(holder.describe_own())
    assert before is None
    assert named is not None
    assert (named.now.describe(), named.following) == (f"{this} (source demo)", None)
    assert wanted is not None
    assert wanted.following is not None
    assert f"process {os.getppid()} on" in wanted.following.describe()
    assert counts == (1, 0, 0)
    assert database.read(owned_hosts.find_turn, HOST) is None
    assert database.read(owned_hosts.count_hosts, SOURCE, clock.now_ms()) == (0, 0, 0)


def test_hosts_of_a_run_when_counted_then_those_that_pause_and_those_that_it_waits_for_are_apart(
    database: Database, moment: list[int], host: int
) -> None:
    ids = database.write(host_table.find_or_add, ["b.test:80", "c.test:80"])
    database.write(lease.take, SOURCE, name="demo")
    one, other = register(database), register(database)
    set_holder(database, other, holder.describe_process(os.getppid()))
    take(database, other, host)
    database.write(host_owners.take, one, dict.fromkeys([host, *ids.values()], DELAY_MS))
    asked = HostReport(until_ms=moment[0] + 9000, code=429)
    database.write(host_table.add_reports, {ids["b.test:80"]: asked}, since_ms=0, now_ms=moment[0])

    counts = [database.read(owned_hosts.count_hosts, SOURCE, moment[0] + later) for later in (0, 9000)]

    assert counts == [(2, 1, 1), (2, 1, 0)]


def test_host_when_it_was_deleted_then_nobody_gets_it(database: Database, host: int) -> None:
    one = register(database)
    with database.write_once() as transaction:
        transaction.execute(hosts.delete())

    assert take(database, one, host) is None
