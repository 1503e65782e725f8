"""Redirects: status × target inside or outside, loops, broken Locations (C6)."""

from __future__ import annotations

import pytest

from searchcrawl.codes import Code
from searchcrawl.items import Hop
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.forgotten import Forgotten
from searchcrawl.rules.redirects import Redirect, RedirectKind, TargetRules, decide
from searchcrawl.rules.rewriting import SESSION_NAMES, Identity, PatternRewriter, Rewriting
from searchcrawl.rules.url_rules import HostScope

BASE = "http://a.test/dir/page?q=1"
INSIDE = "http://a.test/new"
OUTSIDE = "http://b.test/new"
BOUNDARY = Boundary(include_hosts=["a.test"], depth=2, file="sources/x.toml")


def verdict(status: int, *locations: bytes, hops: tuple[Hop, ...] = (), max_redirects: int = 10) -> Redirect:
    return decide(status, locations, base_url=BASE, boundary=BOUNDARY, hops=hops, max_redirects=max_redirects)


@pytest.mark.parametrize("target", [INSIDE, OUTSIDE])
@pytest.mark.parametrize("status", [302, 303, 307])
def test_temporary_redirect_when_met_then_is_followed_wherever_it_leads(status: int, target: str) -> None:
    redirect = verdict(status, target.encode())

    assert redirect == Redirect(kind=RedirectKind.FOLLOW, url=target, hops=(Hop(BASE, status),))


@pytest.mark.parametrize("status", [302, 303, 307])
@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("http://a.test:81/", "scope.exclude_ports"),
        ("http://b.test:81/", "scope.exclude_ports"),
        ("http://deep.c.test/", "scope.exclude_hosts"),
        ("/x.zip", "scope.exclude_urls"),
        ("http://b.test/%78.zip", "scope.exclude_urls"),
    ],
)
def test_temporary_redirect_when_an_exclude_rule_names_the_target_then_is_refused(
    status: int, target: str, key: str
) -> None:
    boundary = Boundary(
        include_hosts=["a.test"], exclude_hosts=["c.test"], exclude_ports=[81], exclude_urls=["*x.zip"], file="x"
    )

    redirect = decide(status, [target.encode()], base_url=BASE, boundary=boundary)

    assert (redirect.kind, redirect.code, redirect.link) == (RedirectKind.REFUSE, Code.OUTSIDE_BOUNDARY, None)
    assert (redirect.decision.key, redirect.hops) == (key, (Hop(BASE, status),))


@pytest.mark.parametrize("status", [302, 303, 307])
def test_temporary_redirect_when_a_rule_names_the_row_of_its_target_then_is_refused(status: int) -> None:
    boundary = Boundary(allow_all=True, exclude_urls=["http://b.test/x"])
    rewriting = Rewriting(identity=Identity(["utm_*"]))

    refused, followed = (
        decide(status, [target], base_url=BASE, boundary=boundary, rewriting=rewriting)
        for target in (b"http://b.test/x?utm_id=1", b"http://b.test/y?utm_id=1")
    )

    assert (refused.kind, refused.decision.rule) == (RedirectKind.REFUSE, "http://b.test/x")
    # What is requested stays as the host wrote it.
    assert (followed.kind, followed.url) == (RedirectKind.FOLLOW, "http://b.test/y?utm_id=1")


@pytest.mark.parametrize("status", [301, 308])
def test_permanent_redirect_when_met_then_the_target_is_a_url_of_its_own_or_the_rule_is_named(status: int) -> None:
    inside, outside = verdict(status, INSIDE.encode()), verdict(status, OUTSIDE.encode())

    assert (inside.kind, inside.url, inside.code) == (RedirectKind.MOVE, INSIDE, Code.MOVED)
    assert (inside.decision.allowed, inside.hops) == (True, (Hop(BASE, status),))
    assert (outside.kind, outside.code) == (RedirectKind.MOVE, Code.MOVED)
    assert outside.decision == Decision(False, "no include matches", "sources/x.toml", "scope.include_hosts")


def test_permanent_redirect_when_deeper_than_the_limit_then_is_refused() -> None:
    redirect = decide(301, [INSIDE.encode()], base_url=BASE, boundary=BOUNDARY, depth=3)

    assert redirect.decision.key == "scope.depth"


@pytest.mark.parametrize("status", [200, 204, 300, 304, 305, 306, 400, 404, 503])
def test_other_status_when_it_has_a_location_then_is_no_redirect(status: int) -> None:
    redirect = verdict(status, INSIDE.encode())

    assert redirect == Redirect(kind=RedirectKind.NONE, hops=())


@pytest.mark.parametrize("status", [301, 302])
@pytest.mark.parametrize(
    "locations",
    [
        (),
        (b"",),
        (b"  \t",),
        (b"", b" "),
        (b"http://a b/",),
        (b"http://[::1/",),
        (b"http://a.test:99999/",),
        (b"ftp://a.test/",),
        (b"file:///etc/passwd",),
        (b"javascript:alert(1)",),
        (b"data:text/html,x",),
        (b"/one", b"/two"),
    ],
)
def test_location_when_missing_or_unusable_then_is_1003(status: int, locations: tuple[bytes, ...]) -> None:
    redirect = verdict(status, *locations)

    assert (redirect.kind, redirect.code, redirect.url) == (RedirectKind.FAIL, Code.NO_LOCATION, None)
    assert redirect.error


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"other", "http://a.test/dir/other"),
        (b"../up#part", "http://a.test/up"),
        (b"?q=2", "http://a.test/dir/page?q=2"),
        (b"//b.test", "http://b.test/"),
        (b" /blank \r\n", "http://a.test/blank"),
        (b"http:///b.test/x", "http://b.test/x"),
        (b"http://me:secret@b.test/", "http://b.test/"),
        ("/é".encode(), "http://a.test/%C3%A9"),
        ("/é%20x".encode("latin-1"), "http://a.test/%E9%20x"),
        ("http://bücher.example/".encode(), "http://xn--bcher-kva.example/"),
        (b"/a\r\nSet-Cookie: x", "http://a.test/aSet-Cookie:%20x"),
    ],
)
def test_location_when_odd_then_is_read_as_browsers_do(location: bytes, target: str) -> None:
    assert verdict(302, location).url == target


def test_locations_when_several_mean_the_same_then_are_one() -> None:
    assert verdict(302, b"/x", b"http://a.test/x#y", b"").url == "http://a.test/x"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", [b"", b"#top", b"page?q=1", BASE.encode()])
def test_redirect_to_itself_when_met_then_is_a_loop_or_without_location(status: int, location: bytes) -> None:
    redirect = verdict(status, location)

    assert redirect.kind is RedirectKind.FAIL
    assert redirect.code == (Code.REDIRECT_LOOP if location else Code.NO_LOCATION)


@pytest.mark.parametrize("status", [301, 302])
def test_redirect_when_it_returns_to_an_earlier_hop_then_is_a_loop(status: int) -> None:
    hops = (Hop("http://a.test/first", 302), Hop("http://a.test/second", 307))

    redirect = verdict(status, b"/first", hops=hops)

    assert (redirect.kind, redirect.code, redirect.hops) == (RedirectKind.FAIL, Code.REDIRECT_LOOP, hops)


@pytest.mark.parametrize(
    ("taken", "limit", "kind"),
    [
        (0, 0, RedirectKind.FAIL),
        (0, 1, RedirectKind.FOLLOW),
        (9, 10, RedirectKind.FOLLOW),
        (10, 10, RedirectKind.FAIL),
    ],
)
def test_redirects_when_more_than_allowed_then_are_963(taken: int, limit: int, kind: RedirectKind) -> None:
    hops = tuple(Hop(f"http://a.test/{n}", 302) for n in range(taken))

    redirect = verdict(302, b"/next", hops=hops, max_redirects=limit)

    assert redirect.kind is kind
    assert redirect.code == (Code.REDIRECT_LOOP if kind is RedirectKind.FAIL else None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_when_it_leads_back_and_cookies_are_kept_then_is_followed_once(status: int) -> None:
    def lead_back(*hops: Hop, keeps_cookies: bool = True) -> Redirect:
        return decide(status, [BASE.encode()], base_url=BASE, boundary=BOUNDARY, hops=hops, keeps_cookies=keeps_cookies)

    first, second, without = lead_back(), lead_back(Hop(BASE, status)), lead_back(keeps_cookies=False)

    assert first == Redirect(kind=RedirectKind.FOLLOW, url=BASE, hops=(Hop(BASE, status),))
    assert (second.code, without.code) == (Code.REDIRECT_LOOP, Code.REDIRECT_LOOP)


def test_permanent_redirect_when_after_temporary_ones_then_ends_the_trail() -> None:
    hops = (Hop("http://a.test/first", 302),)

    redirect = verdict(301, b"/third", hops=hops)

    assert redirect.kind is RedirectKind.MOVE
    assert redirect.hops == (*hops, Hop(BASE, 301))


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/app", "http://a.test/app#/users"),
        (b"/app#!other", "http://a.test/app#!other"),
        (b"/app#top", "http://a.test/app"),
        (b"/app#", "http://a.test/app"),
        (b"http://b.test", "http://b.test/#/users"),
    ],
)
@pytest.mark.parametrize(("routes", "status"), [(True, 302), (True, 301), (False, 302)])
def test_redirect_when_a_route_was_asked_for_then_it_goes_on_unless_the_location_has_a_fragment(
    location: bytes, target: str, routes: bool, status: int
) -> None:
    rewriting, boundary = Rewriting(identity=Identity(routes=routes)), Boundary(allow_all=True, hash_routes=True)

    found = decide(status, [location], base_url="http://a.test/old#/users", boundary=boundary, rewriting=rewriting)

    assert found.url == (target if routes else target.partition("#")[0])


EXCLUDING = Boundary(
    include_hosts=["a.test"],
    exclude_hosts=["bad.a.test", "evil.test"],
    exclude_ports=[8081],
    exclude_urls=["*/login*", "re:secret"],
    hosts=[
        HostScope(host="a.test", include_paths=("/docs/",), exclude_paths=("/docs/private/",)),
        HostScope(host="foreign.test", exclude_ports=(9000,), exclude_paths=("/hidden",)),
    ],
    depth=2,
    max_path_segments=3,
)
IDENTITY = Identity(SESSION_NAMES)
REWRITING = Rewriting([PatternRewriter("/mobile/", "/")], IDENTITY)
REWRITTEN = TargetRules(Boundary(allow_all=True, exclude_urls=["http://a.test/secret"]), rewriting=REWRITING)
TARGETS = TargetRules(EXCLUDING, starts=["http://a.test:8000/"], named=["http://sso.test:7000/login"])
FIRST = "http://a.test/docs/"


@pytest.mark.parametrize(
    ("targets", "url", "rule"),
    [
        (TARGETS, "http://bad.a.test/docs/", "scope.exclude_hosts: bad.a.test"),
        (TARGETS, "https://below.evil.test./", "scope.exclude_hosts: evil.test"),
        (TARGETS, "http://a.test:8081/docs/", "scope.exclude_ports: 8081"),
        (TARGETS, "http://other.test:8081/", "scope.exclude_ports: 8081"),
        (TARGETS, "http://a.test/docs/private/x", "scope.host[0].exclude_paths: /docs/private/"),
        (TARGETS, "http://a.test/docs/%70rivate/x", "scope.host[0].exclude_paths: /docs/private/"),
        (TARGETS, "http://foreign.test/hidden/x", "scope.host[1].exclude_paths: /hidden"),
        (TARGETS, "http://foreign.test:9000/", "scope.host[1].exclude_ports: 9000"),
        (TARGETS, "http://other.test/login?x=1", "scope.exclude_urls: */login*"),
        (TARGETS, "http://other.test/?q=%73ecret", "scope.exclude_urls: re:secret"),
        # Merely not included, or beyond a limit.
        (TARGETS, "http://other.test/", None),
        (TARGETS, "http://other.test:9000/a/b/c/d/e", None),
        (TARGETS, "http://a.test/elsewhere", None),
        # Other ways to write what is the same row.
        (REWRITTEN, "http://a.test/secret?utm_source=x", "scope.exclude_urls: http://a.test/secret"),
        (REWRITTEN, "http://a.test/mobile/secret;jsessionid=1", "scope.exclude_urls: http://a.test/secret"),
        (REWRITTEN, "http://a.test/secret?key=1", None),
    ],
)
def test_target_when_an_exclude_rule_names_it_then_is_refused_by_that_rule(
    targets: TargetRules, url: str, rule: str | None
) -> None:
    refusal = targets.refuse(url, FIRST)

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


@pytest.mark.parametrize("line", ["http://a.test/secret", "pattern:re:^http://a.test/secret$"])
@pytest.mark.parametrize("url", ["http://a.test/secret", "http://a.test/secret?utm_source=x&%75tm_id=2"])
def test_forgotten_when_parameters_are_no_part_of_the_url_then_it_is_refused_with_them(line: str, url: str) -> None:
    boundary = Boundary(allow_all=True, forgotten=Forgotten([line], identity=IDENTITY))

    assert [decision.rule for decision in boundary.list_exclusions(url)] == [line.removeprefix("pattern:")]
    assert not boundary.decide_sitemap(url).allowed
    assert boundary.decide(f"{url}#".replace("secret", "other")).allowed


def test_forgotten_when_it_is_a_route_then_the_page_and_its_other_routes_stay() -> None:
    forgotten = Forgotten(["http://a.test/app#/lamps/1"], identity=Identity(routes=True))
    urls = ("http://a.test/app#/lamps/1", "http://a.test/app", "http://a.test/app#/lamps/2")

    assert [forgotten.find(url) is not None for url in urls] == [True, False, False]
