"""All rules that refuse or include a URL: without those that are named, the boundary decides otherwise (L1)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import NO_INCLUDE, Decision, Proposal
from searchcrawl.rules.url_rules import HostBlock

FILE = "sources/x.toml"
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
            HostBlock(host="acme.test", exclude_paths=("/old/", "/%6fld/")),
            HostBlock(host="shop.*", exclude_paths=("/old/",), include_ports=(80,)),
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
            {"allow_all": True, "hosts": [HostBlock(host="acme.test", include_paths=("/x/",))]},
            "http://acme.test/a/b.html?q=1",
            Proposal("scope.host[0].include_paths", "/a/b.html"),
        ),
        (
            {"include_urls": ["*.html"]},
            "http://acme.test/%7Ejoe/",
            Proposal("scope.include_urls", "http://acme.test/~joe/"),
        ),
    ],
)
def test_propose_include_when_no_include_matches_then_the_one_that_would_is_said(
    rules: dict[str, Any], url: str, proposal: Proposal
) -> None:
    boundary = Boundary(**rules)

    [refusal] = boundary.list_refusals(url)

    assert refusal.rule == NO_INCLUDE
    assert boundary.propose_include(url, refusal) == proposal


def test_propose_include_when_a_rule_excludes_then_none() -> None:
    boundary = Boundary(allow_all=True, exclude_hosts=["acme.test"])

    [refusal] = boundary.list_refusals("http://acme.test/")

    assert boundary.propose_include("http://acme.test/", refusal) is None


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
            {"allow_all": True, "hosts": [HostBlock(host="www.*", include_paths=("/a/", "/b/"))]},
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
            HostBlock(
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
    values = {field: getattr(blocks[number], field) for field in HostBlock.__slots__}
    blocks[number] = HostBlock(**{**values, name: tuple(change(values[name]))})
    return {**rules, "hosts": blocks}


def still_allowed(rules: dict[str, Any], url: str) -> bool:
    """Whether the boundary of these rules admits it; one that includes nothing admits nothing (B5)."""
    try:
        return Boundary(**rules).decide(url).allowed
    except ConfigurationError:
        return False
