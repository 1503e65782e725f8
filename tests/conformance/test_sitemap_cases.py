"""Sitemaps as the tests of crawler-commons read them (L5)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.items import SitemapUrl
from searchcrawl.kinds.web.sitemaps.formats import NotASitemap, SitemapParser
from tests.conformance.corpus import Divergence, cases, tally

_ELSEWHERE: Final = Divergence("policy", "strict_location: the boundary decides about places, not the sitemap's own")
_FILTER: Final = Divergence("not applicable", "url_filter: what a user of the library puts in adds a scheme")
#: By name of the test.
LISTED: Final = {
    "testMobileSitemap": _ELSEWHERE,
    "testLenientParser": _ELSEWHERE,
    "testSitemapParserBrokenXml": Divergence("policy", "allow_partial: what stands before a fault is kept"),
    "testSitemapXXE": Divergence("policy", "a DOCTYPE is passed over: nothing is expanded, nothing is fetched"),
    "testSitemapWithWrongNamespace": Divergence("not applicable", "strict_namespace: an option that is none of ours"),
    "testSitemapXMLfilterUrls": _FILTER,
    "testSitemapTXTfilterUrls": _FILTER,
}
#: What is read all the same, in the cases listed.
READ: Final = {
    "testMobileSitemap": ["mobile-friendly-1/", "mobile-friendly-2/", "no-mobile/"],
    "testLenientParser": [""],
    "testSitemapXXE": ["visit-here"],
    "testSitemapWithWrongNamespace": ["1", "2"],
}
#: A time without a zone is UTC for us, none for the library.
WITHOUT_ZONE: Final = {"http://www.example.com/article_5"}
END_OF_DAY_MS: Final = 86_400_000 - 1


def read(case: dict[str, Any]) -> tuple[str, list[SitemapUrl]]:
    reader = SitemapParser(base64.b64decode(case["body_b64"]))
    try:
        listed = [one for batch in reader.batches() for one in batch]
    except NotASitemap:
        return "error", []
    return reader.kind.value if reader.kind else "none", listed


def agrees(case: dict[str, Any], kind: str, listed: Sequence[SitemapUrl]) -> bool:
    if kind != case["expected_kind"] or [one.url for one in listed] != case["expected_urls"]:
        return False
    dates = case.get("expected_lastmod", [None] * len(listed))
    return all(one.url in WITHOUT_ZONE or same_moment(one, text) for one, text in zip(listed, dates, strict=True))


def same_moment(listed: SitemapUrl, text: str | None) -> bool:
    if text is None:
        return listed.lastmod_ms is None
    expected_ms = clock.to_ms(datetime.fromisoformat(text))
    # A date alone is the end of that day for us, its beginning for the library.
    return listed.lastmod_ms in (expected_ms, expected_ms + END_OF_DAY_MS)


def test_sitemaps_of_the_public_suite_when_read_then_agree_but_for_what_is_listed() -> None:
    found = cases("sitemaps.json")
    results = [(case, *read(case)) for case in found]

    agreement = tally(
        "sitemaps, crawler-commons",
        [(case["name"], agrees(case, kind, listed)) for case, kind, listed in results],
        LISTED,
    )

    assert agreement == (47, 51)
    urls = {case["name"]: [one.url for one in listed] for case, _, listed in results}
    assert {name: urls[name] for name in READ} == {
        name: [f"http://www.example.com/{path}" for path in paths] for name, paths in READ.items()
    }
