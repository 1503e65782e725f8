"""Redirects: status × target inside or outside, loops, broken Locations (C6)."""

from __future__ import annotations

import pytest

from searchcrawl.codes import Code
from searchcrawl.items import Hop
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.identity import Identity
from searchcrawl.rules.redirects import Redirect, RedirectKind, decide
from searchcrawl.rules.rewriting import Rewriting

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
def test_permanent_redirect_when_it_leads_inside_then_the_target_is_a_url_of_its_own(status: int) -> None:
    redirect = verdict(status, INSIDE.encode())

    assert (redirect.kind, redirect.url, redirect.code) == (RedirectKind.MOVE, INSIDE, Code.MOVED)
    assert redirect.decision.allowed
    assert redirect.hops == (Hop(BASE, status),)


@pytest.mark.parametrize("status", [301, 308])
def test_permanent_redirect_when_it_leads_outside_then_the_rule_is_named(status: int) -> None:
    redirect = verdict(status, OUTSIDE.encode())

    assert (redirect.kind, redirect.code) == (RedirectKind.MOVE, Code.MOVED)
    assert redirect.decision == Decision(False, "no include matches", "sources/x.toml", "scope.include_hosts")


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
