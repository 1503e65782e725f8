"""The guard as Twisted's resolver: policies, ``resolve``, and answers that expire (L7, X-N2)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.address import IPv4Address, IPv6Address

from searchcrawl import clock
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.twisted_resolver import GuardedResolver


class Dns:
    """A resolver whose answers a test may change, in the place of Twisted's; the reactor besides."""

    def __init__(self, **answers: list[str]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.nameResolver = self

    def installNameResolver(self, resolver: object) -> None:
        self.installed = resolver

    def resolveHostName(
        self,
        receiver: Receiver,
        host: str,
        port: int = 0,
        types: Sequence[type] | None = None,
        semantics: str = "TCP",
    ) -> object:
        self.asked.append(host)
        receiver.resolutionBegan(self)
        for address in self.answers.get(host.partition(".")[0], [host]):
            kind = IPv6Address if ":" in address else IPv4Address
            receiver.addressResolved(kind("TCP", address, port))
        receiver.resolutionComplete()
        return self


class Receiver:
    """Notes what a resolver tells it."""

    def __init__(self) -> None:
        self.addresses: list[tuple[str, int]] = []
        self.events: list[str] = []

    def resolutionBegan(self, resolution: object) -> None:
        self.events.append("began")

    def addressResolved(self, address: IPv4Address | IPv6Address) -> None:
        self.addresses.append((address.host, address.port))

    def resolutionComplete(self) -> None:
        self.events.append("complete")


def guarded(dns: Dns, *guards: AddressGuard) -> GuardedResolver:
    policies = guards or (AddressGuard(private_networks=["127.0.0.1/32"], resolve={"pinned.test": "127.0.0.1"}),)
    return GuardedResolver(dns, lambda: policies, cache_size=2)


def addresses(resolver: GuardedResolver, host: str) -> list[tuple[str, int]]:
    receiver = Receiver()
    resolver.resolveHostName(receiver, host, 80)
    assert receiver.events == ["began", "complete"]
    return receiver.addresses


@pytest.mark.parametrize("host", ["127.0.0.2", "::1", "10.0.0.1", "evil.test"])
def test_resolver_when_address_is_forbidden_then_there_is_none(host: str) -> None:
    dns = Dns(evil=["192.168.1.1", "fe80::1"])

    assert addresses(guarded(dns), host) == []


def test_resolver_when_some_are_forbidden_then_only_the_others_are_told() -> None:
    dns = Dns(mixed=["127.0.0.2", "127.0.0.1", "8.8.8.8", "::1"])

    assert addresses(guarded(dns), "mixed.test") == [("127.0.0.1", 80), ("8.8.8.8", 80)]


def test_resolver_when_name_is_pinned_then_dns_is_not_asked() -> None:
    dns = Dns()

    assert addresses(guarded(dns), "pinned.test") == [("127.0.0.1", 80)]
    assert dns.asked == []


def test_resolver_when_pinned_address_is_forbidden_then_there_is_none() -> None:
    guard = AddressGuard(private_networks=(), resolve={"pinned.test": "10.0.0.1"})

    assert addresses(guarded(Dns(), guard), "pinned.test") == []


def test_resolver_when_sources_differ_then_all_must_allow() -> None:
    listed = AddressGuard(private_networks=["127.0.0.1/32"], resolve={})
    strict = AddressGuard(private_networks=(), resolve={})

    assert addresses(guarded(Dns(), listed, strict), "127.0.0.1") == []


def test_resolver_when_asked_again_then_answer_is_kept_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    dns = Dns(site=["8.8.8.8"])
    resolver = guarded(dns)
    time = [0.0]
    monkeypatch.setattr(clock, "monotonic", lambda: time[0])

    first = addresses(resolver, "site.test")
    dns.answers["site"] = ["8.8.4.4"]
    time[0] = 59.0
    kept = addresses(resolver, "site.test")
    time[0] = 61.0
    fresh = addresses(resolver, "site.test")

    assert (first, kept, fresh) == ([("8.8.8.8", 80)], [("8.8.8.8", 80)], [("8.8.4.4", 80)])


def test_resolver_when_name_is_rebound_then_the_new_address_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    dns = Dns(site=["8.8.8.8"])
    resolver = guarded(dns)
    time = [0.0]
    monkeypatch.setattr(clock, "monotonic", lambda: time[0])

    addresses(resolver, "site.test")
    dns.answers["site"] = ["169.254.169.254"]
    time[0] = 61.0

    assert addresses(resolver, "site.test") == []


def test_resolver_when_many_names_are_asked_then_it_forgets_the_oldest() -> None:
    dns = Dns(a=["8.8.8.1"], b=["8.8.8.2"], c=["8.8.8.3"])
    resolver = guarded(dns)

    for host in ("a.test", "b.test", "c.test", "c.test", "a.test"):
        addresses(resolver, host)

    assert dns.asked == ["a.test", "b.test", "c.test", "a.test"]


def test_resolver_when_installed_then_reactor_asks_it() -> None:
    dns = Dns()
    resolver = guarded(dns)

    resolver.install_on_reactor()

    assert dns.installed is resolver


def test_c12_resolver_when_a_host_is_asked_for_during_its_lookup_then_the_answer_is_for_all() -> None:
    dns, later = Dns(a=["8.8.8.1"]), []
    answer_at_once = dns.resolveHostName
    dns.resolveHostName = lambda *values: later.append(values)  # type: ignore[method-assign]
    resolver = guarded(dns)
    receivers = [Receiver() for _ in range(3)]

    for port, receiver in enumerate(receivers, start=80):
        resolver.resolveHostName(receiver, "a.test", port)
    before = [list(receiver.addresses) for receiver in receivers]
    (first,) = later
    answer_at_once(*first)

    assert before == [[], [], []]
    assert [receiver.addresses for receiver in receivers] == [[("8.8.8.1", 80)], [("8.8.8.1", 81)], [("8.8.8.1", 82)]]
    assert {tuple(receiver.events) for receiver in receivers} == {("began", "complete")}
    assert dns.asked == ["a.test"]
