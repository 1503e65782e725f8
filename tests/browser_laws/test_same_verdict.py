"""L13, X-N7: a page has of other origins what bare Chromium gives it, and servers see what bare Chromium sends, case by case."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from tests.browser_laws import (
    cookie_cases,
    element_cases,
    fetch_cases,
    frame_cases,
    password_cases,
    policy_cases,
    redirect_cases,
    worker_cases,
)
from tests.browser_laws.case import Case, Verdict
from tests.browser_laws.runners import BareChromium, CrawlBrowser, run_all
from tests.browser_laws.sites import Sites
from tests.page_wall import need_browser

pytestmark = pytest.mark.extended

_TABLES = (
    fetch_cases,
    redirect_cases,
    element_cases,
    frame_cases,
    cookie_cases,
    policy_cases,
    worker_cases,
    password_cases,
)
CASES: list[Case] = [case for table in _TABLES for case in table.CASES]
#: By the origins, methods, paths and cookies.
Expected = tuple[tuple[str, ...], tuple[str, ...]]


def run(make: Callable[[Sites], BareChromium | CrawlBrowser]) -> dict[str, Verdict]:
    """The verdicts of one browser by the names of the cases."""
    need_browser()

    async def run_with_sites() -> list[Verdict]:
        async with Sites(CASES) as sites:
            return await run_all(make(sites), len(CASES))

    return dict(zip((case.name for case in CASES), asyncio.run(run_with_sites()), strict=True))


@pytest.fixture(scope="module")
def bare() -> dict[str, Verdict]:
    return run(BareChromium)


def expect(case: Case) -> Expected:
    return case.reads, tuple(sorted(case.sends))


def shorten(verdict: Verdict) -> Expected:
    """What a case names of a verdict."""
    return verdict.read, tuple(sorted(str(seen) for seen in verdict.seen if seen.path != "page"))


def is_stricter(verdict: Verdict, bare: Verdict) -> bool:
    """Whether each request is one of bare Chromium, but for the password, and nothing is read with one that Chromium lacks."""
    allowed = Counter(bare.seen)
    for seen in verdict.seen:
        same = seen if allowed[seen] else seen._replace(has_password=True)
        if not allowed[same]:
            return False
        allowed[same] -= 1
    return verdict.read == bare.read or "password" not in verdict.read


def test_cases_when_listed_then_each_has_a_name_and_most_must_be_equal() -> None:
    names = Counter(case.name for case in CASES)

    assert [name for name, count in names.items() if count > 1] == []
    assert sum(not case.stricter for case in CASES) >= 300
    assert sum(bool(case.stricter) for case in CASES) <= 5


def test_bare_chromium_when_it_opens_the_pages_then_it_does_what_the_standards_say(bare: dict[str, Verdict]) -> None:
    different = {
        case.name: (shorten(bare[case.name]), expect(case))
        for case in CASES
        if shorten(bare[case.name]) != expect(case)
    }

    assert different == {}


# It takes as long as all other pages of browsers together.
@pytest.mark.soak
def test_l13_crawl_when_it_renders_the_pages_then_they_read_and_send_what_bare_chromium_does(
    bare: dict[str, Verdict],
) -> None:
    crawl = run(CrawlBrowser)

    different = {
        case.name: (crawl[case.name], bare[case.name])
        for case in CASES
        if crawl[case.name] != bare[case.name]
        and not (case.stricter and is_stricter(crawl[case.name], bare[case.name]))
    }
    assert different == {}
