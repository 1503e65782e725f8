"""The boundary by the worked examples of B1–B4, B7, B9, B12, each key of ``[scope]``, and all rules that refuse (L1)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.boundary import Boundary, refusal_code
from searchcrawl.rules.decision import NO_INCLUDE, Decision, Proposal
from searchcrawl.rules.url_rules import HostScope

FILE = "sources/x.toml"


def boundary(**rules: Any) -> Boundary:
    return Boundary(file=FILE, **rules)


ORACLE = boundary(include_hosts=["oracle.com"], exclude_hosts=["uk.oracle.com"])
MANUAL = boundary(
    include_hosts=["www.oracle.com", "otn.oracle.com"],
    hosts=[
        HostScope(
            host="otn.oracle.com",
            include_paths=("/products/database/", "/products/ias/"),
            exclude_paths=("/products/ias/web_cache/",),
        )
    ],
)


@pytest.mark.parametrize(
    ("rules", "url", "allowed", "rule", "key"),
    [
        (ORACLE, "http://oracle.com/", True, "oracle.com", "scope.include_hosts"),
        (ORACLE, "http://x.oracle.com/", True, "oracle.com", "scope.include_hosts"),
        (ORACLE, "http://a.b.oracle.com:8080/c", True, "oracle.com", "scope.include_hosts"),
        (ORACLE, "http://oracle.com./", True, "oracle.com", "scope.include_hosts"),
        (ORACLE, "http://www.oracle.com.tw/", False, "no include matches", "scope.include_hosts"),
        (ORACLE, "http://notoracle.com/", False, "no include matches", "scope.include_hosts"),
        (ORACLE, "http://www.someurl.com/", False, "no include matches", "scope.include_hosts"),
        (ORACLE, "http://uk.oracle.com/", False, "uk.oracle.com", "scope.exclude_hosts"),
        (ORACLE, "http://www.uk.oracle.com/", False, "uk.oracle.com", "scope.exclude_hosts"),
        (ORACLE, "http://uk.oracle.com./", False, "uk.oracle.com", "scope.exclude_hosts"),
        (ORACLE, "http://duk.oracle.com/", True, "oracle.com", "scope.include_hosts"),
        (MANUAL, "http://otn.oracle.com/products/ias/x", True, "/products/ias/", "scope.host[0].include_paths"),
        (
            MANUAL,
            "http://otn.oracle.com/products/database/",
            True,
            "/products/database/",
            "scope.host[0].include_paths",
        ),
        (
            MANUAL,
            "http://otn.oracle.com/products/ias/web_cache/x",
            False,
            "/products/ias/web_cache/",
            "scope.host[0].exclude_paths",
        ),
        (MANUAL, "http://otn.oracle.com/other", False, "no include matches", "scope.host[0].include_paths"),
        (MANUAL, "http://otn.oracle.com/", False, "no include matches", "scope.host[0].include_paths"),
        (MANUAL, "http://www.oracle.com/any", True, "www.oracle.com", "scope.include_hosts"),
        (MANUAL, "http://uk.oracle.com/products/ias/", False, "no include matches", "scope.include_hosts"),
    ],
)
def test_hosts_and_paths_when_asked_then_match_on_label_boundaries_and_as_printed(
    rules: Boundary, url: str, allowed: bool, rule: str, key: str
) -> None:
    assert rules.decide(url) == Decision(allowed, rule, FILE, key)


def test_exclude_when_an_include_is_more_specific_then_still_wins() -> None:
    rules = boundary(include_hosts=["www.a.test"], exclude_hosts=["a.test"], include_urls=["http://www.a.test/x"])

    assert rules.decide("http://www.a.test/x").rule == "a.test"


def test_steps_when_all_would_refuse_then_the_first_in_order_is_named() -> None:
    block = HostScope(host="a.test", exclude_paths=("/x",), exclude_ports=(81,))
    url = "http://a.test:81/x.pdf?q"
    rules: dict[str, Any] = {"allow_all": True, "dynamic_pages": False}

    keys = [boundary(**rules).decide(url).key]
    for more in (
        {"exclude_urls": ["*.pdf*"]},
        {"hosts": [HostScope(host="a.test", exclude_paths=("/x",))]},
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
    blocks = [HostScope(host="a.test", include_paths=("/1",)), HostScope(host="x.a.test", exclude_paths=("/12",))]
    urls = [
        f"http://{h}/{p}" for h in ("a.test", "x.a.test", "www.q", "b.test", "c") for p in ("1", "12", "x/", "1.pdf")
    ]

    forward = boundary(include_hosts=hosts, exclude_urls=globs, hosts=blocks)
    backward = boundary(include_hosts=hosts[::-1], exclude_urls=globs[::-1], hosts=blocks[::-1])

    assert [forward.decide(url).allowed for url in urls] == [backward.decide(url).allowed for url in urls]
    assert len({forward.decide(url).allowed for url in urls}) == 2


@pytest.mark.parametrize("url", ["http://a.test/%70rivate/", "http://a.test/priv%61te/x", "http://a.test/private/"])
def test_escapes_of_unreserved_when_in_a_url_then_do_not_lead_past_a_rule(url: str) -> None:
    by_path = boundary(allow_all=True, hosts=[HostScope(host="a.test", exclude_paths=("/private/",))])
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


@pytest.mark.parametrize("url", ["http://a b/", "ftp://a.test/", "file://a.test/etc/passwd", "//a.test/", "no url"])
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
        ({"allow_all": True, "hosts": [HostScope(host="")]}, "scope.host[0].host", "''"),
        (
            {
                "allow_all": True,
                "hosts": [HostScope(host="b.test", include_ports=(1,)), HostScope(host="B.test", exclude_ports=(2,))],
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
        hosts=[HostScope(host="test", exclude_paths=tuple(f"/q{n}/" for n in range(300)))],
    )

    found = [rules.decide(url).rule for url in ("http://h7.test/", "http://h7.test/p8/", "http://h7.test/q9/")]

    assert found == ["h7.test", "*/p8/*", "/q9/"]


ONLY_URLS = {"include_urls": ["http://a.test/docs/*", "https://c.test/*"]}
BOTH = {
    "include_hosts": ["a.test"],
    "exclude_urls": ["*.gz"],
    "hosts": [HostScope(host="a.test", include_paths=("/docs/",), exclude_paths=("/private/",))],
}


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
            {"include_hosts": ["a.test"], "hosts": [HostScope(host="a.test", include_paths=["/docs/"])]},
            "http://a.test/sitemap.xml",
            True,
        ),
        (
            {"include_hosts": ["a.test"], "hosts": [HostScope(host="a.test", exclude_paths=["/site"])]},
            "http://a.test/sitemap.xml",
            False,
        ),
        # Where only URL rules include, their hosts decide.
        (ONLY_URLS, "http://a.test/sitemap.xml", True),
        (ONLY_URLS, "http://a.test/docs/sitemap.xml", True),
        (ONLY_URLS, "http://a.test:81/sitemap.xml", False),
        (ONLY_URLS, "http://b.test/sitemap.xml", False),
        (ONLY_URLS, "https://c.test/sitemap.xml", True),
        # An exclude counts though an include is missing, too.
        (BOTH, "http://a.test/sitemap.xml", True),
        (BOTH, "http://a.test/private/sitemap.xml", False),
        (BOTH, "http://a.test/docs/sitemap.xml.gz", False),
        (BOTH, "http://a.test/other/sitemap.xml.gz", False),
        (BOTH, "http://b.test/sitemap.xml", False),
    ],
)
def test_sitemap_when_the_boundary_has_rules_then_hosts_ports_and_excludes_decide(
    scope: dict[str, Any], url: str, allowed: bool
) -> None:
    assert boundary(**scope).decide_sitemap(url).allowed is allowed


def test_decide_when_the_url_is_of_another_kind_of_source_then_it_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(urls.DEFAULT_PORTS, "memo", 7070)
    boundary = Boundary(allow_all=True, file="sources/demo.toml")

    decision = boundary.decide("memo://box/1.txt", 1)

    assert (decision.allowed, decision.text) == (False, "type: web")
    assert boundary.list_refusals("memo://box/1.txt") == [decision]


HOSTS = ("acme.test", "www.acme.test", "shop.acme.test", "partner.test", "10.0.0.1")
HOST_RULES = ("acme.test", "=acme.test", "www.*", "partner.test", "test", "shop.acme.test", "10.0.0.1")
PATHS = ("/", "/a/", "/a/b.html", "/a/a/a/a/b", "/%70rivate/x", "/b/c/d/e/f", "/a/b.html?x=1", "/?x=1&y=2&z=3")
PREFIXES = ("/a", "/a/", "/a/b", "/private", "/%61/", "/b/", "/")
GLOBS = ("*b.html", "*", "re:/a/", "*?x=*", "http://www.*", "re:[0-9]$", "*://partner.test/*")
PORTS = (80, 8080, 8443)


def refused_by(rules: Mapping[str, Any], url: str, depth: int | None = None) -> list[tuple[str, str]]:
    return [(decision.key, decision.rule) for decision in Boundary(**rules).list_refusals(url, depth)]


def test_list_refusals_when_several_rules_refuse_then_all_are_named_and_decide_answers_with_the_first() -> None:
    rules: dict[str, Any] = {
        "include_hosts": ["acme.test"],
        "exclude_hosts": ["shop.acme.test"],
        "exclude_urls": ["*.zip", "re:/old/"],
        "exclude_ports": [8080],
        "hosts": [
            HostScope(host="acme.test", exclude_paths=("/old/", "/%6fld/")),
            HostScope(host="shop.*", exclude_paths=("/old/",), include_ports=(80,)),
        ],
        "depth": 2,
        "dynamic_pages": False,
        "max_path_segments": 1,
        "file": FILE,
    }
    url = "http://shop.acme.test:8080/old/x.zip?a=1"

    found = refused_by(rules, url, 3)

    assert found == [
        ("scope.exclude_hosts", "shop.acme.test"),
        ("scope.exclude_ports", "8080"),
        ("scope.host[1].include_ports", NO_INCLUDE),
        ("scope.host[0].exclude_paths", "/old/"),
        ("scope.host[0].exclude_paths", "/%6fld/"),
        ("scope.host[1].exclude_paths", "/old/"),
        ("scope.exclude_urls", "re:/old/"),
        ("scope.dynamic_pages", "dynamic_pages = false"),
        ("scope.max_path_segments", "max_path_segments = 1"),
        ("scope.depth", "depth = 2"),
    ]
    assert Boundary(**rules).decide(url, 3) == Decision(False, "shop.acme.test", FILE, "scope.exclude_hosts")


@pytest.mark.parametrize(
    ("rules", "url", "proposal"),
    [
        ({"include_hosts": ["acme.test"]}, "http://other.test/a", Proposal("scope.include_hosts", "other.test")),
        (
            {"allow_all": True, "include_ports": [80]},
            "http://acme.test:81/",
            Proposal("scope.include_ports", 81),
        ),
        (
            {"allow_all": True, "hosts": [HostScope(host="acme.test", include_paths=("/x/",))]},
            "http://acme.test/a/b.html?q=1",
            Proposal("scope.host[0].include_paths", "/a/b.html"),
        ),
        (
            {"include_urls": ["*.html"]},
            "http://acme.test/%7Ejoe/",
            Proposal("scope.include_urls", "http://acme.test/~joe/"),
        ),
        ({"allow_all": True, "exclude_hosts": ["acme.test"]}, "http://acme.test/", None),
    ],
)
def test_propose_include_when_no_include_matches_then_the_one_that_would_is_said(
    rules: dict[str, Any], url: str, proposal: Proposal | None
) -> None:
    boundary = Boundary(**rules)

    [refusal] = boundary.list_refusals(url)

    assert (refusal.rule == NO_INCLUDE) == (proposal is not None)
    assert boundary.propose_include(url, refusal) == proposal


@pytest.mark.parametrize(
    ("rules", "included"),
    [
        ({"include_hosts": ["acme.test", "other.test", "www.*"]}, ["acme.test", "www.*"]),
        ({"include_hosts": ["acme.test"], "include_urls": ["*/a/*", "*.pdf"]}, ["*/a/*"]),
        # Without its one URL rule the source would take all of the host: the host's rule decides.
        ({"include_hosts": ["acme.test", "x.test"], "include_urls": ["*"]}, ["acme.test"]),
        ({"include_hosts": ["acme.test"], "include_urls": ["*"]}, ["acme.test", "*"]),
        ({"allow_all": True}, ["allow_all"]),
        ({"allow_all": True, "include_hosts": ["acme.test"]}, ["acme.test", "allow_all"]),
        (
            {"allow_all": True, "hosts": [HostScope(host="www.*", include_paths=("/a/", "/b/"))]},
            ["/a/"],
        ),
        ({"allow_all": True, "include_ports": [80, 81]}, ["80"]),
    ],
)
def test_list_includes_when_a_url_is_allowed_then_the_rules_it_needs(
    rules: dict[str, Any], included: list[str]
) -> None:
    found = Boundary(**rules).list_includes("http://www.acme.test/a/b.html")

    assert [decision.rule for decision in found] == included
    assert all(decision.allowed for decision in found)


@pytest.mark.parametrize("seed", range(8))
def test_boundary_when_the_rules_it_names_are_taken_out_then_it_decides_otherwise(seed: int) -> None:
    chance = random.Random(seed)
    flipped = 0
    for _ in range(60):
        rules = some_rules(chance)
        boundary = Boundary(**rules)
        for _ in range(6):
            url = f"http://{chance.choice(HOSTS)}{chance.choice(('', ':8080', ':8443'))}{chance.choice(PATHS)}"
            depth = chance.choice((None, 0, 3))
            decision, refusals = boundary.decide(url, depth), boundary.list_refusals(url, depth)
            told = f"seed {seed}: {url} at {depth} of {rules}: {refusals}"
            assert decision.allowed == (not refusals), told
            if refusals:
                assert decision == refusals[0], told
                assert Boundary(**mended(rules, boundary, url, refusals)).decide(url, depth).allowed, told
            else:
                assert not still_allowed(without(rules, boundary.list_includes(url)), url), told
            flipped += 1

    assert flipped == 360


def some_rules(chance: random.Random) -> dict[str, Any]:
    """A source's rules of all kinds, few of each, as the boundary accepts them."""

    def some(values: Sequence[Any], most: int = 2) -> list[Any]:
        return chance.sample(values, chance.choice([0, 0, *range(1, most + 1)]))

    rules: dict[str, Any] = {
        "allow_all": chance.random() < 0.3,
        "include_hosts": some(HOST_RULES),
        "exclude_hosts": some(HOST_RULES, 1),
        "include_urls": some(GLOBS),
        "exclude_urls": some(GLOBS, 1),
        chance.choice(("include_ports", "exclude_ports")): some(PORTS),
        "hosts": [
            HostScope(
                host=host,
                include_paths=tuple(some(PREFIXES)),
                exclude_paths=tuple(some(PREFIXES, 1)),
                **{chance.choice(("include_ports", "exclude_ports")): tuple(some(PORTS, 1))},
            )
            for host in some(HOST_RULES, 3)
        ],
        "depth": chance.choice((0, 0, 2)),
        "dynamic_pages": chance.random() < 0.7,
        "max_url_length": chance.choice((0, 2048, 30)),
        "max_path_segments": chance.choice((0, 16, 3)),
        "max_query_parameters": chance.choice((0, 10, 2)),
        "max_repeated_segments": chance.choice((0, 3)),
        "file": FILE,
    }
    if not (rules["allow_all"] or rules["include_hosts"] or rules["include_urls"]):
        rules["allow_all"] = True
    return rules


def mended(rules: dict[str, Any], boundary: Boundary, url: str, refusals: Sequence[Decision]) -> dict[str, Any]:
    """The rules without those that refuse, and with the includes that are proposed."""
    changed = without(rules, [refusal for refusal in refusals if refusal.rule != NO_INCLUDE])
    for refusal in refusals:
        proposal = boundary.propose_include(url, refusal)
        if proposal is not None:
            changed = edited(changed, proposal.key, lambda values, new=proposal.value: [*values, new])
    return changed


def without(rules: dict[str, Any], named: Sequence[Decision]) -> dict[str, Any]:
    """The rules without those named, all at once."""
    changed = rules
    for decision in named:
        name = decision.key.rpartition(".")[2]
        if name == "allow_all":
            changed = {**changed, "allow_all": False}
        elif name == "dynamic_pages":
            changed = {**changed, "dynamic_pages": True}
        elif name == "depth" or name.startswith("max_"):
            changed = {**changed, name: 0}
        else:
            changed = edited(
                changed, decision.key, lambda values, gone=decision.rule: [v for v in values if str(v) != gone]
            )
    return changed


def edited(rules: dict[str, Any], key: str, change: Any) -> dict[str, Any]:
    """The rules with one list changed: ``scope.exclude_urls``, ``scope.host[1].include_paths``."""
    table, _, name = key.removeprefix("scope.").rpartition(".")
    if not table:
        return {**rules, name: change(rules[name])}
    number = int(table.removeprefix("host[").removesuffix("]"))
    blocks = list(rules["hosts"])
    values = {field: getattr(blocks[number], field) for field in HostScope.__slots__}
    blocks[number] = HostScope(**{**values, name: tuple(change(values[name]))})
    return {**rules, "hosts": blocks}


def still_allowed(rules: dict[str, Any], url: str) -> bool:
    """Whether the boundary of these rules admits it; one that includes nothing admits nothing (B5)."""
    try:
        return Boundary(**rules).decide(url).allowed
    except ConfigurationError:
        return False
