"""Targets of redirects: what no rule may lead to, and where an address must be public (C6, L7)."""

from __future__ import annotations

import pytest

from searchcrawl.rules.boundary import Boundary, HostBlock
from searchcrawl.rules.forgotten import Forgotten
from searchcrawl.rules.identity import DEFAULT_NAMES, Identity
from searchcrawl.rules.rewriting import PatternRewriter, Rewriting
from searchcrawl.rules.targets import TargetRules

BOUNDARY = Boundary(
    include_hosts=["a.test"],
    exclude_hosts=["bad.a.test", "evil.test"],
    exclude_ports=[8081],
    exclude_urls=["*/login*", "re:secret"],
    hosts=[
        HostBlock(host="a.test", include_paths=("/docs/",), exclude_paths=("/docs/private/",)),
        HostBlock(host="foreign.test", exclude_ports=(9000,), exclude_paths=("/hidden",)),
    ],
    depth=2,
    max_path_segments=3,
)
TARGETS = TargetRules(BOUNDARY, starts=["http://a.test:8000/"], named=["http://sso.test:7000/login"])
FIRST = "http://a.test/docs/"


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://bad.a.test/docs/", "scope.exclude_hosts: bad.a.test"),
        ("https://below.evil.test./", "scope.exclude_hosts: evil.test"),
        ("http://a.test:8081/docs/", "scope.exclude_ports: 8081"),
        ("http://other.test:8081/", "scope.exclude_ports: 8081"),
        ("http://a.test/docs/private/x", "scope.host[0].exclude_paths: /docs/private/"),
        ("http://a.test/docs/%70rivate/x", "scope.host[0].exclude_paths: /docs/private/"),
        ("http://foreign.test/hidden/x", "scope.host[1].exclude_paths: /hidden"),
        ("http://foreign.test:9000/", "scope.host[1].exclude_ports: 9000"),
        ("http://other.test/login?x=1", "scope.exclude_urls: */login*"),
        ("http://other.test/?q=%73ecret", "scope.exclude_urls: re:secret"),
        # Merely not included, or beyond a limit.
        ("http://other.test/", None),
        ("http://other.test:9000/a/b/c/d/e", None),
        ("http://a.test/elsewhere", None),
    ],
)
def test_target_when_an_exclude_rule_names_it_then_is_refused_by_that_rule(url: str, rule: str | None) -> None:
    refusal = TARGETS.refuse(url, FIRST)

    assert (refusal.text if refusal else None) == rule


def test_target_when_the_first_url_is_excluded_by_the_same_rule_then_only_others_count() -> None:
    first = "http://sso.test/login"

    assert TARGETS.refuse("http://sso.test/login/form", first) is None
    assert TARGETS.refuse("http://sso.test/login/secret", first) is not None
    assert TARGETS.refuse("http://evil.test/login", first) is not None


@pytest.mark.parametrize(
    ("url", "page", "side"),
    [
        ("http://other.test/", False, False),
        ("https://other.test/", False, False),
        ("http://other.test:8000/", False, False),
        ("http://other.test:443/", False, False),
        ("http://other.test:9001/", True, True),
        ("https://other.test:9001/", True, True),
        ("http://a.test:9001/docs/x", False, False),
        # The host is inside, the page is not.
        ("http://a.test:9001/other", True, False),
        ("http://a.test:8081/docs/x", True, True),
        ("http://sso.test:7000/", True, False),
        ("https://sso.test:7000/", True, True),
    ],
)
def test_target_when_it_is_outside_then_has_a_public_address_or_a_usual_port(url: str, page: bool, side: bool) -> None:
    assert (TARGETS.is_public_only(url), TARGETS.is_side_public_only(url)) == (page, side)


def test_target_when_only_url_rules_include_then_no_host_as_such_is_inside() -> None:
    targets = TargetRules(Boundary(include_urls=["http://a.test:9001/docs/*"]), starts=["http://a.test/"])

    assert not targets.is_public_only("http://a.test:9001/docs/x")
    assert targets.is_side_public_only("http://a.test:9001/sitemap.xml")
    assert targets.is_side_public_only("http://b.test:9001/robots.txt")


IDENTITY = Identity(DEFAULT_NAMES)
REWRITING = Rewriting([PatternRewriter("/mobile/", "/")], IDENTITY)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://a.test/secret?utm_source=x", "scope.exclude_urls: http://a.test/secret"),
        ("http://a.test/mobile/secret;jsessionid=1", "scope.exclude_urls: http://a.test/secret"),
        ("http://a.test/secret?key=1", None),
    ],
)
def test_target_when_a_rule_names_its_row_then_other_ways_to_write_it_are_refused(url: str, rule: str | None) -> None:
    boundary = Boundary(allow_all=True, exclude_urls=["http://a.test/secret"])
    targets = TargetRules(boundary, rewriting=REWRITING)

    refusal = targets.refuse(url, FIRST)

    assert (refusal.text if refusal else None) == rule


@pytest.mark.parametrize("line", ["http://a.test/secret", "pattern:re:^http://a.test/secret$"])
@pytest.mark.parametrize("url", ["http://a.test/secret", "http://a.test/secret?utm_source=x&%75tm_id=2"])
def test_forgotten_when_parameters_are_no_part_of_the_url_then_it_is_refused_with_them(line: str, url: str) -> None:
    boundary = Boundary(allow_all=True, forgotten=Forgotten([line], identity=IDENTITY))

    assert [decision.rule for decision in boundary.list_exclusions(url)] == [line.removeprefix("pattern:")]
    assert not boundary.decide_sitemap(url).allowed
    assert boundary.decide(f"{url}#".replace("secret", "other")).allowed
