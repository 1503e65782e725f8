"""Times: aware, in UTC, kept in milliseconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from searchcrawl import clock


def test_now_when_read_then_is_aware_utc() -> None:
    moment = clock.now()

    assert moment.utcoffset() == timedelta(0)


def test_clocks_when_read_in_turn_then_agree() -> None:
    before = clock.now()
    between = clock.now_ms()
    after = clock.now()

    assert clock.to_ms(before) - 1 <= between <= clock.to_ms(after) + 1


def test_monotonic_when_read_twice_then_does_not_go_back() -> None:
    first = clock.monotonic()

    assert clock.monotonic() >= first


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_772_445_600_123, "2026-03-02T10:00:00.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (4_133_980_799_999, "2100-12-31T23:59:59.999Z"),
    ],
)
def test_time_when_stored_then_comes_back_to_the_millisecond(milliseconds: int, text: str) -> None:
    assert clock.to_ms(clock.from_ms(milliseconds)) == milliseconds
    assert clock.iso(milliseconds) == text


def test_time_when_unknown_then_has_no_text() -> None:
    assert clock.iso(None) is None


def test_moment_when_in_another_zone_then_is_the_same_instant() -> None:
    tokyo = datetime(2026, 3, 2, 19, tzinfo=timezone(timedelta(hours=9)))

    assert clock.from_ms(clock.to_ms(tokyo)) == datetime(2026, 3, 2, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("Sun, 06 Nov 1994 08:49:37 +0200", datetime(1994, 11, 6, 6, 49, 37, tzinfo=UTC)),
        ("Sun, 06 Nov 1994 08:49:37", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("Sun, 06 Nov 1904 08:49:37 GMT", datetime(1970, 1, 1, tzinfo=UTC)),
        ("", None),
        (None, None),
        ("yesterday", None),
        ("Sun, 31 Feb 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 +9999999999", None),
        # The year 10000 in UTC.
        ("Fri, 31 Dec 9999 23:59:59 -2300", None),
    ],
)
def test_http_date_when_written_by_anybody_then_is_read_or_left_out(
    text: str | None, expected: datetime | None
) -> None:
    assert clock.from_http_date(text) == expected


# RFC 9110 §5.6.7: dates are in UTC, also those of asctime, which name no zone.
def test_pause_when_its_date_names_no_zone_then_it_is_of_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    later = (clock.now() + timedelta(minutes=10)).strftime("%a %b %d %H:%M:%S %Y")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert clock.parse_pause(later, most_seconds=3600) == pytest.approx(600, abs=60)
    finally:
        monkeypatch.undo()
        time.tzset()
