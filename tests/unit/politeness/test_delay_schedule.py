"""The delay by hour and weekday: windows, over midnight, time zones (C2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from searchcrawl.politeness.host_registry import DelaySchedule, DelayWindow
from searchcrawl.rules.week_window import parse_days, parse_minute

#: A Monday.
MONDAY = datetime(2025, 6, 2, tzinfo=UTC)


def window(days: str, from_: str, to: str, delay_seconds: float = 5.0) -> DelayWindow:
    return DelayWindow(
        days=parse_days(days), from_minute=parse_minute(from_), to_minute=parse_minute(to), delay_seconds=delay_seconds
    )


def plan(*windows: DelayWindow, zone: str = "UTC") -> DelaySchedule:
    return DelaySchedule(windows, zone=ZoneInfo(zone), otherwise_seconds=1.0)


@pytest.mark.parametrize(
    ("days", "numbers"),
    [
        ("mon-fri", {0, 1, 2, 3, 4}),
        ("sat,sun", {5, 6}),
        ("sat-mon", {5, 6, 0}),
        ("wed", {2}),
        ("mon-sun", set(range(7))),
        ("fri-fri,mon", {4, 0}),
    ],
)
def test_days_when_named_then_they_are_those(days: str, numbers: set[int]) -> None:
    assert parse_days(days) == numbers


@pytest.mark.parametrize(
    ("day", "time", "delay_seconds"),
    [
        (0, "07:59", 1.0),
        (0, "08:00", 5.0),
        (4, "17:59", 5.0),
        (4, "18:00", 1.0),
        (5, "12:00", 1.0),
        (6, "12:00", 1.0),
    ],
)
def test_delay_when_a_window_holds_then_it_is_that_of_the_window(day: int, time: str, delay_seconds: float) -> None:
    moment = MONDAY + timedelta(days=day, minutes=parse_minute(time))

    assert plan(window("mon-fri", "08:00", "18:00")).delay_seconds(moment) == delay_seconds


@pytest.mark.parametrize(
    ("day", "time", "delay_seconds"),
    [
        (4, "21:59", 1.0),
        (4, "22:00", 5.0),
        (5, "00:00", 5.0),
        (5, "05:59", 5.0),
        (5, "06:00", 1.0),
        (4, "03:00", 1.0),
        (5, "22:00", 1.0),
    ],
)
def test_delay_when_a_window_goes_over_midnight_then_it_belongs_to_the_day_it_began(
    day: int, time: str, delay_seconds: float
) -> None:
    moment = MONDAY + timedelta(days=day, minutes=parse_minute(time))

    assert plan(window("fri", "22:00", "06:00")).delay_seconds(moment) == delay_seconds


def test_delay_when_a_window_goes_over_the_end_of_the_week_then_monday_has_its_rest() -> None:
    assert plan(window("sun", "22:00", "06:00")).delay_seconds(MONDAY + timedelta(hours=5)) == 5.0


def test_delay_when_a_window_begins_and_ends_at_one_time_then_it_is_a_whole_day() -> None:
    tested = plan(window("sat,sun", "00:00", "00:00"))

    hours = [hour for hour in range(7 * 24) if tested.delay_seconds(MONDAY + timedelta(hours=hour)) == 5.0]

    assert hours == list(range(5 * 24, 7 * 24))


@pytest.mark.parametrize("order", [1, -1])
def test_delay_when_windows_overlap_then_the_longest_counts_whatever_their_order(order: int) -> None:
    windows = [window("mon", "08:00", "18:00", 2.0), window("mon-sun", "00:00", "00:00", 9.0)][::order]

    assert plan(*windows).delay_seconds(MONDAY + timedelta(hours=9)) == 9.0


def test_delay_when_the_window_asks_for_none_then_there_is_none() -> None:
    assert plan(window("mon", "00:00", "06:00", 0.0)).delay_seconds(MONDAY) == 0.0


def test_delay_when_a_zone_is_named_then_its_clock_counts_also_when_that_is_put_forward() -> None:
    tested = plan(window("mon-sun", "08:00", "18:00"), zone="Europe/Berlin")

    winter = [tested.delay_seconds(datetime(2025, 3, 29, 7, minute, tzinfo=UTC)) for minute in (0, 59)]
    summer = [tested.delay_seconds(datetime(2025, 3, 30, hour, 0, tzinfo=UTC)) for hour in (5, 6)]

    assert winter == [5.0, 5.0]
    assert summer == [1.0, 5.0]
