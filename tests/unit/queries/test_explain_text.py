"""What ``explain`` says of a page of which other text was taken than its markup says (C8, L1)."""

from __future__ import annotations

import pytest

from searchcrawl.items import Fallback, FallbackReason
from searchcrawl.queries.explain_steps import describe_fallback


@pytest.mark.parametrize(
    ("fallback", "expected"),
    [
        (None, ""),
        (
            Fallback(FallbackReason.UNCUT, 35, 1200),
            "taken uncut, because 35 of 1200 characters would be left without what looks like navigation",
        ),
        (
            Fallback(FallbackReason.MAIN, 35, 1200),
            "what it declares its main content is not taken for it, because that has 35 of 1200 characters",
        ),
    ],
)
def test_fallback_when_other_text_was_taken_then_says_why(fallback: Fallback | None, expected: str) -> None:
    assert describe_fallback(fallback) == expected
