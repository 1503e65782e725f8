"""The boundary by the worked examples of B1–B4, B7, B9, B12, and the meaning of each key of ``[scope]``."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.boundary import Boundary, refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.url_rules import HostBlock

FILE = "sources/x.toml"


def boundary(**rules: Any) -> Boundary:
    return Boundary(file=FILE, **rules)


ORACLE = boundary(include_hosts=["oracle.com"], exclude_hosts=["uk.oracle.com"])
MANUAL = boundary(
    include_hosts=["www.oracle.com", "otn.oracle.com"],
    hosts=[
        HostBlock(
            host="otn.oracle.com",
            include_paths=("/products/database/", "/products/ias/"),
            exclude_paths=("/products/ias/web_cache/",),
        )
    ],
)


@pytest.mark.parametrize(
    ("url", "allowed", "rule", "key"),
    [
        ("http://oracle.com/", True, "oracle.com", "scope.include_hosts"),
        ("http://x.oracle.com/", True, "oracle.com", "scope.include_hosts"),
        ("http://a.b.oracle.com:8080/c", True, "oracle.com", "scope.include_hosts"),
        ("http://oracle.com./", True, "oracle.com", "scope.include_hosts"),
        ("http://www.oracle.com.tw/", False, "no include matches", "scope.include_hosts"),
        ("http://notoracle.com/", False, "no include matches", "scope.include_hosts"),
        ("http://www.someurl.com/", False, "no include matches", "scope.include_hosts"),
        ("http://uk.oracle.com/", False, "uk.oracle.com", "scope.exclude_hosts"),
        ("http://www.uk.oracle.com/", False, "uk.oracle.com", "scope.exclude_hosts"),
        ("http://uk.oracle.com./", False, "uk.oracle.com", "scope.exclude_hosts"),
        ("http://duk.oracle.com/", True, "oracle.com", "scope.include_hosts"),
    ],
)
def test_hosts_when_asked_then_match_on_label_boundaries(url: str, allowed: bool, rule: str, key: str) -> None:
    decision = ORACLE.decide(url)

    assert decision == Decision(allowed, rule, FILE, key)


@pytest.mark.parametrize(
    ("url", "allowed", "rule", "key"),
    [
        ("http://otn.oracle.com/products/ias/x", True, "/products/ias/", "scope.host[0].include_paths"),
        ("http://otn.oracle.com/products/database/", True, "/products/database/", "scope.host[0].include_paths"),
        (
            "http://otn.oracle.com/products/ias/web_cache/x",
            False,
            "/products/ias/web_cache/",
            "scope.host[0].exclude_paths",
        ),
        ("http://otn.oracle.com/other", False, "no include matches", "scope.host[0].include_paths"),
        ("http://otn.oracle.com/", False, "no include matches", "scope.host[0].include_paths"),
        ("http://www.oracle.com/any", True, "www.oracle.com", "scope.include_hosts"),
        ("http://uk.oracle.com/products/ias/", False, "no include matches", "scope.include_hosts"),
    ],
)
def test_manuals_example_when_asked_then_answers_as_printed(url: str, allowed: bool, rule: str, key: str) -> None:
    decision = MANUAL.decide(url)

    assert decision == Decision(allowed, rule, FILE, key)


def test_exclude_when_an_include_is_more_specific_then_still_wins() -> None:
    rules = boundary(include_hosts=["www.a.test"], exclude_hosts=["a.test"], include_urls=["http://www.a.test/x"])

    assert rules.decide("http://www.a.test/x").rule == "a.test"


def test_steps_when_all_would_refuse_then_the_first_in_order_is_named() -> None:
    block = HostBlock(host="a.test", exclude_paths=("/x",), exclude_ports=(81,))
    url = "http://a.test:81/x.pdf?q"
    rules: dict[str, Any] = {"allow_all": True, "dynamic_pages": False}

    keys = [boundary(**rules).decide(url).key]
    for more in (
        {"exclude_urls": ["*.pdf*"]},
        {"hosts": [HostBlock(host="a.test", exclude_paths=("/x",))]},
        {"hosts": [block]},
        {"exclude_hosts": ["a.test"]},
        {"max_url_length": 10},
    ):
        rules |= more
        keys.append(boundary(**rules).decide(url).key)

    assert keys == [
        "scope.dynamic_pages",
        "scope.exclude_urls",
        "scope.host[0].exclude_paths",
        "scope.host[0].exclude_ports",
        "scope.exclude_hosts",
        "scope.max_url_length",
    ]


def test_rules_when_their_order_changes_then_verdicts_stay() -> None:
    hosts = ["a.test", "www.*", "=b.test"]
    globs = ["*.pdf", "re:/x/", "*/y/*"]
    blocks = [HostBlock(host="a.test", include_paths=("/1",)), HostBlock(host="x.a.test", exclude_paths=("/12",))]
    urls = [
        f"http://{h}/{p}" for h in ("a.test", "x.a.test", "www.q", "b.test", "c") for p in ("1", "12", "x/", "1.pdf")
    ]

    forward = boundary(include_hosts=hosts, exclude_urls=globs, hosts=blocks)
    backward = boundary(include_hosts=hosts[::-1], exclude_urls=globs[::-1], hosts=blocks[::-1])

    assert [forward.decide(url).allowed for url in urls] == [backward.decide(url).allowed for url in urls]
    assert len({forward.decide(url).allowed for url in urls}) == 2


@pytest.mark.parametrize("url", ["http://a.test/%70rivate/", "http://a.test/priv%61te/x", "http://a.test/private/"])
def test_escapes_of_unreserved_when_in_a_url_then_do_not_lead_past_a_rule(url: str) -> None:
    by_path = boundary(allow_all=True, hosts=[HostBlock(host="a.test", exclude_paths=("/private/",))])
    by_glob = boundary(allow_all=True, exclude_urls=["*/private/*"])
    by_expression = boundary(allow_all=True, exclude_urls=["re:/private/"])

    assert [rules.decide(url).allowed for rules in (by_path, by_glob, by_expression)] == [False, False, False]


@pytest.mark.parametrize(("limit", "depth", "allowed"), [(0, 99, True), (2, 2, True), (2, 3, False), (2, None, True)])
def test_depth_when_asked_then_zero_is_unlimited(limit: int, depth: int | None, allowed: bool) -> None:
    decision = boundary(allow_all=True, depth=limit).decide("http://a.test/", depth)

    assert decision == (
        Decision(True, "allow_all", FILE, "scope.allow_all")
        if allowed
        else Decision(False, "depth = 2", FILE, "scope.depth")
    )


def test_chain_of_five_when_the_depth_is_two_then_three_pages_are_allowed() -> None:
    rules = boundary(allow_all=True, depth=2)

    assert sum(rules.decide(f"http://a.test/{depth}", depth).allowed for depth in range(5)) == 3


def test_dynamic_pages_when_off_then_queries_have_their_own_reason() -> None:
    rules = boundary(allow_all=True, dynamic_pages=False)

    assert rules.decide("http://a.test/?x=1") == Decision(False, "dynamic_pages = false", FILE, "scope.dynamic_pages")
    assert rules.decide("http://a.test/x=1").allowed


@pytest.mark.parametrize(
    ("limits", "path", "key", "code"),
    [
        ({"max_url_length": 20}, "123456", "", None),
        ({"max_url_length": 20}, "1234567", "scope.max_url_length", Code.MALFORMED_URL),
        ({"max_url_length": 0}, "x" * 10_000, "", None),
        ({"max_path_segments": 2}, "a/b/", "", None),
        ({"max_path_segments": 2}, "a/b/c", "scope.max_path_segments", Code.TRAP_LIMIT),
        ({"max_path_segments": 2}, "a/b?c=/d/e/f", "", None),
        ({"max_path_segments": 0, "max_repeated_segments": 0}, "a/" * 99, "", None),
        ({"max_query_parameters": 2}, "?a&b", "", None),
        ({"max_query_parameters": 2}, "?a&b&c", "scope.max_query_parameters", Code.TRAP_LIMIT),
        ({"max_query_parameters": 0}, "?" + "a&" * 99, "", None),
        ({"max_repeated_segments": 3}, "a/b/a/b/a/b", "", None),
        ({"max_repeated_segments": 3}, "a/b/a/b/a/b/a", "scope.max_repeated_segments", Code.TRAP_LIMIT),
        ({"max_repeated_segments": 3}, "a/a/a/a", "scope.max_repeated_segments", Code.TRAP_LIMIT),
        ({"max_repeated_segments": 3}, "a//b//c//d//e", "", None),
        ({"exclude_hosts": ["a.test"]}, "", "scope.exclude_hosts", Code.OUTSIDE_BOUNDARY),
    ],
)
def test_limits_when_passed_then_have_their_key_and_code(
    limits: dict[str, Any], path: str, key: str, code: Code | None
) -> None:
    decision = boundary(allow_all=True, **limits).decide(f"http://a.test/{path}")

    assert (decision.key if not decision.allowed else "") == key
    assert decision.allowed or refusal_code(decision) == code


@pytest.mark.parametrize("url", ["http://a b/", "ftp://a.test/", "file:///etc/passwd", "//a.test/", "no url"])
def test_url_when_not_http_then_is_invalid(url: str) -> None:
    with pytest.raises(InvalidUrl):
        boundary(allow_all=True).decide(url)


def test_url_when_not_in_its_identity_then_is_judged_by_its_host() -> None:
    rules = boundary(include_hosts=["a.test"])

    assert rules.decide("HTTP://A.test").allowed
    assert not rules.decide("http://a.test@b.test/").allowed


@pytest.mark.parametrize(
    ("rules", "key", "shown"),
    [
        ({}, "scope", "allow_all"),
        ({"exclude_hosts": ["a.test"]}, "scope", "allow_all"),
        ({"include_hosts": [""]}, "scope.include_hosts", "''"),
        ({"include_hosts": ["*"]}, "scope.include_hosts", "'*'"),
        ({"include_hosts": ["*.a.test"]}, "scope.include_hosts", "'*.a.test'"),
        ({"include_hosts": [".a.test"]}, "scope.include_hosts", "'.a.test'"),
        ({"include_hosts": ["http://a.test"]}, "scope.include_hosts", "'http://a.test'"),
        ({"include_hosts": ["a.test/x"]}, "scope.include_hosts", "'a.test/x'"),
        ({"include_hosts": ["a.test:80"]}, "scope.include_hosts", "'a.test:80'"),
        ({"include_hosts": ["a b"]}, "scope.include_hosts", "'a b'"),
        ({"include_hosts": ["me@a.test"]}, "scope.include_hosts", "'me@a.test'"),
        ({"allow_all": True, "exclude_hosts": ["=*"]}, "scope.exclude_hosts", "'=*'"),
        ({"include_urls": [""]}, "scope.include_urls", "''"),
        ({"include_urls": ["re:"]}, "scope.include_urls", "'re:'"),
        ({"include_urls": ["re:(a"]}, "scope.include_urls", "'re:(a'"),
        ({"allow_all": True, "exclude_urls": [r"re:(a)\1"]}, "scope.exclude_urls", r"'re:(a)\\1'"),
        ({"allow_all": True, "include_ports": [80], "exclude_ports": [81]}, "scope.exclude_ports", "[81]"),
        ({"allow_all": True, "include_ports": [0]}, "scope.include_ports", "0"),
        ({"allow_all": True, "exclude_ports": [65536]}, "scope.exclude_ports", "65536"),
        ({"allow_all": True, "hosts": [HostBlock(host="")]}, "scope.host[0].host", "''"),
        (
            {"allow_all": True, "hosts": [HostBlock(host="a"), HostBlock(host="b", include_paths=("x",))]},
            "scope.host[1].include_paths",
            "'x'",
        ),
        (
            {"allow_all": True, "hosts": [HostBlock(host="b", exclude_paths=("",))]},
            "scope.host[0].exclude_paths",
            "''",
        ),
        (
            {"allow_all": True, "hosts": [HostBlock(host="b", include_ports=(1,), exclude_ports=(2,))]},
            "scope.host[0].exclude_ports",
            "[2]",
        ),
        (
            {
                "allow_all": True,
                "hosts": [HostBlock(host="b.test", include_ports=(1,)), HostBlock(host="B.test", exclude_ports=(2,))],
            },
            "scope.host[1].exclude_ports",
            "[2]",
        ),
    ],
)
def test_rule_when_invalid_then_is_refused_by_key_and_text(rules: dict[str, Any], key: str, shown: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        boundary(**rules)

    assert (refusal.value.file, refusal.value.key) == (FILE, key)
    assert shown in refusal.value.message


def test_many_rules_when_one_matches_then_it_is_the_one_named() -> None:
    rules = boundary(
        include_hosts=[f"h{n}.test" for n in range(300)],
        exclude_urls=[f"*/p{n}/*" for n in range(300)],
        hosts=[HostBlock(host="test", exclude_paths=tuple(f"/q{n}/" for n in range(300)))],
    )

    found = [rules.decide(url).rule for url in ("http://h7.test/", "http://h7.test/p8/", "http://h7.test/q9/")]

    assert found == ["h7.test", "*/p8/*", "/q9/"]


@pytest.mark.parametrize(
    ("scope", "url", "allowed"),
    [
        ({"include_hosts": ["a.test"]}, "http://a.test/sitemap.xml", True),
        ({"include_hosts": ["a.test"]}, "http://b.test/sitemap.xml", False),
        ({"include_hosts": ["a.test"], "exclude_hosts": ["=a.test"]}, "http://a.test/sitemap.xml", False),
        ({"include_hosts": ["a.test"], "include_ports": [443]}, "http://a.test/sitemap.xml", False),
        ({"include_hosts": ["a.test"], "exclude_urls": ["*sitemap*"]}, "http://a.test/sitemap.xml", False),
        # What says which pages are wanted says nothing about sitemaps.
        ({"include_urls": ["http://a.test/docs/*"]}, "http://a.test/sitemap.xml", True),
        ({"include_hosts": ["a.test"], "dynamic_pages": False}, "http://a.test/sitemap.php?n=1", True),
        ({"include_hosts": ["a.test"], "max_path_segments": 1}, "http://a.test/a/b/sitemap.xml", True),
        (
            {"include_hosts": ["a.test"], "hosts": [HostBlock(host="a.test", include_paths=["/docs/"])]},
            "http://a.test/sitemap.xml",
            True,
        ),
        (
            {"include_hosts": ["a.test"], "hosts": [HostBlock(host="a.test", exclude_paths=["/site"])]},
            "http://a.test/sitemap.xml",
            False,
        ),
    ],
)
def test_sitemap_when_the_boundary_has_rules_then_hosts_ports_and_excludes_decide(
    scope: dict[str, Any], url: str, allowed: bool
) -> None:
    assert boundary(**scope).decide_sitemap(url).allowed is allowed


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://a.test/sitemap.xml", True),
        ("http://a.test/docs/sitemap.xml", True),
        ("http://a.test:81/sitemap.xml", False),
        ("http://b.test/sitemap.xml", False),
        ("https://c.test/sitemap.xml", True),
    ],
)
def test_sitemap_when_only_url_rules_include_then_their_hosts_decide(url: str, allowed: bool) -> None:
    boundary = Boundary(include_urls=["http://a.test/docs/*", "https://c.test/*"])

    assert boundary.decide_sitemap(url).allowed is allowed


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://a.test/sitemap.xml", True),
        ("http://a.test/private/sitemap.xml", False),
        ("http://a.test/docs/sitemap.xml.gz", False),
        ("http://a.test/other/sitemap.xml.gz", False),
        ("http://b.test/sitemap.xml", False),
    ],
)
def test_sitemap_when_an_exclude_names_it_then_is_refused_though_an_include_is_missing_too(
    url: str, allowed: bool
) -> None:
    boundary = Boundary(
        include_hosts=["a.test"],
        exclude_urls=["*.gz"],
        hosts=[HostBlock(host="a.test", include_paths=("/docs/",), exclude_paths=("/private/",))],
    )

    assert boundary.decide_sitemap(url).allowed is allowed


def test_decide_when_the_url_is_of_another_kind_of_source_then_it_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(urls.DEFAULT_PORTS, "memo", 7070)
    boundary = Boundary(allow_all=True, file="sources/demo.toml")

    decision = boundary.decide("memo://box/1.txt", 1)

    assert (decision.allowed, decision.text) == (False, "type: web")
    assert boundary.list_refusals("memo://box/1.txt") == [decision]
