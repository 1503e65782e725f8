"""When a schedule is due, with daylight saving time, windows and long pauses (H1, H2)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from searchcrawl.clock import iso, to_ms
from searchcrawl.scheduling.planner import Timetable, build_timetable, find_machine_zone
from searchcrawl.sources.project import Schedule

MINUTE = 60_000


def ms(text: str) -> int:
    return to_ms(datetime.fromisoformat(text).replace(tzinfo=UTC))


def shown(moment: int | None) -> str | None:
    text = iso(moment)
    return text and text[5:16]


def timetable(zone: str = "Europe/Berlin", **keys: object) -> Timetable:
    return build_timetable(Schedule.model_validate({"sources": ("a",), "timezone": zone, **keys}))


@pytest.mark.parametrize(
    ("cron", "begin", "moments"),
    [
        # The clock goes from 02:00 to 03:00: what is skipped is due right after it, and no other day changes.
        ("30 2 * * *", "2026-03-28T00:00", "03-28T01:30 03-29T01:00 03-30T00:30"),
        # It goes from 03:00 back to 02:00: once.
        ("30 2 * * *", "2026-10-24T12:00", "10-25T00:30 10-26T01:30"),
        ("45 2 * * *", "2026-10-25T00:50", "10-26T01:45"),
        ("45 2 * * *", "2026-10-25T01:10", "10-26T01:45"),
        # What follows the clock has each hour.
        ("0 * * * *", "2026-10-24T23:30", "10-25T00:00 10-25T01:00 10-25T02:00"),
        ("0 * * * *", "2026-03-28T23:30", "03-29T00:00 03-29T01:00 03-29T02:00"),
        ("15 3 29 2 *", "2026-01-01T00:00", "02-29T02:15"),
        ("0 9 * * mon", "2026-11-23T09:00", "11-30T08:00"),
    ],
)
def test_moments_of_cron_when_listed_then_each_is_due_once(cron: str, begin: str, moments: str) -> None:
    table, now = timetable(cron=cron), ms(begin)
    for expected in moments.split():
        following = table.find_next(now)

        assert shown(following) == expected
        assert table.find_due(now, following) == following
        assert table.find_due(now, following - 1) is None
        assert table.find_due(following, following + 1) is None
        now = following


def test_due_moment_when_nothing_looked_for_years_then_the_last_one_is_found_without_counting_all() -> None:
    table = timetable("UTC", cron="* * * * *")

    assert shown(table.find_due(ms("2001-01-01T00:00"), ms("2026-05-05T10:20:30"))) == "05-05T10:20"
    assert (
        shown(timetable("UTC", cron="0 0 1 1 *").find_due(ms("2001-01-01T00:00"), ms("2026-05-05T10:20")))
        == "01-01T00:00"
    )


@pytest.mark.parametrize(("passed", "due"), [(0, None), (59, None), (60, 60), (119, 60), (120, 120), (10_000, 9_960)])
def test_interval_when_asked_then_its_moments_are_so_far_apart_from_the_last_one(passed: int, due: int | None) -> None:
    begin = ms("2026-03-29T00:00")

    found = timetable(every_minutes=60).find_due(begin, begin + passed * MINUTE)

    assert found == (None if due is None else begin + due * MINUTE)


@pytest.mark.parametrize(
    ("moment", "opening"),
    [
        ("2026-11-23T22:00", "11-23T22:00"),  # a Monday
        ("2026-11-24T05:59", "11-24T05:59"),
        ("2026-11-24T06:00", "11-24T22:00"),
        ("2026-11-27T22:00", "11-30T22:00"),
        ("2026-11-28T05:00", "11-30T22:00"),
    ],
)
def test_window_when_a_moment_is_outside_then_it_is_put_off_until_it_opens(moment: str, opening: str) -> None:
    table = timetable("UTC", cron="0 * * * *", window={"days": "mon-thu", "from": "22:00", "to": "06:00"})

    assert shown(table.find_opening(ms(moment))) == opening


def test_window_when_it_opens_in_the_hour_that_daylight_saving_time_skips_then_it_opens_after_it() -> None:
    table = timetable(cron="0 * * * *", window={"from": "02:30", "to": "04:00"})

    assert shown(table.find_opening(ms("2026-03-28T23:30"))) == "03-29T01:30"


@pytest.mark.parametrize(("variable", "zone"), [("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo")])
def test_zone_of_the_machine_when_it_is_named_then_it_has_its_rules(
    monkeypatch: pytest.MonkeyPatch, variable: str, zone: str
) -> None:
    monkeypatch.setenv("TZ", variable)

    assert find_machine_zone() == ZoneInfo(zone)


@pytest.mark.parametrize("variable", ["", "/no/such/file"])
def test_zone_of_the_machine_when_nothing_names_it_then_it_is_that_of_now(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("TZ", variable)

    now = datetime.now(UTC)
    assert now.astimezone(find_machine_zone()).utcoffset() is not None
