"""Both forms of Retry-After (L5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from searchcrawl import clock
from searchcrawl.politeness.retry_after import MAX_SECONDS, retry_after_seconds

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"120", 120.0),
        (b" 0 ", 0.0),
        (b"99999999999999999999", MAX_SECONDS),
        (format_datetime(NOW + timedelta(minutes=5), usegmt=True).encode(), 300.0),
        (format_datetime(NOW - timedelta(minutes=5), usegmt=True).encode(), 0.0),
        (format_datetime(NOW + timedelta(days=900), usegmt=True).encode(), MAX_SECONDS),
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
    assert retry_after_seconds(value) == expected
