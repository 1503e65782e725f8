"""One lookup for each host while its answer is fresh, and the address that is connected is checked (C12, X-N2)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from searchcrawl import clock
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.connector import DNS_SECONDS, AddressForbidden, DnsCache, GuardedResolver


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
        monkeypatch.setattr(socket, "getaddrinfo", self._getaddrinfo)

    def _getaddrinfo(self, host: str, port: int, *rest: Any, **more: Any) -> list[Any]:
        self.asked.append(host)
        addresses = self.answers.get(host.partition(".")[0])
        if addresses is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Dns:
    return Dns(monkeypatch, a=["8.8.8.1"], b=["8.8.8.2"], mixed=["10.0.0.1", "8.8.8.3"])


def resolving(steps: Callable[[GuardedResolver], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        resolver = GuardedResolver(AddressGuard(private_networks=(), resolve={}))
        try:
            return await steps(resolver)
        finally:
            await resolver.close()

    return asyncio.run(run())


def test_cache_when_an_answer_is_old_then_it_is_forgotten(now: list[float]) -> None:
    cache = DnsCache(most_hosts=10)
    cache.store("a.test", ["8.8.8.1"])
    now[0] += DNS_SECONDS - 0.1
    fresh = cache.find("a.test")

    now[0] += 0.1

    assert fresh == ("8.8.8.1",)
    assert cache.find("a.test") is None


def test_cache_when_full_then_the_oldest_goes(now: list[float]) -> None:
    cache = DnsCache(most_hosts=2)

    for host in ("a", "b", "a", "c"):
        cache.store(host, ["8.8.8.1"])
    cache.store("empty", [])

    assert [cache.find(host) is None for host in ("a", "b", "c", "empty")] == [False, True, False, True]


def test_c12_resolver_when_a_host_is_asked_for_on_several_ports_then_dns_is_asked_once(
    now: list[float], dns: Dns
) -> None:
    async def steps(resolver: GuardedResolver) -> list[Any]:
        return [*await resolver.resolve("a.test", 80), *await resolver.resolve("a.test", 443)]

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
        now[0] += DNS_SECONDS
        with pytest.raises(AddressForbidden, match=r"127\.0\.0\.1 may not be reached"):
            await resolver.resolve("a.test", 80)
        return before == still

    assert resolving(steps)
    assert dns.asked == ["a.test", "a.test"]


def test_n2_resolver_when_some_addresses_are_forbidden_then_the_others_are_left(now: list[float], dns: Dns) -> None:
    found = resolving(lambda resolver: resolver.resolve("mixed.test", 80))

    assert [one["host"] for one in found] == ["8.8.8.3"]


def test_resolver_when_a_name_is_unknown_then_all_who_asked_hear_it_and_it_is_asked_for_again(dns: Dns) -> None:
    async def steps(resolver: GuardedResolver) -> list[Any]:
        asked = [resolver.resolve("gone.test", 80) for _ in range(3)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        dns.answers["gone"] = ["8.8.8.9"]
        return [*answers, *await resolver.resolve("gone.test", 80)]

    *errors, found = resolving(steps)

    assert [isinstance(error, OSError) for error in errors] == [True] * 3
    assert found["host"] == "8.8.8.9"
    assert dns.asked == ["gone.test", "gone.test"]
