"""Snippets do not begin with the title, which is above them."""

from __future__ import annotations

import pytest

from searchcrawl.index.receiver import HIT_END, HIT_START
from searchcrawl.index.snippets import leave_out_title


@pytest.mark.parametrize(
    ("text", "title", "left"),
    [
        ("Cup anemometer\nThree cups turn.", "Cup anemometer", "Three cups turn."),
        ("[Cup] [anemometer]\nThree [cups] turn.", "Cup anemometer", "Three [cups] turn."),
        ("[Cup] anemometer\nThree turn.", "Cup anemometer", "[Cup] anemometer\nThree turn."),
        ("\n Cup  anemometer \nThree [cups] turn.", "Cup anemometer", "Three [cups] turn."),
        ("Prices are up\nin June", "Prices", "Prices are up\nin June"),
        ("Prices", "Prices", "Prices"),
        ("Prices\n \n", "Prices", "Prices\n \n"),
        ("Prices\nof June", "", "Prices\nof June"),
        ("", "Prices", ""),
        ("\nof June", "", "\nof June"),
    ],
)
def test_text_when_its_first_line_is_the_title_then_it_begins_with_the_next_one(
    text: str, title: str, left: str
) -> None:
    marks = str.maketrans("[]", HIT_START + HIT_END)

    assert leave_out_title(text.translate(marks), title) == left.translate(marks)
