"""Who holds a source: a living holder keeps it whatever clocks say, one that stopped or ended loses it (X-S3, X-S7)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import select, text, update

from searchcrawl import clock
from searchcrawl.exceptions import LeaseLost, SourceBusy
from searchcrawl.store.engine.database import Database
from searchcrawl.store.run_schema import leases
from searchcrawl.store.runs import holder, lease
from searchcrawl.store.runs.lease import EXPIRY_MS, Lease
from tests.filled_store import FilledStore
from tests.unit.store.support_store import SOURCE, age_leases

DAY_MS: Final = 86_400_000
_ENDED: Final = "import os; print(os.getpid())"


def take(database: Database) -> Lease:
    return database.write(lease.take, SOURCE, name="demo")


def is_held(database: Database) -> bool:
    return database.read(lease.is_held, SOURCE)


def fence(database: Database) -> int:
    with database.read_once() as transaction:
        return int(transaction.execute(select(leases.c.fence)).scalar_one())


def set_lease(database: Database, **values: Any) -> None:
    with database.write_once() as transaction:
        transaction.execute(update(leases).values(values))


def changed(**facts: str | None) -> str:
    """This process as a holder, but for some facts; None leaves one out."""
    text = holder.describe_own()
    for name, value in facts.items():
        text = re.sub(rf" {name} \S+", "" if value is None else f" {name} {value}", text)
    return text


@pytest.fixture
def ended() -> str:
    """A holder that has ended: its number, and when it started."""
    pid = subprocess.run([sys.executable, "-c", _ENDED], capture_output=True, text=True, check=True).stdout.strip()
    return changed(process=pid, started="1")


def set_clock(monkeypatch: pytest.MonkeyPatch, *, ahead_ms: int) -> None:
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + ahead_ms * 1_000_000)


@pytest.mark.parametrize("ahead_ms", [EXPIRY_MS + 1, -EXPIRY_MS - 1, DAY_MS, -DAY_MS])
@pytest.mark.parametrize("container", ["same", "other"])
def test_lease_when_the_clock_is_set_then_the_living_holder_keeps_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, ahead_ms: int, container: str
) -> None:
    take(database)
    if container == "other":
        set_lease(database, holder=changed(namespace="1", process="999999"))
    set_clock(monkeypatch, ahead_ms=ahead_ms)

    with pytest.raises(SourceBusy, match="another process is running it"):
        take(database)

    assert is_held(database)
    assert fence(database) == 1


@pytest.mark.parametrize("ahead_ms", [0, -EXPIRY_MS, DAY_MS])
def test_lease_when_the_holder_stopped_renewing_it_then_is_taken_over_whatever_the_clock_says(
    database: Database, monkeypatch: pytest.MonkeyPatch, ahead_ms: int
) -> None:
    old = take(database)
    age_leases(database, EXPIRY_MS)
    set_clock(monkeypatch, ahead_ms=ahead_ms)

    held = is_held(database)
    new = take(database)

    assert (held, new.fence) == (False, old.fence + 1)
    with pytest.raises(LeaseLost), database.write_once() as transaction:
        lease.renew(transaction, old)


def test_lease_when_its_last_beat_is_nearly_too_old_then_a_beat_keeps_it(database: Database) -> None:
    own = take(database)
    age_leases(database, EXPIRY_MS - 2000)
    nearly = is_held(database)
    database.write(lease.renew, own)
    age_leases(database, EXPIRY_MS - 2000)

    assert (nearly, is_held(database)) == (True, True)


def test_lease_when_the_holder_has_ended_then_is_taken_over_at_once(database: Database, ended: str) -> None:
    take(database)
    set_lease(database, holder=ended)

    assert not is_held(database)
    assert take(database).fence == 2


@pytest.mark.parametrize("uptime_ms", [0, 5_000, 900 * DAY_MS])
def test_lease_when_the_machine_was_started_again_then_is_taken_over_at_once(
    database: Database, uptime_ms: int
) -> None:
    take(database)
    # Its boot clock said another time, and our process has its number.
    set_lease(database, holder=changed(boot="earlier"), beat_ms=clock.boot_ms() + uptime_ms)

    assert take(database).fence == 2


@pytest.mark.parametrize(
    "facts", [{"boot": "other", "machine": "other"}, {"boot": "other", "machine": "other", "process": "999999"}]
)
@pytest.mark.parametrize("beat_ms", [0, 900 * DAY_MS])
def test_lease_when_another_machine_of_the_same_name_has_it_then_its_beat_by_the_clock_of_the_store_counts(
    database: Database, facts: dict[str, str], beat_ms: int
) -> None:
    take(database)
    set_lease(database, holder=changed(**facts), beat_ms=beat_ms)

    with pytest.raises(SourceBusy):
        take(database)
    age_leases(database, EXPIRY_MS)

    assert take(database).fence == 2


@pytest.mark.parametrize("place", ["here", "elsewhere"])
def test_lease_when_an_earlier_release_has_it_then_its_beat_counts_too(database: Database, place: str) -> None:
    take(database)
    here = changed(machine=None, namespace=None)
    set_lease(database, holder=here if place == "here" else "elsewhere boot x process 1 started 1", beat_ms=None)

    with pytest.raises(SourceBusy):
        take(database)
    age_leases(database, EXPIRY_MS)

    assert take(database).fence == 2


@pytest.mark.parametrize("ahead_ms", [DAY_MS, -DAY_MS])
def test_lease_in_postgresql_when_the_holder_is_elsewhere_then_the_clock_of_the_database_counts(
    tmp_path: Path, empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch, ahead_ms: int
) -> None:
    filled = FilledStore(tmp_path, empty_postgres_url)
    set_lease(filled.database, holder=changed(boot="other", machine="other"))
    set_clock(monkeypatch, ahead_ms=ahead_ms)

    early = is_held(filled.database)
    filled.run.renew_lease()
    with filled.database.read_once() as transaction:
        age = transaction.execute(text("SELECT extract(epoch FROM now()) * 1000 - renewed_ms FROM leases")).scalar()
    age_leases(filled.database, EXPIRY_MS)
    late = is_held(filled.database)
    filled.close()

    assert (early, late) == (True, False)
    assert age is not None
    assert abs(age) < EXPIRY_MS


def test_lease_when_two_processes_are_compared_then_a_later_one_with_its_number_is_another() -> None:
    own = holder.describe_own()

    assert not holder.has_ended(own)
    assert holder.has_ended(changed(started="1"))
    assert holder.shares_boot(own)
    assert str(os.getpid()) in holder.describe(own)


def test_run_when_a_transaction_took_long_then_it_goes_on_and_who_waited_finds_it_alive(filled: FilledStore) -> None:
    filled.run.lease_until_ms -= EXPIRY_MS
    age_leases(filled.database, EXPIRY_MS)
    # Nobody took it over meanwhile.
    filled.run.write(lambda transaction: None)

    assert is_held(filled.database)
    assert filled.run.lease_until_ms > clock.boot_ms()
    with pytest.raises(SourceBusy):
        take(filled.database)


def test_run_when_it_writes_between_two_beats_then_the_lease_is_left_alone(filled: FilledStore) -> None:
    with filled.database.read_once() as transaction:
        before = transaction.execute(select(leases)).one()
    filled.run.write(lambda transaction: None)

    with filled.database.read_once() as transaction:
        assert transaction.execute(select(leases)).one() == before


def test_run_when_its_fence_was_taken_meanwhile_then_writes_nothing(filled: FilledStore) -> None:
    filled.run.lease_until_ms -= EXPIRY_MS
    age_leases(filled.database, EXPIRY_MS)
    take(filled.database)

    with pytest.raises(LeaseLost):
        filled.run.write(lambda transaction: None)
    with pytest.raises(LeaseLost):
        filled.run.renew_lease()


def test_run_when_its_end_comes_after_a_late_beat_then_the_lease_is_free(filled: FilledStore) -> None:
    filled.run.lease_until_ms -= EXPIRY_MS

    filled.run.end("finished", 0)

    assert not is_held(filled.database)
    take(filled.database)


def test_lease_when_it_was_given_back_then_a_beat_that_comes_late_does_not_take_it(database: Database) -> None:
    own = take(database)
    with database.write_once() as transaction:
        lease.release(transaction, own)
        lease.renew(transaction, own)

    assert not is_held(database)
