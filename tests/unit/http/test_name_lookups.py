"""One lookup for each host while its answer holds, for all crawls of a store, and the address that is connected is checked."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from searchcrawl import clock
from searchcrawl.exceptions import StoreAway
from searchcrawl.http import name_lookups as shared_names
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.connector import AddressForbidden, GuardedResolver
from searchcrawl.http.name_lookups import NameCache, NameLookups, SharedNames
from searchcrawl.store import name_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.name_table import CLAIMED_MS, FAILED_MS, KEPT_MS, DnsAnswer, Turn
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
    """Those of two processes."""
    found = [Database(store_url, tmp_path) for _ in range(2)]
    yield found
    for each in found:
        each.close()


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


def test_cache_when_an_answer_is_old_then_it_is_forgotten(now: list[float]) -> None:
    cache = NameCache(most_names=10)
    cache.store("a.test", DnsAnswer(("8.8.8.1",)))
    cache.store("gone.test", DnsAnswer((), "unknown", FAILED_MS))
    now[0] += FAILED_MS / 1000
    failed = cache.find("gone.test")
    now[0] += SECONDS - FAILED_MS / 1000 - 0.1
    fresh = cache.find("a.test")

    now[0] += 0.1

    assert (failed, fresh) == (None, DnsAnswer(("8.8.8.1",)))
    assert cache.find("a.test") is None


def test_cache_when_full_then_the_oldest_goes(now: list[float]) -> None:
    cache = NameCache(most_names=2)

    for host in ("a", "b", "a", "c"):
        cache.store(host, DnsAnswer(("8.8.8.1",)))

    assert [cache.find(host) is None for host in ("a", "b", "c")] == [False, True, False]


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

    found = looking_up(steps, *(NameLookups(SharedNames(each)) for each in databases))

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

    looking_up(steps, *(NameLookups(SharedNames(each, per_second=10), per_second=10) for each in databases))

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

    found = looking_up(lambda lookups: lookups.find("a.test"), NameLookups(SharedNames(databases[1])))

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
            looking_up(resolver, NameLookups(SharedNames(databases[1])))
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

    found = looking_up(steps, *(NameLookups(SharedNames(each())) for each in (Away, Slow)))  # type: ignore[arg-type]

    assert found == [("8.8.8.1",), ("8.8.8.1",), ("8.8.8.2",), ("8.8.8.2",)]
    assert dns.asked == ["a.test", "a.test", "b.test", "b.test"]


def test_lookups_when_something_of_ours_fails_then_nobody_waits_for_ever(
    databases: list[Database], dns: Dns, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(name_table, "find", lambda *arguments: 1 / 0)

    found = looking_up(lambda lookups: lookups.find("a.test"), NameLookups(SharedNames(databases[0])))

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
    found = looking_up(lambda lookups: lookups.find(long), NameLookups(SharedNames(databases[0])))
    with databases[0].read_once() as opened:
        rows = opened.execute(select(name_answers)).all()

    assert (found, rows, dns.asked) == (("8.8.8.1",), [], [long])
