"""Each code has words (C7, J2)."""

from __future__ import annotations

import pytest

from searchcrawl.codes import Code
from searchcrawl.queries.code_meanings import meaning_of


@pytest.mark.parametrize("code", list(Code))
def test_meaning_when_a_code_is_ours_then_it_is_said_in_words(code: Code) -> None:
    meaning = meaning_of(code)

    assert meaning.startswith(f"{int(code)}, ") or code is Code.NOT_FETCHED
    assert len(meaning) > 8


@pytest.mark.parametrize(
    ("status", "meaning"), [(404, "404 Not Found"), (200, "200 OK"), (799, "799, a status that HTTP does not name")]
)
def test_meaning_when_a_code_is_a_status_then_with_its_name(status: int, meaning: str) -> None:
    assert meaning_of(status) == meaning
