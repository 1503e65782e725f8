"""The policy on addresses (L7, X-N1)."""

from __future__ import annotations

import pytest

from searchcrawl.http.address_guard import AddressGuard

STRICT = AddressGuard(private_networks=(), resolve={})


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2001:10::1",
        "2002:7f00:1::",
        "2002:c0a8:101::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "",
        "example.com",
        "127.1",
        "2130706433",
    ],
)
def test_address_when_not_public_then_is_refused_with_rule(address: str) -> None:
    decision = STRICT.decide(address)

    assert not decision.allowed
    assert decision.rule
    assert decision.key == "fetch.private_networks"


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "1.1.1.1",
        "172.15.0.1",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "2002:808:808::1",
        "64:ff9b::808:808",
    ],
)
def test_address_when_public_then_is_allowed(address: str) -> None:
    assert STRICT.decide(address).allowed


@pytest.mark.parametrize(
    ("listed", "address", "allowed"),
    [
        ("127.0.0.1/32", "127.0.0.1", True),
        ("127.0.0.1/32", "::ffff:127.0.0.1", True),
        ("127.0.0.1/32", "127.0.0.2", False),
        ("127.0.0.1/32", "::1", False),
        ("127.0.0.1/32", "2002:7f00:1::", True),
        ("10.0.0.0/8", "10.9.8.7", True),
        ("10.0.0.0/8", "11.0.0.1", True),
        ("10.0.0.0/8", "192.168.0.1", False),
        ("fd00::/8", "fd12::1", True),
        ("fd00::/8", "fe80::1", False),
        ("::1", "::1", True),
    ],
)
def test_address_when_networks_are_listed_then_only_they_open(listed: str, address: str, allowed: bool) -> None:
    guard = AddressGuard(private_networks=[listed], resolve={})

    assert guard.decide(address).allowed is allowed


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("intranet.test", ["10.0.0.1"]),
        ("Intranet.Test.", ["10.0.0.1"]),
        ("a.wild.test", ["10.0.0.2"]),
        ("a.b.wild.test", ["10.0.0.2"]),
        ("own.wild.test", ["10.0.0.3"]),
        ("below.own.wild.test", ["10.0.0.2"]),
        ("wild.test", None),
        ("notwild.test", None),
        ("other.test", None),
        ("localhost", None),
    ],
)
def test_host_when_asked_then_exact_name_goes_before_the_star(host: str, expected: list[str] | None) -> None:
    resolve = {"intranet.test": "10.0.0.1", "*.Wild.test": "10.0.0.2", "own.wild.test": "10.0.0.3"}
    guard = AddressGuard(private_networks=(), resolve=resolve)

    assert guard.addresses_for(host) == expected


def test_named_address_when_it_is_private_then_is_refused_all_the_same() -> None:
    guard = AddressGuard(private_networks=(), resolve={"intranet.test": "10.0.0.1"})

    assert not guard.decide("10.0.0.1").allowed
