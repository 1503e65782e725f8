"""Patterns: URLs alike but for numbers, ids and parameter values, and the wider ones (L8, X-T1–X-T6)."""

from __future__ import annotations

import pytest

from searchcrawl.rules.traps import (
    Level,
    build_values_pattern,
    find_pattern,
    find_patterns,
    is_of_hosts,
    replace_numbers,
)

SITE = "http://a.test"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("/docs/intro.html", "/docs/intro.html"),
        ("/article/1234", "/article/{n}"),
        ("/page12.html", "/page{n}.html"),
        ("/2026/11/21", "/{n}/{n}/{n}"),
        ("/2026-11-21/x", "/{n}/x"),
        ("/v1.2.3/", "/v{n}/"),
        ("/s/8f3a9c2e/x", "/s/{n}/x"),
        ("/s/12345678/x", "/s/{n}/x"),
        ("/s/A3F9X2", "/s/{n}"),
        ("/u/123e4567-e89b-12d3-a456-426614174000", "/u/{n}"),
        ("/u/DEADBEEF-e89b-12d3-a456-426614174000", "/u/{n}"),
        ("/p;jsessionid=0AAB6C8DE415", "/p;jsessionid={n}"),
        ("/x/abcdefghijklmnopqrs7", "/x/{n}"),
        ("/deadbeef/facade", "/deadbeef/facade"),
        ("/GettingStartedWithPython", "/GettingStartedWithPython"),
        ("/stra%C3%9Fe/7", "/stra%C3%9Fe/{n}"),
        ("/", "/"),
    ],
)
def test_shape_when_a_path_has_numbers_or_ids_then_they_are_one_variable(text: str, shape: str) -> None:
    assert replace_numbers(text) == shape


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("/plain/page.html", None),
        ("/calendar/2026/11/21", "/calendar/{n}/{n}/{n}"),
        ("/month?month=3&year=2027", "/month?month&year"),
        ("/month?year=2027&month=3", "/month?month&year"),
        ("/shop?color=red&color=blue&size=3", "/shop?color&size"),
        ("/shop?f[0]=a&f[1]=b", "/shop?f[{n}]"),
        ("/x?123456", "/x?{n}"),
        ("/x?", "/x?"),
    ],
)
def test_values_pattern_when_urls_differ_in_values_then_it_is_the_same(url: str, pattern: str | None) -> None:
    assert build_values_pattern(SITE + url) == (None if pattern is None else SITE + pattern)


@pytest.mark.parametrize(
    ("url", "patterns"),
    [
        ("/", ["/**"]),
        ("/x.html", ["/*", "/**"]),
        ("/a/b/c.html", ["/a/b/*", "/a/**", "/**"]),
        ("/a/b/", ["/a/*", "/a/**", "/**"]),
        ("/s/8f3a9c2e/b", ["/s/{n}/b", "/s/{n}/*", "/s/**", "/**"]),
        ("/shop?color=red", ["/shop?color", "/shop?*", "/**"]),
        ("/shop/hats?color=red", ["/shop/hats?color", "/shop/hats?*", "/shop/**?*", "/**"]),
        ("/?q=1", ["/?q", "/?*", "/**"]),
    ],
)
def test_patterns_when_asked_then_the_narrowest_comes_first(url: str, patterns: list[str]) -> None:
    found = find_patterns(SITE + url)

    assert [text for _, text in found] == [SITE + pattern for pattern in patterns]
    assert [level for level, _ in found] == sorted(level for level, _ in found)


@pytest.mark.parametrize(
    ("origin", "shown", "above"),
    [
        ("http://h12.a.test", "http://h{n}.a.test", "http://*.a.test/**"),
        ("http://blog.a.test:8080", "http://blog.a.test:8080", "http://*.a.test:8080/**"),
        ("https://www.a.test", "https://www.a.test", None),
        ("http://a1.test", "http://a{n}.test", None),
        ("http://10.0.0.1:81", "http://10.0.0.1:81", None),
        ("http://[2001:db8::1]:81", "http://[2001:db8::1]:81", None),
    ],
)
def test_patterns_when_hosts_are_numbered_then_they_are_alike_and_addresses_are_not(
    origin: str, shown: str, above: str | None
) -> None:
    found = find_patterns(f"{origin}/x/y")

    assert found[-1].text == (above or f"{shown}/**")
    assert {pattern.text for pattern in found if pattern.level is Level.BRANCH} == {f"{shown}/x/**"}


def test_values_pattern_when_only_the_host_has_a_number_then_it_is_one() -> None:
    assert build_values_pattern("http://h12.a.test/") == "http://h{n}.a.test/"


def test_cut_when_a_narrower_pattern_is_proven_then_it_is_spared() -> None:
    cuts = {f"{SITE}/**", f"{SITE}/maze/**", f"{SITE}/good/bad/*"}
    productive = {f"{SITE}/good/**", f"{SITE}/maze/{{n}}"}

    found = {
        path: find_pattern(SITE + path, cuts, productive)
        for path in ("/maze/x/y", "/maze/7", "/good/x/y", "/good/bad/x")
    }

    assert found == {
        "/maze/x/y": f"{SITE}/maze/**",
        "/maze/7": None,
        "/good/x/y": None,
        "/good/bad/x": f"{SITE}/good/bad/*",
    }


def test_pattern_when_it_is_of_hosts_then_a_narrower_one_with_any_text_is_spared() -> None:
    host = f"{SITE}/**"

    found = [find_pattern(f"{SITE}/notes/x", {host}, (), spared) for spared in ((), {f"{SITE}/notes/*"})]

    assert found == [host, None]
    assert [is_of_hosts(text) for text in (host, "http://*.a.test/**", f"{SITE}/x/**", f"{SITE}/*")] == [
        True,
        True,
        False,
        False,
    ]
