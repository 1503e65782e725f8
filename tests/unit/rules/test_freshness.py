"""Change conditions by the 8-case matrix of D2, due times, pauses."""

from __future__ import annotations

from itertools import product

import pytest

from searchcrawl.rules.freshness import Condition, PageVersion, has_changed, next_due_ms

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
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


@pytest.mark.parametrize(
    ("hours", "failed_runs", "gap_ms"),
    [
        (0, 0, 0),
        (0, 30, 0),
        (1, 0, HOUR_MS),
        (0.5, 0, HOUR_MS // 2),
        (1, 2, HOUR_MS),
        (1, 3, 2 * HOUR_MS),
        (1, 5, 2 * HOUR_MS),
        (1, 6, 4 * HOUR_MS),
        (24, 6, 4 * DAY_MS),
        (24, 9, 7 * DAY_MS),
        (1, 3_000_000, 7 * DAY_MS),
        (30 * 24, 0, 30 * DAY_MS),
        (30 * 24, 9, 30 * DAY_MS),
    ],
)
def test_row_when_it_failed_then_its_gap_doubles_after_each_third_run(
    hours: float, failed_runs: int, gap_ms: int
) -> None:
    assert next_due_ms(1_000, recrawl_every_hours=hours, failed_runs=failed_runs) == 1_000 + gap_ms
