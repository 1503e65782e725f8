"""How long pages wait for their next visit, and what the dates of sitemaps say (D2, L5)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchcrawl.clock import DAY_MS
from searchcrawl.rules.recrawl import HOUR_MS, Intervals, Word, find_slack_ms, next_due_ms, read_lastmod, weigh
from tests.same_examples import SAME

BOUNDS = Intervals.of_hours(24, 1, 100)
ANY_MS = st.integers(min_value=-(10**13), max_value=10**13)


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
    assert next_due_ms(1_000, interval_ms=round(hours * HOUR_MS), failed_runs=failed_runs) == 1_000 + gap_ms


@settings(SAME)
@given(
    before=st.none() | ANY_MS,
    changed=st.none() | st.booleans(),
    elapsed=st.none() | ANY_MS,
    every=st.floats(0, 1e5),
    least=st.floats(0, 1e5),
    more=st.floats(0.001, 1e5),
)
def test_interval_when_a_visit_saw_anything_then_is_within_its_bounds_and_a_change_never_lengthens_it(
    before: int | None, changed: bool | None, elapsed: int | None, every: float, least: float, more: float
) -> None:
    intervals = Intervals.of_hours(every, least, least + more)

    found = {saw: intervals.adapt(before, changed=saw, elapsed_ms=elapsed) for saw in (True, None, False)}

    shorter, same, longer = found[True], found[None], found[False]
    assert shorter is not None
    assert same is not None
    assert longer is not None
    assert intervals.min_ms <= shorter <= same <= longer <= intervals.max_ms
    assert found[changed] == intervals.adapt(before, changed=changed, elapsed_ms=elapsed)


def test_interval_when_pages_have_none_of_their_own_then_there_is_none() -> None:
    assert Intervals.of_hours(24, 1, 0).adapt(HOUR_MS, changed=True, elapsed_ms=DAY_MS) is None


def test_interval_when_no_change_is_seen_then_grows_to_the_longest_and_changes_shrink_it_to_the_shortest() -> None:
    grown: int | None = None
    for _ in range(10):
        grown = BOUNDS.adapt(grown, changed=False, elapsed_ms=200 * HOUR_MS)
    shrunk = grown
    for _ in range(10):
        shrunk = BOUNDS.adapt(shrunk, changed=True, elapsed_ms=HOUR_MS)

    assert BOUNDS.adapt(None, changed=None, elapsed_ms=None) == 24 * HOUR_MS
    assert (grown, shrunk) == (100 * HOUR_MS, HOUR_MS)


@pytest.mark.parametrize("elapsed_ms", [None, -DAY_MS, 0, 23 * HOUR_MS])
def test_interval_when_a_visit_came_early_or_the_clock_went_back_then_an_unchanged_page_keeps_it(
    elapsed_ms: int | None,
) -> None:
    assert BOUNDS.adapt(48 * HOUR_MS, changed=False, elapsed_ms=elapsed_ms) == 48 * HOUR_MS
    assert BOUNDS.adapt(48 * HOUR_MS, changed=False, elapsed_ms=3650 * DAY_MS) == 72 * HOUR_MS


@pytest.mark.parametrize("begins_ms", [0, -30_000, 30_000])
def test_pages_when_a_run_of_hours_begins_each_day_then_each_run_visits_them(begins_ms: int) -> None:
    visited_ms, interval_ms = 5 * HOUR_MS, DAY_MS

    due_ms = next_due_ms(visited_ms, interval_ms=interval_ms) - find_slack_ms(interval_ms, into_run_ms=visited_ms)

    assert visited_ms + interval_ms // 2 <= due_ms < DAY_MS + begins_ms


@settings(SAME)
@given(gap=ANY_MS, into=ANY_MS)
def test_slack_when_a_run_takes_long_then_pages_wait_for_half_the_gap(gap: int, into: int) -> None:
    assert 0 <= find_slack_ms(abs(gap), into_run_ms=into) <= abs(gap) // 2


@pytest.mark.parametrize(
    ("lastmod_ms", "visited_ms", "word"),
    [
        (None, 5, None),
        (5, None, None),
        (5, 5, Word.SAME),
        (6, 5, Word.CHANGED),
        (DAY_MS, 5, Word.CHANGED),
        (100 * DAY_MS, 5, None),
    ],
)
def test_lastmod_when_read_then_one_far_ahead_says_nothing(
    lastmod_ms: int | None, visited_ms: int | None, word: Word | None
) -> None:
    assert read_lastmod(lastmod_ms, visited_ms=visited_ms, now_ms=1000) == word


def test_date_without_a_time_when_the_page_was_visited_on_that_day_then_only_a_change_proves_something() -> None:
    end_of_day, morning, day_before = 100 * DAY_MS - 1, 99 * DAY_MS + HOUR_MS, 98 * DAY_MS + HOUR_MS

    assert weigh(Word.CHANGED, changed=True, lastmod_ms=end_of_day, visited_ms=morning)
    assert not weigh(Word.CHANGED, changed=False, lastmod_ms=end_of_day, visited_ms=morning)
    assert weigh(Word.CHANGED, changed=False, lastmod_ms=end_of_day, visited_ms=day_before)
    assert weigh(Word.CHANGED, changed=False, lastmod_ms=end_of_day - HOUR_MS, visited_ms=morning)
