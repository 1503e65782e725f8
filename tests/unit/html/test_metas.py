from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from searchcrawl.html.metas import NO_DIRECTIVES, Refresh, RobotsDirectives, parse_refresh, read_robots_directives

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NOINDEX = RobotsDirectives(noindex=True)
NOFOLLOW = RobotsDirectives(nofollow=True)
BOTH = RobotsDirectives(noindex=True, nofollow=True)


def until(moment: datetime) -> RobotsDirectives:
    return RobotsDirectives(unavailable_ms=int(moment.timestamp() * 1000))


def directives(
    *headers: str, metas: tuple[tuple[str, str], ...] = (), user_agent: str = "searchcrawl"
) -> RobotsDirectives:
    found = read_robots_directives(metas=metas, headers=headers, user_agent=user_agent, now=NOW)
    assert found.noindex_by_header == (found.noindex and not (metas and read_metas(metas).noindex))
    assert found.nofollow_by_header == (found.nofollow and not (metas and read_metas(metas).nofollow))
    return found._replace(noindex_by_header=False, nofollow_by_header=False)


def read_metas(metas: tuple[tuple[str, str], ...]) -> RobotsDirectives:
    return read_robots_directives(metas=metas, headers=(), user_agent="searchcrawl", now=NOW)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("robots", "noindex", NOINDEX),
        ("ROBOTS", " NoIndex , NoFollow ", BOTH),
        ("robots", "none", BOTH),
        ("robots", "noindex nofollow", BOTH),
        ("robots", "index, follow, all, max-snippet:-1", NO_DIRECTIVES),
        ("robots", "max-snippet: 20, nofollow", NOFOLLOW),
        ("searchcrawl", "nofollow", NOFOLLOW),
        ("otherbot", "noindex", NO_DIRECTIVES),
        ("robots", "noindexed", NO_DIRECTIVES),
        ("robots", "revisit-after: 7 days, noindex", NOINDEX),
        ("robots", "noarchive:1,nofollow", NOFOLLOW),
        ("description", "noindex", NO_DIRECTIVES),
    ],
)
def test_directives_when_in_meta_then_are_read(name: str, content: str, expected: RobotsDirectives) -> None:
    assert directives(metas=((name, content),)) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("noindex", NOINDEX),
        ("searchcrawl: noindex, nofollow", BOTH),
        ("SearchCrawl : none", BOTH),
        ("otherbot: noindex, nofollow", NO_DIRECTIVES),
        ("otherbot: noindex, searchcrawl: nofollow", NOFOLLOW),
        ("nofollow, otherbot: noindex", NOFOLLOW),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", NOINDEX),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, nofollow", BOTH),
        ("unavailable_after: 2026-05-31", NOINDEX),
        ("unavailable_after: 2026-06-01T00:00:01+00:00", until(NOW + timedelta(seconds=1))),
        (
            "unavailable_after: 2027-01-01, searchcrawl: unavailable_after: 2026-08-01",
            until(datetime(2026, 8, 1, tzinfo=UTC)),
        ),
        ("otherbot: unavailable_after: 2026-08-01", NO_DIRECTIVES),
        ("searchcrawl: unavailable_after: 2020-01-01", NOINDEX),
        ("otherbot: unavailable_after: 2020-01-01", NO_DIRECTIVES),
        ("unavailable_after: soon, nofollow", NOFOLLOW),
        ("", NO_DIRECTIVES),
        (":::,,;", NO_DIRECTIVES),
    ],
)
def test_directives_when_in_header_then_are_read(header: str, expected: RobotsDirectives) -> None:
    assert directives(header) == expected


def test_directives_when_in_several_places_then_add_up() -> None:
    assert directives("nofollow", metas=(("robots", "noindex"),)) == BOTH


@pytest.mark.parametrize("agent", ["ultra search", "ultra"])
def test_directives_when_agent_has_a_blank_then_matches_whole_or_token(agent: str) -> None:
    assert directives(f"{agent}: noindex", user_agent="Ultra Search") == NOINDEX


def test_directives_when_prefix_is_hostile_then_ends() -> None:
    assert directives("a " * 50_000 + ",x:" * 10_000) == NO_DIRECTIVES


def test_r13_content_when_of_hundreds_of_thousands_of_agents_then_is_read_in_no_time() -> None:
    found = directives(metas=(("robots", "a:" * 4_000_000),))

    assert found == NO_DIRECTIVES


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0;url=a", Refresh(0, "a")),
        ("5, URL = 'a b'c", Refresh(5, "a b")),
        ("1.9 a", Refresh(1, "a")),
        ("300", Refresh(300, "")),
        ("99999999999999999999;url=a", Refresh(2**31, "a")),
        ("0;url='a", Refresh(0, "a")),
        ("0; unknown", Refresh(0, "unknown")),
        ("url=a", None),
        ("-1;url=a", None),
        ("5x;url=a", None),
        ("", None),
    ],
)
def test_parse_refresh_when_given_content_then_reads_as_browsers(content: str, expected: Refresh | None) -> None:
    assert parse_refresh(content) == expected
