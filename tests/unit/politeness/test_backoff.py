"""Pauses after failures, and both forms of Retry-After (L5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from searchcrawl import clock
from searchcrawl.politeness.backoff import MAX_RETRY_AFTER_SECONDS, may_retry, parse_retry_after, retry_pause_seconds

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"120", 120.0),
        (b" 0 ", 0.0),
        (b"99999999999999999999", MAX_RETRY_AFTER_SECONDS),
        (format_datetime(NOW + timedelta(minutes=5), usegmt=True).encode(), 300.0),
        (format_datetime(NOW - timedelta(minutes=5), usegmt=True).encode(), 0.0),
        (format_datetime(NOW + timedelta(days=900), usegmt=True).encode(), MAX_RETRY_AFTER_SECONDS),
        (b"Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        (None, None),
        (b"", None),
        (b"soon", None),
        (b"-5", None),
        (b"1.5", None),
        ("١٢".encode(), None),
        (b"\xff\xfe", None),
        (b"Sun, 99 Foo 2026 12:00:30 GMT", None),
    ],
)
def test_retry_after_when_read_then_is_seconds_from_now(value: bytes | None, expected: float | None) -> None:
    assert parse_retry_after(value) == expected


def test_pause_when_tries_fail_then_grows_to_a_minute() -> None:
    pauses = [retry_pause_seconds(attempt) for attempt in range(1, 9)]

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert retry_pause_seconds(10_000) == 60


@pytest.mark.parametrize(("retry_after", "pause"), [(None, 4), (0, 4), (3, 4), (30, 30), (3600, 60)])
def test_pause_when_the_server_names_one_then_the_longer_counts_up_to_a_minute(
    retry_after: float | None, pause: float
) -> None:
    assert retry_pause_seconds(3, retry_after) == pause


@pytest.mark.parametrize(
    ("attempt", "retry_after", "expected"),
    [(1, None, True), (3, None, True), (4, None, False), (1, 60, True), (1, 61, False)],
)
def test_retry_when_tries_are_used_or_the_server_asks_for_long_then_waits_for_the_next_run(
    attempt: int, retry_after: float | None, expected: bool
) -> None:
    assert may_retry(attempt, retries=3, retry_after_seconds=retry_after) is expected
