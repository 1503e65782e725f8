"""What removes a known document (D4, D5, L3)."""

from __future__ import annotations

import pytest

from searchcrawl.rules.removal import is_evidence, is_within_limits

REMOVE_ON = frozenset({404, 410})


@pytest.mark.parametrize("code", [404, 410, 952, 953, 954, 955])
def test_code_when_it_is_about_the_url_itself_then_is_evidence(code: int) -> None:
    assert is_evidence(code, "rule", REMOVE_ON)
    assert is_evidence(code, None, REMOVE_ON)


@pytest.mark.parametrize(
    "code",
    [0, 200, 302, 304, 401, 403, 429, 500, 503, *range(902, 912), 956, *range(958, 966), 1003, 1004, 1006, 1009, 1010],
)
def test_code_when_it_may_pass_then_is_no_evidence(code: int) -> None:
    assert not is_evidence(code, "rule", REMOVE_ON)


@pytest.mark.parametrize(
    ("rule", "expected"), [("Disallow: /tmp/", True), ("robots.unavailable", False), (None, False), ("", False)]
)
def test_robots_when_a_line_forbids_then_is_evidence_but_not_when_unavailable(rule: str | None, expected: bool) -> None:
    assert is_evidence(951, rule, REMOVE_ON) is expected


def test_code_when_listed_by_the_source_then_is_evidence() -> None:
    assert is_evidence(403, None, frozenset({403}))
    assert not is_evidence(404, None, frozenset({403}))


@pytest.mark.parametrize(
    ("removals", "documents", "percent", "most", "expected"),
    [
        (0, 0, 10, 1000, True),
        (10, 10, 10, 1000, True),
        (11, 20, 10, 1000, False),
        (10, 500, 0, 1000, True),
        (50, 500, 10, 1000, True),
        (51, 500, 10, 1000, False),
        (11, 105, 10, 1000, False),
        (11, 110, 10, 1000, True),
        (1000, 100_000, 10, 1000, True),
        (1001, 100_000, 10, 1000, False),
        (5, 500, 10, 4, False),
        (1, 500, 10, 0, False),
        (500, 500, 100, 1000, True),
    ],
)
def test_removals_when_more_than_either_limit_then_are_refused(
    removals: int, documents: int, percent: float, most: int, expected: bool
) -> None:
    assert is_within_limits(removals, documents, max_delete_percent=percent, max_delete_documents=most) is expected
