from __future__ import annotations

import pytest

from searchcrawl.html.meta_refresh import Refresh, parse_refresh


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0;url=a", Refresh(0, "a")),
        ("5, URL = 'a b'c", Refresh(5, "a b")),
        ("1.9 a", Refresh(1, "a")),
        ("300", Refresh(300, "")),
        ("99999999999999999999;url=a", Refresh(2**31, "a")),
        ("0;url='a", Refresh(0, "a")),
        ("0; unknown", Refresh(0, "unknown")),
        ("url=a", None),
        ("-1;url=a", None),
        ("5x;url=a", None),
        ("", None),
    ],
)
def test_parse_refresh_when_given_content_then_reads_as_browsers(content: str, expected: Refresh | None) -> None:
    assert parse_refresh(content) == expected
