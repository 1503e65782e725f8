"""Hosts, ports and paths of the boundary (B1–B3)."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.host_rules import HostBlock

FILE = "sources/x.toml"


def boundary(**rules: Any) -> Boundary:
    return Boundary(file=FILE, **rules)


@pytest.mark.parametrize(
    ("rule", "url", "allowed"),
    [
        ("=example.com", "http://example.com/", True),
        ("=example.com", "http://www.example.com/", False),
        ("www.*", "http://www.example.com/", True),
        ("www.*", "http://www2.example.com/", False),
        ("www*", "http://www2.example.com/", True),
        ("www.*", "http://x.www.example.com/", False),
        ("EXAMPLE.com", "http://example.com/", True),
        ("example.com.", "http://example.com/", True),
        ("bücher.example", "http://xn--bcher-kva.example/", True),
        ("bücher.*", "http://xn--bcher-kva.example/", True),
        ("127.0.0.1", "http://127.0.0.1:8080/", True),
        ("::1", "http://[::1]:8080/", True),
        ("[::1]", "http://[::1]/", True),
        ("com", "http://example.com/", True),
    ],
)
def test_host_rule_when_asked_then_follows_its_kind(rule: str, url: str, allowed: bool) -> None:
    assert boundary(include_hosts=[rule]).decide(url).allowed is allowed


@pytest.mark.parametrize(
    ("rules", "port", "allowed", "key"),
    [
        ({}, 8080, True, "scope.include_hosts"),
        ({"include_ports": [80]}, 80, True, "scope.include_hosts"),
        ({"include_ports": [80]}, 8080, False, "scope.include_ports"),
        ({"exclude_ports": [8080]}, 80, True, "scope.include_hosts"),
        ({"exclude_ports": [8080]}, 8080, False, "scope.exclude_ports"),
        ({"hosts": [HostBlock(host="a.test", include_ports=(8080,))]}, 80, False, "scope.host[0].include_ports"),
        ({"hosts": [HostBlock(host="a.test", include_ports=(8080,))]}, 8080, True, "scope.include_hosts"),
        ({"hosts": [HostBlock(host="a.test", exclude_ports=(8080,))]}, 8080, False, "scope.host[0].exclude_ports"),
        ({"hosts": [HostBlock(host="b.test", exclude_ports=(8080,))]}, 8080, True, "scope.include_hosts"),
        (
            {"include_ports": [80], "hosts": [HostBlock(host="a.test", include_ports=(8080,))]},
            8080,
            True,
            "scope.include_hosts",
        ),
        (
            {"include_ports": [8080], "hosts": [HostBlock(host="a.test", exclude_ports=(8080,))]},
            8080,
            False,
            "scope.host[0].exclude_ports",
        ),
    ],
)
def test_ports_when_asked_then_add_up_and_exclude_wins(
    rules: dict[str, Any], port: int, allowed: bool, key: str
) -> None:
    decision = boundary(include_hosts=["a.test"], **rules).decide(
        f"http://a.test:{port}/" if port != 80 else "http://a.test/"
    )

    assert (decision.allowed, decision.key) == (allowed, key)


def test_port_when_not_written_then_is_that_of_the_scheme() -> None:
    rules = boundary(include_hosts=["a.test"], include_ports=[443])

    assert rules.decide("https://a.test/").allowed
    assert not rules.decide("http://a.test/").allowed


def test_host_blocks_when_several_match_then_add_up() -> None:
    rules = boundary(
        include_hosts=["a.test"],
        hosts=[
            HostBlock(host="a.test", include_paths=("/a/",), exclude_paths=("/b/no/",)),
            HostBlock(host="x.a.test", include_paths=("/b/",), exclude_paths=("/a/no/",)),
        ],
    )

    verdicts = {
        path: rules.decide(f"http://x.a.test{path}").allowed for path in ("/a/", "/b/", "/a/no/", "/b/no/", "/c")
    }

    assert verdicts == {"/a/": True, "/b/": True, "/a/no/": False, "/b/no/": False, "/c": False}
    assert not rules.decide("http://a.test/b/").allowed


def test_host_block_when_its_host_is_not_included_then_includes_nothing() -> None:
    rules = boundary(include_hosts=["a.test"], hosts=[HostBlock(host="b.test", include_paths=("/",))])

    assert rules.decide("http://b.test/").key == "scope.include_hosts"


def test_paths_when_asked_then_are_raw_prefixes_that_mind_case() -> None:
    rules = boundary(allow_all=True, hosts=[HostBlock(host="a.test", exclude_paths=("/doc", "/."))])

    verdicts = [
        rules.decide(f"http://a.test/{path}").allowed for path in ("doc", "documents/x", "doc?x=1", "Doc", "x/doc")
    ]

    assert verdicts == [False, False, False, True, True]
    assert not rules.decide("http://a.test/.git/").allowed


def test_escapes_when_in_a_rule_then_match_either_spelling() -> None:
    rules = boundary(allow_all=True, hosts=[HostBlock(host="a.test", exclude_paths=("/%70rivate/é", "/a%2fb"))])

    assert not rules.decide("http://a.test/private/%C3%A9t%C3%A9").allowed
    assert not rules.decide("http://a.test/a%2Fb").allowed
    assert rules.decide("http://a.test/a/b").allowed


def test_hosts_when_too_many_to_remember_then_verdicts_stay() -> None:
    rules = boundary(include_hosts=["a.test"], exclude_hosts=["h1.a.test"])

    allowed = sum(rules.decide(f"http://h{n}.a.test/").allowed for n in (*range(5000), *range(10)))

    assert allowed == 5010 - 2
