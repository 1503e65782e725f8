from __future__ import annotations

import pytest

from searchcrawl import clock
from searchcrawl.sitemaps.sitemap_dates import moment_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-13T08:30:15Z", "2024-05-13T08:30:15.000Z"),
        ("2024-05-13T08:30:15.123456+02:00", "2024-05-13T06:30:15.123Z"),
        ("2024-05-13T08:30-0130", "2024-05-13T10:00:00.000Z"),
        ("2024-05-13 08:30:15", "2024-05-13T08:30:15.000Z"),
        ("2024-05-13T24:00:00Z", "2024-05-14T00:00:00.000Z"),
        ("2024-5-3", "2024-05-03T23:59:59.999Z"),
        ("2024-02", "2024-02-29T23:59:59.999Z"),
        ("2024", "2024-12-31T23:59:59.999Z"),
        ("Mon, 13 May 2024 08:30:15 GMT", "2024-05-13T08:30:15.000Z"),
        ("13 May 24 10:30:15 +0200", "2024-05-13T08:30:15.000Z"),
        ("Mon, 13 May 2024 08:30:15", "2024-05-13T08:30:15.000Z"),
        (" 2024-05-13\n", "2024-05-13T23:59:59.999Z"),
    ],
)
def test_date_when_in_a_known_form_then_it_is_a_moment(text: str, expected: str) -> None:
    assert clock.iso(moment_ms(text)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2024-13-01", "2024-02-30", "2024-05-13T25:00Z", "0000-00-00", "9" * 5000, "13.05.2024", "٢٠٢٤"],
)
def test_date_when_nobody_can_read_it_then_it_is_none(text: str) -> None:
    assert moment_ms(text) is None
