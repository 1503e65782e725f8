"""Change conditions by the 8-case matrix of D2, due times, and what removes a known document (D4, D5, L3)."""

from __future__ import annotations

from itertools import product

import pytest

from searchcrawl.rules.lifecycle import (
    Condition,
    PageVersion,
    has_changed,
    is_evidence,
    is_within_limits,
)

REMOVE_ON = frozenset({404, 410})
BEFORE = PageVersion(last_modified="Mon, 02 Mar 2026 10:00:00 GMT", etag='"a"', checksum=b"a")
OTHER = PageVersion(last_modified="Tue, 03 Mar 2026 10:00:00 GMT", etag='"b"', checksum=b"b")


@pytest.mark.parametrize("condition", [["date"], ["checksum"], ["etag"], ["date", "checksum"], list(Condition)])
@pytest.mark.parametrize(("date", "checksum", "etag"), list(product([False, True], repeat=3)))
def test_page_when_any_listed_trait_differs_then_is_changed(
    condition: list[str], date: bool, checksum: bool, etag: bool
) -> None:
    after = PageVersion(
        last_modified=(OTHER if date else BEFORE).last_modified,
        etag=(OTHER if etag else BEFORE).etag,
        checksum=(OTHER if checksum else BEFORE).checksum,
    )

    differing = {name for name, differs in (("date", date), ("checksum", checksum), ("etag", etag)) if differs}

    assert has_changed(condition, BEFORE, after) is bool(differing & set(condition))


@pytest.mark.parametrize("condition", [["date"], ["etag"], []])
@pytest.mark.parametrize("lacking", ["before", "after", "both"])
@pytest.mark.parametrize("same", [True, False])
def test_trait_when_not_sent_then_falls_back_to_the_checksum(condition: list[str], lacking: str, same: bool) -> None:
    checksum_only = PageVersion(checksum=b"a")
    before = checksum_only if lacking != "after" else BEFORE
    after = PageVersion(checksum=b"a" if same else b"b")
    if lacking == "before":
        after = PageVersion(last_modified="x", etag="y", checksum=after.checksum)

    assert has_changed(condition, before, after) is not same


def test_page_when_there_was_no_good_body_then_is_changed() -> None:
    assert has_changed(["checksum"], PageVersion(), PageVersion(checksum=b"a"))


def test_etags_when_one_is_weak_then_are_compared_weakly() -> None:
    assert not has_changed(["etag"], PageVersion(etag='W/"a"', checksum=b"a"), PageVersion(etag='"a"', checksum=b"b"))


def test_condition_when_unknown_then_is_an_error() -> None:
    with pytest.raises(ValueError, match="size"):
        has_changed(["size"], BEFORE, BEFORE)


@pytest.mark.parametrize("code", [404, 410, 952, 953, 954, 955, 1004])
def test_code_when_it_is_about_the_url_itself_then_is_evidence(code: int) -> None:
    assert is_evidence(code, "rule", REMOVE_ON)
    assert is_evidence(code, None, REMOVE_ON)


@pytest.mark.parametrize(
    "code",
    [0, 200, 302, 304, 401, 403, 429, 500, 503, *range(902, 912), 956, *range(958, 966), 1003, 1006, 1009, 1010],
)
def test_code_when_it_may_pass_then_is_no_evidence(code: int) -> None:
    assert not is_evidence(code, "rule", REMOVE_ON)


@pytest.mark.parametrize(
    ("rule", "expected"), [("Disallow: /tmp/", True), ("robots.unavailable", False), (None, False), ("", False)]
)
def test_robots_when_a_line_forbids_then_is_evidence_but_not_when_unavailable(rule: str | None, expected: bool) -> None:
    assert is_evidence(951, rule, REMOVE_ON) is expected


def test_code_when_listed_by_the_source_then_is_evidence() -> None:
    assert is_evidence(403, None, frozenset({403}))
    assert not is_evidence(404, None, frozenset({403}))


@pytest.mark.parametrize(
    ("removals", "documents", "percent", "most", "expected"),
    [
        (0, 0, 10, 1000, True),
        (10, 10, 10, 1000, True),
        (11, 20, 10, 1000, False),
        (10, 500, 0, 1000, True),
        (50, 500, 10, 1000, True),
        (51, 500, 10, 1000, False),
        (11, 105, 10, 1000, False),
        (11, 110, 10, 1000, True),
        (1000, 100_000, 10, 1000, True),
        (1001, 100_000, 10, 1000, False),
        (5, 500, 10, 4, False),
        (1, 500, 10, 0, False),
        (500, 500, 100, 1000, True),
    ],
)
def test_removals_when_more_than_either_limit_then_are_refused(
    removals: int, documents: int, percent: float, most: int, expected: bool
) -> None:
    assert is_within_limits(removals, documents, max_delete_percent=percent, max_delete_documents=most) is expected
