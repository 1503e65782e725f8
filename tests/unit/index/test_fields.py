from __future__ import annotations

from datetime import UTC, datetime

import pytest

from searchcrawl.index.fields import http_date


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
def test_date_when_written_by_anybody_then_is_read_or_left_out(text: str | None, expected: datetime | None) -> None:
    assert http_date(text) == expected
