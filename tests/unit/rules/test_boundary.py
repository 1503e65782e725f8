"""The boundary by the worked examples of B1–B4, B7, B9, B12 and the semantics of interface.md §1."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.boundary import Boundary, refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.host_rules import HostRules

FILE = "sources/x.toml"


def boundary(**rules: Any) -> Boundary:
    return Boundary(file=FILE, **rules)


ORACLE = boundary(include_hosts=["oracle.com"], exclude_hosts=["uk.oracle.com"])
MANUAL = boundary(
    include_hosts=["www.oracle.com", "otn.oracle.com"],
    hosts=[
        HostRules(
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
        ({"hosts": [HostRules(host="a.test", include_ports=(8080,))]}, 80, False, "scope.host[0].include_ports"),
        ({"hosts": [HostRules(host="a.test", include_ports=(8080,))]}, 8080, True, "scope.include_hosts"),
        ({"hosts": [HostRules(host="a.test", exclude_ports=(8080,))]}, 8080, False, "scope.host[0].exclude_ports"),
        ({"hosts": [HostRules(host="b.test", exclude_ports=(8080,))]}, 8080, True, "scope.include_hosts"),
        (
            {"include_ports": [80], "hosts": [HostRules(host="a.test", include_ports=(8080,))]},
            8080,
            True,
            "scope.include_hosts",
        ),
        (
            {"include_ports": [8080], "hosts": [HostRules(host="a.test", exclude_ports=(8080,))]},
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
        ("http://a*a.test/*", "http://a.test/", False),
        ("re:x=[0-9]+$", "http://a.test/?x=12", True),
        ("re:x=[0-9]+$", "http://a.test/?x=12a", False),
        ("re:/X/", "http://a.test/x/", False),
        ("re:(?i)/X/", "http://a.test/x/", True),
        ("re:^http://a", "http://a.test/", True),
    ],
)
def test_url_rule_when_asked_then_is_a_glob_or_a_declared_expression(rule: str, url: str, excluded: bool) -> None:
    decision = boundary(allow_all=True, exclude_urls=["*/never-there/*", rule]).decide(url)

    assert decision.allowed is not excluded
    assert decision.rule == (rule if excluded else "allow_all")
    assert decision.key == ("scope.exclude_urls" if excluded else "scope.allow_all")


def test_url_globs_when_written_with_an_international_host_then_match_its_punycode() -> None:
    rules = boundary(include_urls=["https://bücher.example/*"])

    assert rules.decide("https://xn--bcher-kva.example/x").allowed


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


def test_exclude_when_an_include_is_more_specific_then_still_wins() -> None:
    rules = boundary(include_hosts=["www.a.test"], exclude_hosts=["a.test"], include_urls=["http://www.a.test/x"])

    assert rules.decide("http://www.a.test/x").rule == "a.test"


def test_steps_when_all_would_refuse_then_the_first_in_order_is_named() -> None:
    block = HostRules(host="a.test", exclude_paths=("/x",), exclude_ports=(81,))
    url = "http://a.test:81/x.pdf?q"
    rules: dict[str, Any] = {"allow_all": True, "dynamic_pages": False}

    keys = [boundary(**rules).decide(url).key]
    for more in (
        {"exclude_urls": ["*.pdf*"]},
        {"hosts": [HostRules(host="a.test", exclude_paths=("/x",))]},
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
    blocks = [HostRules(host="a.test", include_paths=("/1",)), HostRules(host="x.a.test", exclude_paths=("/12",))]
    urls = [
        f"http://{h}/{p}" for h in ("a.test", "x.a.test", "www.q", "b.test", "c") for p in ("1", "12", "x/", "1.pdf")
    ]

    forward = boundary(include_hosts=hosts, exclude_urls=globs, hosts=blocks)
    backward = boundary(include_hosts=hosts[::-1], exclude_urls=globs[::-1], hosts=blocks[::-1])

    assert [forward.decide(url).allowed for url in urls] == [backward.decide(url).allowed for url in urls]
    assert len({forward.decide(url).allowed for url in urls}) == 2


def test_host_blocks_when_several_match_then_add_up() -> None:
    rules = boundary(
        include_hosts=["a.test"],
        hosts=[
            HostRules(host="a.test", include_paths=("/a/",), exclude_paths=("/b/no/",)),
            HostRules(host="x.a.test", include_paths=("/b/",), exclude_paths=("/a/no/",)),
        ],
    )

    verdicts = {
        path: rules.decide(f"http://x.a.test{path}").allowed for path in ("/a/", "/b/", "/a/no/", "/b/no/", "/c")
    }

    assert verdicts == {"/a/": True, "/b/": True, "/a/no/": False, "/b/no/": False, "/c": False}
    assert not rules.decide("http://a.test/b/").allowed


def test_host_block_when_its_host_is_not_included_then_includes_nothing() -> None:
    rules = boundary(include_hosts=["a.test"], hosts=[HostRules(host="b.test", include_paths=("/",))])

    assert rules.decide("http://b.test/").key == "scope.include_hosts"


def test_paths_when_asked_then_are_raw_prefixes_that_mind_case() -> None:
    rules = boundary(allow_all=True, hosts=[HostRules(host="a.test", exclude_paths=("/doc", "/."))])

    verdicts = [
        rules.decide(f"http://a.test/{path}").allowed for path in ("doc", "documents/x", "doc?x=1", "Doc", "x/doc")
    ]

    assert verdicts == [False, False, False, True, True]
    assert not rules.decide("http://a.test/.git/").allowed


@pytest.mark.parametrize("url", ["http://a.test/%70rivate/", "http://a.test/priv%61te/x", "http://a.test/private/"])
def test_escapes_of_unreserved_when_in_a_url_then_do_not_lead_past_a_rule(url: str) -> None:
    by_path = boundary(allow_all=True, hosts=[HostRules(host="a.test", exclude_paths=("/private/",))])
    by_glob = boundary(allow_all=True, exclude_urls=["*/private/*"])
    by_expression = boundary(allow_all=True, exclude_urls=["re:/private/"])

    assert [rules.decide(url).allowed for rules in (by_path, by_glob, by_expression)] == [False, False, False]


def test_escapes_when_in_a_rule_then_match_either_spelling() -> None:
    rules = boundary(allow_all=True, hosts=[HostRules(host="a.test", exclude_paths=("/%70rivate/é", "/a%2fb"))])

    assert not rules.decide("http://a.test/private/%C3%A9t%C3%A9").allowed
    assert not rules.decide("http://a.test/a%2Fb").allowed
    assert rules.decide("http://a.test/a/b").allowed


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


def test_hosts_when_too_many_to_remember_then_verdicts_stay() -> None:
    rules = boundary(include_hosts=["a.test"], exclude_hosts=["h1.a.test"])

    allowed = sum(rules.decide(f"http://h{n}.a.test/").allowed for n in (*range(5000), *range(10)))

    assert allowed == 5010 - 2


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
        ({"allow_all": True, "hosts": [HostRules(host="")]}, "scope.host[0].host", "''"),
        (
            {"allow_all": True, "hosts": [HostRules(host="a"), HostRules(host="b", include_paths=("x",))]},
            "scope.host[1].include_paths",
            "'x'",
        ),
        (
            {"allow_all": True, "hosts": [HostRules(host="b", exclude_paths=("",))]},
            "scope.host[0].exclude_paths",
            "''",
        ),
        (
            {"allow_all": True, "hosts": [HostRules(host="b", include_ports=(1,), exclude_ports=(2,))]},
            "scope.host[0].exclude_ports",
            "[2]",
        ),
        (
            {
                "allow_all": True,
                "hosts": [HostRules(host="b.test", include_ports=(1,)), HostRules(host="B.test", exclude_ports=(2,))],
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


def test_expressions_when_they_name_groups_alike_then_are_accepted() -> None:
    rules = boundary(allow_all=True, exclude_urls=["re:/(?P<x>a)/", "re:/(?P<x>b)/"])

    assert rules.decide("http://a.test/b/").rule == "re:/(?P<x>b)/"


def test_many_rules_when_one_matches_then_it_is_the_one_named() -> None:
    rules = boundary(
        include_hosts=[f"h{n}.test" for n in range(300)],
        exclude_urls=[f"*/p{n}/*" for n in range(300)],
        hosts=[HostRules(host="test", exclude_paths=tuple(f"/q{n}/" for n in range(300)))],
    )

    found = [rules.decide(url).rule for url in ("http://h7.test/", "http://h7.test/p8/", "http://h7.test/q9/")]

    assert found == ["h7.test", "*/p8/*", "/q9/"]
