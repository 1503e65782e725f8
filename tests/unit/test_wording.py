"""Words after numbers in what people read."""

from __future__ import annotations

import pytest

from searchcrawl.wording import counted


@pytest.mark.parametrize(("number", "text"), [(0, "0 pages are"), (1, "1 page is"), (2, "2 pages are")])
def test_words_when_they_follow_a_number_then_they_agree_with_it(number: int, text: str) -> None:
    assert counted(number, "page is", "pages are") == text
