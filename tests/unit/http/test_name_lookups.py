"""One lookup for each host while its answer holds, for all crawls of a store, and the address that is connected is checked."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from searchcrawl import clock
from searchcrawl.exceptions import StoreAway
from searchcrawl.http import shared_names
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.connector import AddressForbidden, GuardedResolver
from searchcrawl.http.name_cache import CONFIRMED_SECONDS
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.http.shared_names import SharedNames
from searchcrawl.store import name_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.name_table import CLAIMED_MS, FAILED_MS, KEPT_MS, DnsAnswer, Turn
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.schema import name_answers, name_turns

SECONDS = KEPT_MS / 1000


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [1000.0]
    monkeypatch.setattr(clock, "monotonic", lambda: moment[0])
    return moment


class Dns:
    """What the system's resolver answers, and how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: list[str]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.moments: list[float] = []
        self.pause = 0.0
        monkeypatch.setattr(socket, "getaddrinfo", self._getaddrinfo)

    def _getaddrinfo(self, host: str, port: int, *rest: Any, **more: Any) -> list[Any]:
        self.asked.append(host)
        self.moments.append(time.monotonic())
        time.sleep(self.pause)
        addresses = self.answers.get(host.partition(".")[0])
        if addresses is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Dns:
    return Dns(monkeypatch, a=["8.8.8.1"], b=["8.8.8.2"], mixed=["10.0.0.1", "8.8.8.3"])


@pytest.fixture
def databases(tmp_path: Path, store_url: str) -> Iterator[list[Database]]:
    """Those of two processes, which crawl a source each: the first one that with the id 1."""
    found = [Database(store_url, tmp_path) for _ in range(2)]
    for each, name in zip(found, ("one", "two"), strict=True):
        lease_source(each, name)
    yield found
    for each in found:
        each.close()


def lease_source(database: Database, name: str) -> lease.Lease:
    source_id = database.write(run_table.find_or_add_source, name)
    return database.write(lease.take, source_id, name=name)


def share(databases: list[Database], *, per_second: float = 0.0) -> list[NameLookups]:
    """The look-ups of the processes."""
    return [
        NameLookups(SharedNames(each, source_id=number, per_second=per_second), per_second=per_second)
        for number, each in enumerate(databases, 1)
    ]


def list_rows(database: Database) -> list[Any]:
    with database.read_once() as opened:
        return [*opened.execute(select(name_answers)).all(), *opened.execute(select(name_turns)).all()]


def looking_up(steps: Callable[..., Coroutine[Any, Any, Any]], *all_lookups: NameLookups) -> Any:
    async def run() -> Any:
        try:
            return await steps(*all_lookups)
        finally:
            for lookups in all_lookups:
                await lookups.close()

    return asyncio.run(run())


def resolving(steps: Callable[[GuardedResolver], Coroutine[Any, Any, Any]]) -> Any:
    guard = AddressGuard(private_networks=(), resolve={})
    return looking_up(lambda lookups: steps(GuardedResolver(guard, lookups)), NameLookups())


def test_c12_resolver_when_a_host_is_asked_for_on_several_ports_then_dns_is_asked_once(
    now: list[float], dns: Dns
) -> None:
    async def steps(resolver: GuardedResolver) -> list[Any]:
        return [*await resolver.resolve("a.test", 80), *await resolver.resolve("A.test", 443)]

    found = resolving(steps)

    assert [(one["host"], one["port"]) for one in found] == [("8.8.8.1", 80), ("8.8.8.1", 443)]
    assert dns.asked == ["a.test"]


def test_c12_resolver_when_many_ask_at_once_then_they_share_one_lookup(dns: Dns) -> None:
    async def steps(resolver: GuardedResolver) -> list[Any]:
        return await asyncio.gather(*(resolver.resolve("a.test", 80) for _ in range(20)))

    found = resolving(steps)

    assert len(found) == 20
    assert dns.asked == ["a.test"]


def test_n2_resolver_when_dns_says_something_else_later_then_that_is_checked(now: list[float], dns: Dns) -> None:
    async def steps(resolver: GuardedResolver) -> Any:
        before = await resolver.resolve("a.test", 80)
        dns.answers["a"] = ["127.0.0.1"]
        still = await resolver.resolve("a.test", 80)
        now[0] += SECONDS
        with pytest.raises(AddressForbidden, match=r"127\.0\.0\.1 may not be reached"):
            await resolver.resolve("a.test", 80)
        return before == still

    assert resolving(steps)
    assert dns.asked == ["a.test", "a.test"]


def test_n2_resolver_when_some_addresses_are_forbidden_then_the_others_are_left(now: list[float], dns: Dns) -> None:
    found = resolving(lambda resolver: resolver.resolve("mixed.test", 80))

    assert [one["host"] for one in found] == ["8.8.8.3"]


def test_resolver_when_a_name_is_unknown_then_all_who_ask_hear_it_and_it_is_asked_for_again_soon(
    now: list[float], dns: Dns
) -> None:
    async def steps(resolver: GuardedResolver) -> list[Any]:
        asked = [resolver.resolve("gone.test", 80) for _ in range(3)]
        answers = [*await asyncio.gather(*asked, return_exceptions=True)]
        dns.answers["gone"] = ["8.8.8.9"]
        with pytest.raises(OSError, match="not known"):
            await resolver.resolve("gone.test", 80)
        now[0] += FAILED_MS / 1000
        return [*answers, *await resolver.resolve("gone.test", 80)]

    *errors, found = resolving(steps)

    assert [isinstance(error, OSError) for error in errors] == [True] * 3
    assert found["host"] == "8.8.8.9"
    assert dns.asked == ["gone.test", "gone.test"]


def test_host_when_it_is_resolved_by_the_file_or_is_an_address_then_nobody_looks_it_up(dns: Dns) -> None:
    guard = AddressGuard(private_networks=(), resolve={"*.test": "8.8.8.7"})

    async def steps(lookups: NameLookups) -> list[Any]:
        for url in ("http://a.test/", "http://8.8.8.1:81/", "http://[2001:4860::1]/", "http://[", "mailto:a"):
            await lookups.prepare(url, guard)
        return await GuardedResolver(guard, lookups).resolve("a.test", 80)

    (found,) = looking_up(steps, NameLookups(per_second=1))

    assert found["host"] == "8.8.8.7"
    assert dns.asked == []


def test_c12_lookups_when_two_processes_need_the_same_names_then_each_is_looked_up_once(
    databases: list[Database], dns: Dns
) -> None:
    dns.pause = 0.2
    names = ["a.test", "b.test", "mixed.test", "gone.test"]

    async def steps(one: NameLookups, two: NameLookups) -> list[Any]:
        asked = [lookups.find(name) for lookups in (one, two) for name in names]
        return await asyncio.gather(*asked, return_exceptions=True)

    found = looking_up(steps, *share(databases))

    assert sorted(dns.asked) == sorted(names)
    assert found[:3] == found[4:7] == [("8.8.8.1",), ("8.8.8.2",), ("10.0.0.1", "8.8.8.3")]
    assert [str(found[3]), str(found[7])] == ["Name or service not known"] * 2


def test_c12_lookups_when_they_are_limited_then_all_processes_together_keep_the_limit(
    databases: list[Database], dns: Dns
) -> None:
    dns.answers |= {str(number): ["8.8.8.1"] for number in range(8)}

    async def steps(one: NameLookups, two: NameLookups) -> None:
        names = [f"{number}.test" for number in range(8)]
        found = [*map(one.find, names[:4]), *map(two.find, names[4:])]
        await asyncio.gather(*found)

    looking_up(steps, *share(databases, per_second=10))

    moments = sorted(dns.moments)
    assert len(moments) == 8
    # Each is late by the scheduling of the machine, and none is early by more than that.
    assert moments[-1] - moments[0] > 0.6


def test_lookups_when_a_process_died_in_the_middle_of_one_then_another_one_does_it(
    databases: list[Database], dns: Dns
) -> None:
    claimed = databases[0].write(name_table.claim, ["a.test"], interval_ms=0)
    with databases[1].write_once() as opened:
        waits = name_table.claim(opened, ["a.test"], interval_ms=0)
        held = opened.execute(select(name_answers.c.until_ms)).scalar_one()
        # Its time is over.
        opened.execute(update(name_answers).values(until_ms=held - CLAIMED_MS))

    found = looking_up(lambda lookups: lookups.find("a.test"), share(databases)[1])

    assert (claimed, waits) == ({"a.test": Turn(0)}, {"a.test": None})
    assert (found, dns.asked) == (("8.8.8.1",), ["a.test"])


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ({"addresses": "127.0.0.1"}, ["127.0.0.1"]),
        ({"addresses": "8.8.8.8 nonsense ::1 \x1b[31m 8.8.4.4; fe80::1%eth0"}, ["8.8.8.8", "::1", "fe80::1%eth0"]),
        ({"addresses": " ".join(f"8.8.{number // 250}.{number % 250}" for number in range(500))}, None),
        ({"addresses": ""}, []),
        ({"addresses": None, "error": "\x1b[31mno" * 500}, []),
    ],
)
def test_n2_answer_when_somebody_else_wrote_it_then_it_is_read_with_care_and_judged_as_one_of_dns(
    databases: list[Database], dns: Dns, row: dict[str, Any], kept: list[str] | None
) -> None:
    with databases[0].write_once() as opened:
        name_table.tell(opened, {"a.test": DnsAnswer(("8.8.8.1",))})
        opened.execute(update(name_answers).values(row))
    answer = databases[0].read(name_table.find, ["a.test"])["a.test"]
    guard = AddressGuard(private_networks=(), resolve={})
    resolver = lambda lookups: GuardedResolver(guard, lookups).resolve("a.test", 80)

    assert answer is not None
    assert kept is None or list(answer.addresses) == kept
    assert len(answer.addresses) <= 64
    assert answer.error is None or (answer.error.isprintable() and len(answer.error) < 1000)
    if kept == ["127.0.0.1"]:
        with pytest.raises(AddressForbidden):
            looking_up(resolver, share(databases)[1])
        assert dns.asked == []


def test_answers_when_the_clock_was_ahead_or_they_are_old_then_they_do_not_hold_and_go(
    databases: list[Database], dns: Dns
) -> None:
    names = ("a.test", "b.test", "mixed.test")
    with databases[0].write_once() as opened:
        name_table.tell(opened, {name: DnsAnswer(("8.8.8.9",)) for name in names})
        opened.execute(update(name_answers).where(name_answers.c.name == "b.test").values(until_ms=10**15))
        opened.execute(update(name_answers).where(name_answers.c.name == "mixed.test").values(until_ms=1))
        name_table.claim(opened, ["c.test"], interval_ms=1000)
        opened.execute(update(name_turns).values(next_ms=10**15, noted_ms=10**15 - 500))
        turn = name_table.claim(opened, ["d.test"], interval_ms=1000)["d.test"]
        found = name_table.find(opened, names)
        name_table.drop_old(opened)
        left = list(opened.execute(select(name_answers.c.name).order_by(name_answers.c.name)).scalars())

    assert list(found) == ["a.test"]
    assert left == ["a.test", "c.test", "d.test"]
    # What a clock that was ahead noted holds no longer than it did then.
    assert isinstance(turn, Turn)
    assert turn.wait_ms <= 500


def test_lookups_when_the_store_is_away_or_slow_then_they_go_on_alone(
    databases: list[Database], dns: Dns, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = threading.Event()
    monkeypatch.setattr(shared_names, "_SLOW_SECONDS", 0.2)

    class Away:
        def read_once(self) -> Any:
            raise StoreAway("away")

        write_once = read_once

    class Slow:
        def read_once(self) -> Any:
            slow.wait(10)
            raise StoreAway("slow")

        write_once = read_once

    async def steps(one: NameLookups, two: NameLookups) -> list[Any]:
        found = [await one.find("a.test"), await two.find("a.test")]
        began = time.monotonic()
        found += [await one.find("b.test"), await two.find("b.test")]
        assert time.monotonic() - began < 0.15
        slow.set()
        return found

    found = looking_up(steps, *share([Away(), Slow()]))  # type: ignore[list-item]

    assert found == [("8.8.8.1",), ("8.8.8.1",), ("8.8.8.2",), ("8.8.8.2",)]
    assert dns.asked == ["a.test", "a.test", "b.test", "b.test"]


def test_lookups_when_something_of_ours_fails_then_nobody_waits_for_ever(
    databases: list[Database], dns: Dns, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(name_table, "find", lambda *arguments: 1 / 0)

    found = looking_up(lambda lookups: lookups.find("a.test"), share(databases)[0])

    assert found == ("8.8.8.1",)
    assert "ZeroDivisionError" in caplog.text


def test_lookups_when_dns_does_not_answer_then_it_is_asked_again_before_a_visit_is_repeated(
    now: list[float], dns: Dns, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(lookups: NameLookups) -> tuple[str, ...]:
        answer = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", silent)
        with pytest.raises(OSError, match="Temporary"):
            await lookups.find("a.test")
        monkeypatch.setattr(socket, "getaddrinfo", answer)
        now[0] += 1.0
        return await lookups.find("a.test")

    def silent(*arguments: Any, **more: Any) -> Any:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    assert looking_up(steps, NameLookups()) == ("8.8.8.1",)


def test_lookups_when_a_name_cannot_be_stored_then_it_is_looked_up_without_the_others(
    databases: list[Database], dns: Dns
) -> None:
    long = f"a.{'x' * 300}"
    found = looking_up(lambda lookups: lookups.find(long), share(databases)[0])
    with databases[0].read_once() as opened:
        rows = opened.execute(select(name_answers)).all()

    assert (found, rows, dns.asked) == (("8.8.8.1",), [], [long])


def test_c12_lookups_when_no_other_source_is_crawled_then_the_store_has_no_rows_of_them_and_the_limit_is_kept(
    tmp_path: Path, store_url: str, dns: Dns
) -> None:
    dns.answers |= {str(number): ["8.8.8.1"] for number in range(6)}
    database = Database(store_url, tmp_path)
    lease_source(database, "one")

    async def steps(lookups: NameLookups) -> None:
        await asyncio.gather(*(lookups.find(f"{number}.test") for number in range(6)))

    looking_up(steps, *share([database], per_second=10))
    rows = list_rows(database)
    database.close()

    assert rows == []
    assert len(dns.asked) == 6
    assert max(dns.moments) - min(dns.moments) > 0.4


def test_c12_lookups_when_another_source_is_crawled_from_now_on_then_both_keep_the_limit_together(
    tmp_path: Path, store_url: str, dns: Dns
) -> None:
    dns.answers |= {str(number): ["8.8.8.1"] for number in range(60)}
    databases = [Database(store_url, tmp_path) for _ in range(2)]
    lease_source(databases[0], "one")

    async def steps(one: NameLookups, two: NameLookups) -> None:
        first = asyncio.gather(*(one.find(f"{number}.test") for number in range(40)))
        await asyncio.sleep(1.5)
        lease_source(databases[1], "two")
        await asyncio.gather(first, *(two.find(f"{number}.test") for number in range(40, 60)))

    looking_up(steps, *share(databases, per_second=10))
    rows = list_rows(databases[1])
    for each in databases:
        each.close()

    moments = sorted(dns.moments)
    assert len(moments) == 60
    # No more in any second than the limit, but for what the machine is late.
    assert all(later - sooner > 0.6 for sooner, later in zip(moments, moments[10:], strict=False))
    assert len(rows) > 20


def test_c12_lookups_when_another_source_is_crawled_no_more_then_nothing_is_written(
    databases: list[Database], dns: Dns
) -> None:
    with databases[1].write_once() as opened:
        lease.release(opened, lease.Lease(2, 1))

    found = looking_up(lambda lookups: lookups.find("a.test"), share(databases)[0])

    assert (found, list_rows(databases[0])) == (("8.8.8.1",), [])


def test_lookups_when_they_are_made_ahead_then_names_that_are_needed_now_go_first_and_none_twice(dns: Dns) -> None:
    names = [f"{number:02}.test" for number in range(20)]
    dns.answers |= {name.partition(".")[0]: ["8.8.8.1"] for name in names}

    async def steps(lookups: NameLookups) -> None:
        answered = asyncio.Queue[str]()
        await lookups.find(names[0])
        lookups.on_answer = answered.put_nowait
        lookups.look_ahead([*names[:19], names[1]])
        await asyncio.sleep(0.25)
        assert not lookups.is_known(names[19])
        for _ in names[1:]:
            await answered.get()
        assert all(map(lookups.is_known, names))
        await asyncio.sleep(0.5)

    looking_up(steps, NameLookups(per_second=5))

    assert sorted(dns.asked) == names
    # Those of the next second have their turns already.
    assert dns.asked.index(names[19]) < 10
    assert all(later - sooner > 0.1 for sooner, later in pairwise(sorted(dns.moments)))


def test_lookups_when_name_servers_are_slow_or_silent_then_others_do_not_wait_for_them(
    dns: Dns, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, over = socket.getaddrinfo, threading.Event()

    def ask(host: str, *rest: Any, **more: Any) -> Any:
        if host.startswith("silent"):
            over.wait(20)
        return answer(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", ask)

    async def steps(lookups: NameLookups) -> tuple[Any, ...]:
        silent = [asyncio.ensure_future(lookups.find(f"silent{number}.test")) for number in range(100)]
        found = await asyncio.wait_for(lookups.find("a.test"), 5)
        # What the threads of asyncio are for does not wait either.
        await asyncio.wait_for(asyncio.to_thread(int), 5)
        assert not any(each.done() for each in silent)
        errors = await asyncio.gather(*silent, return_exceptions=True)
        over.set()
        return found, {str(error) for error in errors}

    found, errors = looking_up(steps, NameLookups(timeout_seconds=3))

    assert (found, errors) == (("8.8.8.1",), {"no answer of DNS within 3 s"})


def test_lookups_when_more_is_to_be_looked_up_ahead_than_fits_then_the_first_is_dropped_and_what_waits_for_long(
    now: list[float], dns: Dns
) -> None:
    dns.answers |= {str(number): ["8.8.8.1"] for number in range(20_000)}

    async def steps(lookups: NameLookups) -> None:
        # There is no loop yet that it knows: they wait.
        answered = asyncio.Queue[str]()
        lookups.on_answer = answered.put_nowait
        lookups.look_ahead(f"{number}.test" for number in range(10_003))
        await lookups.find("a.test")
        for _ in range(10_001):
            await answered.get()
        assert [lookups.is_known(f"{number}.test") for number in (3, 10_002)] == [True, True]

    async def later(lookups: NameLookups) -> None:
        lookups.look_ahead(["b.test"])
        now[0] += 60
        await lookups.find("a.test")
        await asyncio.sleep(0.1)

    looking_up(steps, NameLookups())
    asked = [name for name in ("0.test", "2.test") if name in dns.asked]
    dns.asked.clear()
    looking_up(later, NameLookups())

    assert (asked, dns.asked) == ([], ["a.test"])


def test_cache_when_a_server_answers_at_an_address_then_it_holds_for_longer_and_no_connection_ends_that(
    now: list[float], dns: Dns
) -> None:
    async def steps(lookups: NameLookups) -> None:
        await lookups.find("a.test")
        lookups.confirm("a.test")
        now[0] += CONFIRMED_SECONDS - 1
        lookups.confirm("a.test")
        await lookups.find("a.test")
        now[0] += 1
        await lookups.find("a.test")
        sent_at = now[0]
        now[0] += 1
        lookups.forget("a.test", before=sent_at)
        await lookups.find("a.test")
        # Another request that was sent before says nothing of the new answer.
        lookups.forget("a.test", before=sent_at)
        await lookups.find("a.test")

    looking_up(steps, NameLookups())

    assert dns.asked == ["a.test"] * 3


def test_cache_when_there_is_no_address_and_nobody_waited_then_the_first_use_does_not_ask_again(
    now: list[float], dns: Dns
) -> None:
    async def steps(lookups: NameLookups) -> None:
        answered = asyncio.Queue[str]()
        lookups.on_answer = answered.put_nowait
        assert not lookups.is_known("gone.test")
        await answered.get()
        now[0] += FAILED_MS / 1000 + 1
        assert lookups.is_known("gone.test")
        for _ in range(2):
            with pytest.raises(OSError, match="not known"):
                await lookups.find("gone.test")
        now[0] += FAILED_MS / 1000
        with pytest.raises(OSError, match="not known"):
            await lookups.find("gone.test")

    looking_up(steps, NameLookups())

    assert dns.asked == ["gone.test"] * 2


def test_lookups_when_a_name_cannot_be_one_of_a_host_then_that_is_said(
    dns: Dns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()

    async def steps(lookups: NameLookups) -> None:
        with pytest.raises(OSError, match="no name of a host"):
            await lookups.find(f"{'x' * 64}.test")

    looking_up(steps, NameLookups())


def test_c12_lookups_when_another_process_makes_them_all_then_what_it_knows_waits_for_no_turn(dns: Dns) -> None:
    class Run:
        """The process of a run, as its members see it: one name has its turn late."""

        confirmed_seconds = 0.0
        look_all_up = True

        def __init__(self) -> None:
            self.turn = asyncio.Event()
            self.told: list[str] = []

        async def find(self, name: str) -> DnsAnswer:
            if name == "late.test":
                await self.turn.wait()
            return DnsAnswer(("8.8.8.1",))

        def tell(self, name: str, answer: DnsAnswer) -> None:
            self.told.append(name)

        def confirm(self, name: str) -> None:
            self.told.append(f"confirmed {name}")

        def forget(self, name: str) -> None:
            self.told.append(f"forgotten {name}")

        def close(self) -> None:
            self.told.append("closed")

    async def steps() -> list[str]:
        run = Run()
        lookups = NameLookups(run, per_second=1)
        late = asyncio.ensure_future(lookups.find("late.test"))
        await asyncio.wait_for(asyncio.gather(*(lookups.find(f"{number}.test") for number in range(9))), 5)
        assert not late.done()
        run.turn.set()
        await late
        for _ in range(2):
            lookups.confirm("1.test")
            lookups.forget("2.test", before=time.monotonic())
        await lookups.close()
        return run.told

    assert asyncio.run(steps()) == ["confirmed 1.test", "forgotten 2.test", "closed"]
    assert dns.asked == []
