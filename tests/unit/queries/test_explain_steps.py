"""The steps of an explanation, where no source has to be crawled for them."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.items import Fallback, FallbackReason
from searchcrawl.queries import explain_steps
from searchcrawl.queries.explain_reasons import Step
from searchcrawl.queries.explain_steps import add_live_answer, describe_fallback


def test_live_answer_when_no_run_has_stored_a_robots_file_then_its_step_says_that_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live = Step("live", "read", "now 200 OK")
    monkeypatch.setattr(explain_steps, "_describe_live_answer", lambda context, answer: live)
    nothing: Any = None
    file = "http://a.test/robots.txt"
    before = [
        Step("identity", "known", "http://a.test/"),
        Step("robots", "unknown", f"{file}: not asked (--live asks it)"),
    ]

    found = add_live_answer(before, nothing, nothing)

    assert found == (before[0], Step("robots", "unknown", f"{file}: asked for now, and not stored"), live)


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
