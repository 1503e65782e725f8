"""robots.txt by RFC 9309, and the manual's example (C5, X-B1–X-B6)."""

from __future__ import annotations

import random

import pytest

from searchcrawl.robots.parser import MAX_BYTES, MAX_WILDCARD_RULES, RobotsFile
from searchcrawl.rules.decision import Decision

URL = "http://www.acme.test/robots.txt"
MANUAL = b"""# robots.txt for http://www.acme.test/

User-agent: *
Disallow: /cyberworld/map/
Disallow: /tmp/
Disallow: /foo.html
"""


def robots(*lines: str, agent: str = "searchcrawl") -> RobotsFile:
    return RobotsFile.parse("\n".join(lines).encode(), agent, url=URL)


def allowed(file: RobotsFile, *paths: str) -> list[bool]:
    return [file.decide(f"http://www.acme.test{path}").allowed for path in paths]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/cyberworld/map/", "Disallow: /cyberworld/map/"),
        ("/tmp/x?y=z", "Disallow: /tmp/"),
        ("/foo.html", "Disallow: /foo.html"),
        ("/foo.html5", "Disallow: /foo.html"),
        *((path, "") for path in ("/", "/tmp", "/cyberworld/", "/Foo.html", "/x/tmp/", "/?/tmp/")),
    ],
)
def test_manuals_example_when_asked_then_the_line_that_forbids_is_the_rule(path: str, rule: str) -> None:
    decision = RobotsFile.parse(MANUAL, "searchcrawl", url=URL).decide(f"http://www.acme.test{path}")

    assert decision == Decision(not rule, rule, URL, "robots.txt")


@pytest.mark.parametrize("agent", ["Ultra Search", "ultra search", "ULTRA  SEARCH"])
def test_agent_with_a_blank_when_the_file_names_it_then_is_matched_whole(agent: str) -> None:
    file = robots("User-agent: Ultra Search", "", "Disallow: /tmp/", "", "User-agent: *", "Disallow: /", agent=agent)

    assert allowed(file, "/tmp/", "/x") == [False, True]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("User-agent: searchcrawl", True),
        ("user-AGENT :SearchCrawl", True),
        ("User-agent: searchcrawl/1.2", True),
        ("User-agent: searchcrawl bot", True),
        ("User-agent: searchcrawl # ours", True),
        ("User-agent: other, searchcrawl", True),
        ("Useragent: searchcrawl", True),
        ("User agent: searchcrawl", True),
        ("User-agent searchcrawl", True),
        ("User-agent: *", True),
        ("User-agent: * # all", True),
        ("User-agent: search", False),
        ("User-agent: searchcrawler", False),
        ("User-agent: my searchcrawl", False),
        ("User-agent:", False),
        ("User-agents: searchcrawl", False),
        ("# User-agent: searchcrawl", False),
    ],
)
def test_agent_line_when_read_then_means_one_token(line: str, meant: bool) -> None:
    file = robots(line, "Disallow: /")

    assert allowed(file, "/") == [not meant]


@pytest.mark.parametrize(
    ("lines", "agent", "verdicts"),
    [
        # Another agent than the one with a blank.
        *(
            ([f"User-agent: {token}", "Disallow: /"], "Ultra Search", {"/": True})
            for token in ("Ultra", "Search", "Ultra Searcher", "Ultra/Search")
        ),
        # A version is cut.
        (["User-agent: searchcrawl", "Disallow: /"], "searchcrawl/1.0", {"/": False}),
        # Groups of one agent are merged.
        (
            [
                *("User-agent: searchcrawl", "Disallow: /a", "User-agent: *", "Disallow: /"),
                *("User-agent: searchcrawl", "Disallow: /b"),
            ],
            "searchcrawl",
            {"/a": False, "/b": False, "/c": True},
        ),
        # An empty group shields from the stars.
        (["User-agent: *", "Disallow: /", "", "User-agent: searchcrawl", "Disallow:"], "searchcrawl", {"/": True}),
        # Rules before any agent mean nobody.
        (["Disallow: /", "User-agent: other"], "searchcrawl", {"/": True}),
    ],
)
def test_groups_when_the_file_has_several_then_those_of_the_agent_count(
    lines: list[str], agent: str, verdicts: dict[str, bool]
) -> None:
    assert allowed(robots(*lines, agent=agent), *verdicts) == [*verdicts.values()]


@pytest.mark.parametrize("between", ["", "Noindex: /x", "Sitemap: /s.xml", "Crawl-delay: 3", "# note", "nonsense"])
def test_group_when_other_lines_stand_between_its_agents_then_holds_for_all(between: str) -> None:
    file = robots("User-agent: searchcrawl", between, "User-agent: other", between, "Disallow: /x", "Disallow: /y")

    assert allowed(file, "/x", "/y", "/z") == [False, False, True]


@pytest.mark.parametrize(
    ("lines", "path", "rule"),
    [
        (["Allow: /a", "Disallow: /"], "/a", "Allow: /a"),
        (["Disallow: /", "Allow: /a"], "/b", "Disallow: /"),
        (["Disallow: /a", "Allow: /a"], "/a", "Allow: /a"),
        (["Allow: /a", "Disallow: /a/b"], "/a/bc", "Disallow: /a/b"),
        (["Disallow: /*.gif$"], "/x.gif", "Disallow: /*.gif$"),
        (["Disallow: /*.gif$"], "/x.gif?", ""),
        (["Disallow: /a*b*c"], "/a1b2c3", "Disallow: /a*b*c"),
        (["Disallow: /x$"], "/x", "Disallow: /x$"),
        (["Disallow: /x$"], "/xy", ""),
        (["Disallow: *?sid="], "/a?sid=1", "Disallow: *?sid="),
        (["Allow: /a/index.html", "Disallow: /"], "/a/", "Allow: /a/index.html"),
        (["Allow: /a/index.html", "Disallow: /"], "/a/b", "Disallow: /"),
        (["disalow /x  # typo"], "/x", "disalow /x"),
        (["Disallow: /é"], "/%C3%A9", "Disallow: /é"),
        (["Disallow: /%c3%a9"], "/%C3%A9", "Disallow: /%c3%a9"),
        (["Disallow: /%70rivate"], "/private", "Disallow: /%70rivate"),
        (["Disallow: /private"], "/%70rivate", "Disallow: /private"),
        (["Disallow: /a%2Fb"], "/a/b", ""),
        (["Disallow: /a b"], "/a%20b", "Disallow: /a b"),
        (["Disallow: /"], "/robots.txt", ""),
        (["Disallow: "], "/", ""),
    ],
)
def test_longest_pattern_when_several_match_then_decides_and_is_named(lines: list[str], path: str, rule: str) -> None:
    decision = robots("User-agent: *", *lines).decide(f"http://www.acme.test{path}")

    assert decision.rule == rule
    assert decision.allowed is not rule.lower().startswith("dis")


def test_rules_when_there_are_many_then_the_longest_still_decides() -> None:
    file = robots("User-agent: *", *(f"Disallow: /p{n:05}" for n in range(20_000)), "Allow: /p00007/x", "Allow: /p")

    assert allowed(file, "/p00007/", "/p00007/x", "/p19999", "/p2", "/q") == [False, True, False, True, True]
    assert file.decide("http://www.acme.test/p12345").rule == "Disallow: /p12345"


def test_wildcard_rules_when_too_many_then_the_longest_are_kept() -> None:
    file = robots(
        "User-agent: *", *(f"Disallow: /*x{n:05}" for n in range(MAX_WILDCARD_RULES)), "Disallow: /*y", "Disallow: /z"
    )

    assert allowed(file, "/x01999", "/y", "/z") == [False, True, False]


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n", "\n\n", "\r\n\r\n"])
def test_lines_when_ended_in_any_way_then_are_lines(line_end: str) -> None:
    body = line_end.join(["User-agent: *", "Disallow: /a", "Disallow: /b"]).encode()

    assert allowed(RobotsFile.parse(body, "searchcrawl"), "/a", "/b", "/c") == [False, False, True]


def test_lines_when_they_hold_other_separators_then_are_not_split() -> None:
    file = robots("User-agent: *", "Disallow: /a\x0b\x85\u2028Disallow: /b")

    assert allowed(file, "/a", "/b") == [True, True]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_body_when_encoded_with_a_mark_then_is_decoded(encoding: str) -> None:
    body = "\ufeff" * (encoding == "utf-16-be") + "User-agent: *\nDisallow: /é\n"

    assert allowed(RobotsFile.parse(body.encode(encoding), "searchcrawl"), "/%C3%A9", "/e") == [False, True]


def test_body_when_latin_1_then_its_bytes_are_compared() -> None:
    file = RobotsFile.parse("User-agent: *\nDisallow: /é\n".encode("latin-1"), "searchcrawl")

    assert allowed(file, "/%E9") == [False]
    assert file.decide("http://a.test/%E9").rule.isprintable()


def test_body_when_too_long_then_ends_at_a_whole_line_within_500_kib() -> None:
    start = b"User-agent: *\nDisallow: /early\n"
    cut = b"Disallow: /cut-here\n"
    filler = b"#" * (MAX_BYTES - len(start) - len(cut) + 8) + b"\n"

    file = RobotsFile.parse(start + filler + cut + b"Disallow: /late\n", "searchcrawl")

    assert allowed(file, "/early", "/late", "/c") == [False, True, True]


@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        (["User-agent: *", "Crawl-delay: 10"], 10.0),
        (["User-agent: *", "Crawl-delay: 0.5", "Disallow:"], 0.5),
        (["User-agent: *", "Disallow:", "Crawl delay: 3"], 3.0),
        (["User-agent: searchcrawl", "Disallow: /x", "User-agent: *", "Crawl-delay: 9"], None),
        (["User-agent: searchcrawl", "Crawl-delay: 1", "User-agent: b", "Crawl-delay: 2", "Disallow: /"], 1.0),
        (["User-agent: *", "Crawl-delay: soon"], None),
        (["User-agent: *", "Crawl-delay: -1"], None),
        (["User-agent: *", "Crawl-delay: inf"], None),
        (["User-agent: *", "Crawl-delay: nan"], None),
        (["Crawl-delay: 5"], None),
    ],
)
def test_crawl_delay_when_written_then_is_that_of_the_agents_group(lines: list[str], delay: float | None) -> None:
    assert robots(*lines).crawl_delay_seconds == delay


def test_sitemaps_when_listed_then_are_absolute_http_urls_each_once() -> None:
    file = robots(
        "Sitemap: /one.xml",
        "User-agent: other",
        "sitemap: http://b.test/Two.xml",
        "Site-map: http://www.acme.test/one.xml",
        "Sitemap: file:///etc/passwd",
        "Sitemap: http://a b/",
        "Sitemap:",
    )

    assert file.sitemaps == ("http://www.acme.test/one.xml", "http://b.test/Two.xml", URL)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00" * 1000,
        b"\xff\xfe",
        b"\xfe\xff\xd8",
        b"<!DOCTYPE html><html><body>Not found</body></html>",
        "User-agent: *\nDi\u017fallow: /\n".encode(),
        b"User-agent: *\nDisallow: " + b"*a" * 50_000,
        b"User-agent: *\nDisallow: /" + b"%" * 1000,
        b":" * 10_000,
        random.Random(9309).randbytes(20_000),
    ],
)
def test_body_when_nonsense_then_is_read_without_an_error(body: bytes) -> None:
    file = RobotsFile.parse(body, "searchcrawl", url=URL)

    assert allowed(file, "/", "/%", "/%ED%A0%80?x=%ff#y", "//x/[?") == [True] * 4


def test_group_when_named_by_thousands_of_lines_then_each_rule_is_kept_once() -> None:
    # Kept once a line they would be a hundred million rules.
    body = b"User-agent: *\n" * 20_000 + b"".join(b"Disallow: /%d$\n" % number for number in range(5_000))

    file = RobotsFile.parse(body, "searchcrawl", url=URL)

    assert file.decide("http://www.acme.test/4999").rule == "Disallow: /4999$"
    assert file.decide("http://www.acme.test/5000").allowed


def test_rule_when_a_line_is_hostile_then_is_short_and_printable() -> None:
    rule = (
        robots("User-agent: *", "Disallow: /\x1b[31m" + "x" * 5000, "Disallow: /")
        .decide("http://a.test/%1B%5B31m" + "x" * 5000)
        .rule
    )

    assert rule.isprintable()
    assert len(rule) <= 200
