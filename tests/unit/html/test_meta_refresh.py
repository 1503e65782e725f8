from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchcrawl.html.meta_refresh import Refresh, parse_refresh

CASES = Path(__file__).resolve().parents[4] / "shared" / "conformance" / "meta_refresh_wpt.json"


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


def test_parse_refresh_when_wpt_cases_run_then_none_differs() -> None:
    if not CASES.exists():
        pytest.skip(f"the public conformance cases are not here ({CASES.name})")
    differing = []
    for case in json.loads(CASES.read_text(encoding="utf-8"))["cases"]:
        refresh = parse_refresh(case["content"])
        # URL parsing drops these characters; the cases give its result.
        read = refresh and (refresh.seconds, refresh.url.translate({9: None, 10: None, 13: None}))
        expected = (case["expected_seconds"], case["expected_url"] or "") if case["refreshes"] else None
        if read != expected:
            differing.append(case["content"])

    assert differing == []
