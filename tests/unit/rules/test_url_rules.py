"""URL globs and declared expressions of the boundary (B4)."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.url_rules import HostScope

FILE = "sources/x.toml"


def boundary(**rules: Any) -> Boundary:
    return Boundary(file=FILE, **rules)


@pytest.mark.parametrize(
    ("rule", "url", "excluded"),
    [
        ("*.PDF", "http://a.test/x.pdf", True),
        ("*.pdf", "http://a.test/x.pdf?y", False),
        ("*.pdf", "http://a.test/xpdf", False),
        ("*/print/*", "http://a.test/1/PRINT/2", True),
        ("*/print/", "http://a.test/print/2", False),
        ("http://a.test/x", "http://a.test/x", True),
        ("http://a.test/x", "http://a.test/xy", False),
        ("a.test/x", "http://a.test/x", False),
        ("http://a.test/*/c*e", "http://a.test/b/cde", True),
        ("*?id=[1]", "http://a.test/x?id=[1]", True),
        ("*?id=[1]", "http://a.test/x?id=1", False),
        ("*/café/*", "http://a.test/caf%C3%A9/x", True),
        ("*/a b/*", "http://a.test/a%20b/x", True),
        ("*/%7euser/*", "http://a.test/~user/", True),
        ("*", "http://a.test/", True),
        # A group of the same name as in the rule before.
        ("re:/(?P<x>b)/", "http://a.test/b/", True),
        ("http://a*a.test/*", "http://a.test/", False),
        ("re:x=[0-9]+$", "http://a.test/?x=12", True),
        ("re:x=[0-9]+$", "http://a.test/?x=12a", False),
        ("re:/X/", "http://a.test/x/", False),
        ("re:(?i)/X/", "http://a.test/x/", True),
        ("re:^http://a", "http://a.test/", True),
        # A host of another script is compared as punycode.
        ("https://bücher.example/*", "https://xn--bcher-kva.example/x", True),
    ],
)
def test_url_rule_when_asked_then_is_a_glob_or_a_declared_expression(rule: str, url: str, excluded: bool) -> None:
    decision = boundary(allow_all=True, exclude_urls=["*/never-there/*", "re:/(?P<x>never)/", rule]).decide(url)

    assert decision.allowed is not excluded
    assert decision.rule == (rule if excluded else "allow_all")
    assert decision.key == ("scope.exclude_urls" if excluded else "scope.allow_all")


def test_include_urls_when_no_hosts_are_given_then_decide_alone() -> None:
    rules = boundary(include_urls=["http://a.test/docs/*"])

    inside, outside = rules.decide("http://a.test/docs/1"), rules.decide("http://b.test/docs/1")

    assert inside == Decision(True, "http://a.test/docs/*", FILE, "scope.include_urls")
    assert outside == Decision(False, "no include matches", FILE, "scope.include_urls")


def test_include_urls_when_hosts_are_given_then_both_must_agree() -> None:
    rules = boundary(include_hosts=["a.test"], include_urls=["*/docs/*"])

    assert rules.decide("http://a.test/docs/1").key == "scope.include_urls"
    assert rules.decide("http://a.test/x").key == "scope.include_urls"
    assert rules.decide("http://b.test/docs/1").key == "scope.include_hosts"


@pytest.mark.parametrize(
    ("rule", "url", "excluded"),
    [
        ("*/app#/admin*", "http://a.test/app#/admin/x", True),
        ("*/app#/admin*", "http://a.test/app#/users", False),
        ("*#!a {b}|é", "http://a.test/#!a%20{b}|%C3%A9", True),
        ("*/app", "http://a.test/app#/users", False),
        ("re:#/[0-9]+$", "http://a.test/app#/12", True),
        ("*/c#x", "http://a.test/c%23x", True),
    ],
)
def test_url_rule_when_urls_have_routes_then_sees_them(rule: str, url: str, excluded: bool) -> None:
    rules = boundary(allow_all=True, exclude_urls=[rule], hash_routes=True)

    assert rules.decide(url).allowed is not excluded


def test_url_with_a_route_when_there_are_none_then_is_refused_by_the_key() -> None:
    decision = boundary(allow_all=True).decide("http://a.test/app#/users")

    assert decision == Decision(False, "hash_routes = false", FILE, "scope.hash_routes")


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
        ({"hosts": [HostScope(host="a.test", include_ports=(8080,))]}, 80, False, "scope.host[0].include_ports"),
        ({"hosts": [HostScope(host="a.test", include_ports=(8080,))]}, 8080, True, "scope.include_hosts"),
        ({"hosts": [HostScope(host="a.test", exclude_ports=(8080,))]}, 8080, False, "scope.host[0].exclude_ports"),
        ({"hosts": [HostScope(host="b.test", exclude_ports=(8080,))]}, 8080, True, "scope.include_hosts"),
        (
            {"include_ports": [80], "hosts": [HostScope(host="a.test", include_ports=(8080,))]},
            8080,
            True,
            "scope.include_hosts",
        ),
        (
            {"include_ports": [8080], "hosts": [HostScope(host="a.test", exclude_ports=(8080,))]},
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
            HostScope(host="a.test", include_paths=("/a/",), exclude_paths=("/b/no/",)),
            HostScope(host="x.a.test", include_paths=("/b/",), exclude_paths=("/a/no/",)),
        ],
    )

    verdicts = {
        path: rules.decide(f"http://x.a.test{path}").allowed for path in ("/a/", "/b/", "/a/no/", "/b/no/", "/c")
    }

    assert verdicts == {"/a/": True, "/b/": True, "/a/no/": False, "/b/no/": False, "/c": False}
    assert not rules.decide("http://a.test/b/").allowed


def test_host_block_when_its_host_is_not_included_then_includes_nothing() -> None:
    rules = boundary(include_hosts=["a.test"], hosts=[HostScope(host="b.test", include_paths=("/",))])

    assert rules.decide("http://b.test/").key == "scope.include_hosts"


def test_paths_when_asked_then_are_raw_prefixes_that_mind_case_and_match_either_spelling() -> None:
    excluded = ("/doc", "/.", "/%70rivate/é", "/a%2fb")
    rules = boundary(allow_all=True, hosts=[HostScope(host="a.test", exclude_paths=excluded)])
    refused = ("doc", "documents/x", "doc?x=1", ".git/", "private/%C3%A9t%C3%A9", "a%2Fb")

    verdicts = {path: rules.decide(f"http://a.test/{path}").allowed for path in (*refused, "Doc", "x/doc", "a/b")}

    assert [path for path, allowed in verdicts.items() if not allowed] == [*refused]


def test_hosts_when_too_many_to_remember_then_verdicts_stay() -> None:
    rules = boundary(include_hosts=["a.test"], exclude_hosts=["h1.a.test"])

    allowed = sum(rules.decide(f"http://h{n}.a.test/").allowed for n in (*range(5000), *range(10)))

    assert allowed == 5010 - 2
