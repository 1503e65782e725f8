"""What of the fetched is indexed (B8–B10, C6)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.items import Page
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.index_filter import NOINDEX_RULE, FetchedFacts, IndexDecision, IndexFilter, decide

URL = "http://a.test/page"
DAY_MS: Final = 86_400_000
NOW_MS: Final = 1_760_000_000_000
BOUNDARY = Boundary(include_hosts=["a.test"], file="sources/x.toml")


def keeping(page: Page, *, meta_robots: bool = True) -> IndexDecision:
    own_urls = {URL, "http://b.test/led-here"}
    return decide(page, own_urls=own_urls, boundary=BOUNDARY, rules=IndexFilter(meta_robots=meta_robots))


@pytest.mark.parametrize(
    ("page", "code", "rule"),
    [
        # Anything can be found, or it says nothing.
        *((page, 200, None) for page in (Page(title="t"), Page(description="d"), Page(text=" x "))),
        *(
            (page, Code.EMPTY, "empty document")
            for page in (Page(), Page(text=" \n\t\u3000", title=" "), Page(author="me"))
        ),
        (Page(text="words", noindex=True), Code.NOT_INDEXED, "keep.meta_robots: meta robots noindex"),
        (Page(text="words", noindex=True, refresh="http://a.test/new"), Code.META_REFRESH, None),
        (Page(text="words", refresh="http://c.test/"), Code.META_REFRESH, "scope.include_hosts: no include matches"),
        # A refresh that leads nowhere else.
        *(
            (Page(text="words", refresh=target), 200, None)
            for target in (URL, URL + "#x", "http://b.test/led-here", "mailto:me@a.test", "http://a b/")
        ),
    ],
)
def test_page_when_it_was_read_then_is_indexed_or_not_with_the_rule(page: Page, code: int, rule: str | None) -> None:
    kept = keeping(page)

    assert (kept.code, kept.rule) == (code, rule)


def test_noindex_when_robots_are_overridden_then_is_indexed() -> None:
    assert keeping(Page(text="words", noindex=True), meta_robots=False) == IndexDecision(code=200)


def fetched(**values: Any) -> FetchedFacts:
    given = {
        "url": "http://a.test/docs/Report%202.pdf",
        "name": "Report 2.pdf",
        "mimetype": "application/pdf",
        "size_bytes": 5_000,
        "modified_ms": NOW_MS - 10 * DAY_MS,
        "fetched_ms": NOW_MS,
    }
    return FetchedFacts(**{**given, **values})


@pytest.mark.parametrize(
    ("rules", "refused_by"),
    [
        ({"mime_types": ["application/*"]}, None),
        ({"mime_types": ["text/html", "APPLICATION/PDF"]}, None),
        ({"mime_types": ["text/*"]}, ("keep.mime_types", "no include matches")),
        ({"mime_types": ["application/pd"]}, ("keep.mime_types", "no include matches")),
        ({"exclude_mime_types": ["text/*", "*/pdf"]}, ("keep.exclude_mime_types", "*/pdf")),
        ({"exclude_mime_types": ["application/x+pdf", "application.pdf"]}, None),
        ({"min_bytes": 5_000, "max_bytes": 5_000}, None),
        ({"min_bytes": 5_001}, ("keep.min_bytes", "min_bytes = 5001")),
        ({"max_bytes": 4_999}, ("keep.max_bytes", "max_bytes = 4999")),
        ({"max_age_days": 10.0}, None),
        ({"max_age_days": 9.5}, ("keep.max_age_days", "max_age_days = 9.5")),
        ({"include_urls": ["*/docs/*"]}, None),
        ({"include_urls": ["*/news/*"]}, ("keep.include_urls", "no include matches")),
        ({"exclude_urls": ["re:report.*[.]pdf$"]}, None),
        ({"exclude_urls": ["re:(?i)report.*[.]pdf$"]}, ("keep.exclude_urls", "re:(?i)report.*[.]pdf$")),
        ({"include_urls": ["*"], "exclude_urls": ["http://a.test/docs/*"]}, ("keep.exclude_urls", "http://a.test/docs/*")),
        ({"include_names": ["report ?.PDF"]}, None),
        ({"include_names": ["report.*"]}, ("keep.include_names", "no include matches")),
        ({"include_names": [r"re:^Report \d\.[Pp]"]}, None),
        ({"include_names": ["re:^eport"]}, ("keep.include_names", "no include matches")),
        ({"exclude_names": [r"re:\.PDF$"]}, None),
        ({"exclude_names": [r"re:(?i)\.pdf$"]}, ("keep.exclude_names", r"re:(?i)\.pdf$")),
        ({"exclude_mime_types": ["re:^application/"]}, ("keep.exclude_mime_types", "re:^application/")),
        ({"exclude_names": ["*.doc", "Rep*2*"]}, ("keep.exclude_names", "Rep*2*")),
        ({"exclude_names": ["Report"]}, None),
    ],
)  # fmt: skip
def test_b8_filter_when_asked_then_refuses_what_fails_it_and_names_itself(
    rules: dict[str, Any], refused_by: tuple[str, str] | None
) -> None:
    refusal = IndexFilter(**rules, file="sources/x.toml").find_refusal(fetched())

    assert refusal == (Decision(False, refused_by[1], "sources/x.toml", refused_by[0]) if refused_by else None)


@pytest.mark.parametrize("modified_ms", [None, NOW_MS + DAY_MS])
def test_b8_age_when_not_said_or_in_the_future_then_is_kept(modified_ms: int | None) -> None:
    assert IndexFilter(max_age_days=0.001).find_refusal(fetched(modified_ms=modified_ms)) is None


def test_b8_age_when_a_page_stays_as_it_is_then_grows() -> None:
    rules = IndexFilter(max_age_days=30)

    refusals = [rules.refuse_unchanged(NOW_MS, NOW_MS + days * DAY_MS) for days in (30, 31)]

    assert [refusal and refusal.rule for refusal in refusals] == [None, "max_age_days = 30"]


def test_b8_name_when_a_page_has_none_then_only_includes_ask_for_it() -> None:
    assert IndexFilter(exclude_names=["*.html"]).find_refusal(fetched(name="")) is None
    assert IndexFilter(include_names=["*.html"]).find_refusal(fetched(name="")) is not None


def test_b8_filters_when_several_refuse_then_all_are_named_in_the_order_they_are_asked() -> None:
    rules = IndexFilter(
        exclude_mime_types=["*/pdf", "image/*", "application/*"],
        max_bytes=10,
        max_age_days=1,
        include_urls=["*/news/*"],
        exclude_urls=["*.pdf"],
        exclude_names=["*"],
    )

    named = [(refusal.key, refusal.rule) for refusal in rules.list_refusals(fetched(), noindex="meta robots noindex")]

    assert named == [
        ("keep.meta_robots", "meta robots noindex"),
        ("keep.exclude_mime_types", "*/pdf"),
        ("keep.exclude_mime_types", "application/*"),
        ("keep.max_bytes", "max_bytes = 10"),
        ("keep.max_age_days", "max_age_days = 1"),
        ("keep.exclude_urls", "*.pdf"),
        ("keep.include_urls", "no include matches"),
        ("keep.exclude_names", "*"),
    ]


def test_b8_filters_when_none_is_set_then_there_is_nothing_to_ask() -> None:
    assert not IndexFilter(meta_robots=False)
    assert IndexFilter(meta_robots=False).list_refusals(fetched(), noindex="meta robots noindex") == []
    assert IndexFilter(min_bytes=1)


def test_b8_url_when_it_has_needless_escapes_then_rules_see_it_without() -> None:
    rules = IndexFilter(exclude_urls=["*/private/*"])

    assert rules.find_refusal(fetched(url="http://a.test/%70rivate/x")) is not None


@pytest.mark.parametrize("key", ["mime_types", "exclude_mime_types", "include_names", "exclude_names", "exclude_urls"])
def test_b8_rule_when_empty_then_is_refused_with_its_key(key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"keep.{key}: must not be empty"):
        IndexFilter(**{key: [" "]}, file="sources/x.toml")


def test_b8_wildcards_when_many_then_take_no_time() -> None:
    rules = IndexFilter(exclude_names=["*a" * 60 + "b"])

    assert rules.find_refusal(fetched(name="a" * 5_000)) is None


def test_filter_when_the_page_is_noindex_as_well_then_noindex_is_named() -> None:
    pages = [Page(text="words", noindex=True), Page(text="words"), Page()]

    rules, refusal = IndexFilter(), "keep.exclude_names: x"
    kept = [decide(page, own_urls={URL}, boundary=BOUNDARY, rules=rules, refusal=refusal) for page in pages]

    assert [one.code for one in kept] == [Code.NOT_INDEXED] * 3
    assert [one.rule for one in kept] == [NOINDEX_RULE, "keep.exclude_names: x", "keep.exclude_names: x"]
