"""What of the fetched is indexed (B10, C6)."""

from __future__ import annotations

import pytest

from searchcrawl.codes import Code
from searchcrawl.items import Page
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.keep import Keeping, decide

URL = "http://a.test/page"
BOUNDARY = Boundary(include_hosts=["a.test"], file="sources/x.toml")


def keeping(page: Page, *, meta_robots: bool = True) -> Keeping:
    own_urls = {URL, "http://b.test/led-here"}
    return decide(page, own_urls=own_urls, boundary=BOUNDARY, meta_robots=meta_robots, file="sources/x.toml")


def test_page_when_it_has_text_then_is_indexed() -> None:
    assert keeping(Page(text="words")) == Keeping(code=200)
    assert keeping(Page(text="words")).indexed


@pytest.mark.parametrize("page", [Page(title="t"), Page(description="d"), Page(text=" x ")])
def test_page_when_anything_can_be_found_then_is_not_empty(page: Page) -> None:
    assert keeping(page).indexed


@pytest.mark.parametrize("page", [Page(), Page(text=" \n\t\u3000", title=" "), Page(author="me")])
def test_page_when_it_says_nothing_then_is_911(page: Page) -> None:
    assert keeping(page).code == Code.EMPTY
    assert not keeping(page).indexed


def test_noindex_when_robots_are_obeyed_then_is_952_with_its_key() -> None:
    kept = keeping(Page(text="words", noindex=True))

    assert kept.code == Code.NOT_INDEXED
    assert kept.decision == Decision(False, "meta robots noindex", "sources/x.toml", "keep.meta_robots")


def test_noindex_when_robots_are_overridden_then_is_indexed() -> None:
    assert keeping(Page(text="words", noindex=True), meta_robots=False).indexed


def test_refresh_when_it_leads_inside_then_is_953_and_allowed() -> None:
    kept = keeping(Page(text="words", noindex=True, refresh="http://a.test/new"))

    assert kept.code == Code.META_REFRESH
    assert kept.decision.allowed


def test_refresh_when_it_leads_outside_then_is_953_with_the_rule() -> None:
    kept = keeping(Page(text="words", refresh="http://c.test/"))

    assert kept.code == Code.META_REFRESH
    assert kept.decision == Decision(False, "no include matches", "sources/x.toml", "scope.include_hosts")


@pytest.mark.parametrize("target", [URL, URL + "#x", "http://b.test/led-here", "mailto:me@a.test", "http://a b/"])
def test_refresh_when_it_leads_nowhere_else_then_the_page_is_indexed(target: str) -> None:
    assert keeping(Page(text="words", refresh=target)).indexed
