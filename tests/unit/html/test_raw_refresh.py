"""A refresh is found in the bytes of a small page (953, 959)."""

from __future__ import annotations

import pytest

from searchcrawl.html.raw_refresh import find_raw_refresh


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'<meta http-equiv="refresh" content="0; url=/a?b=1&amp;c=2">', "/a?b=1&c=2"),
        (b"<META\nCONTENT=0;/a\nHTTP-EQUIV=refresh>", "/a"),
        (b"<meta charset=x><meta http-equiv='Refresh' content=' 5 ; URL = \"/a\" '>", "/a"),
        (b'<meta http-equiv="refresh" content="0"><meta http-equiv="refresh" content="0; /b">', "/b"),
        (b'<meta http-equiv="refresh" content="101; /a">', None),
        (b'<meta http-equiv="refresher" content="0; /a">', None),
        (b'<meta http-equiv="refresh" data-content="0; /a">', None),
        (b'<p>http-equiv="refresh" content="0; /a"', None),
        (b"", None),
    ],
)
def test_refresh_when_a_page_has_one_then_its_target_is_found(body: bytes, found: str | None) -> None:
    assert find_raw_refresh(body) == found


@pytest.mark.parametrize(
    "piece", [b"<meta ", b"http-equiv ", b"http-equiv=refresh ", b"<meta http-equiv=refresh ", b" "]
)
def test_refresh_when_a_page_is_made_to_cost_time_then_is_given_up(piece: bytes) -> None:
    assert find_raw_refresh(piece * (16_000 // len(piece)) + b"content='" + b"1" * 300) is None
