"""Snippets do not begin with the title, which is above them."""

from __future__ import annotations

import pytest

from searchcrawl.index.receiver import HIT_END, HIT_START
from searchcrawl.index.snippets import leave_out_title, shorten


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


@pytest.mark.parametrize(
    ("passage", "begins", "has"),
    [
        ("A [cup] turns.", "A [cup] turns.", "A [cup] turns."),
        ("filler " * 200 + "[cups] turn" + " filler" * 200, "… filler", "filler [cups] turn filler"),
        ("[cup] " + "filler " * 200 + "[cups] and [cup] turn", "… filler", "[cups] and [cup] turn"),
        ("検" * 1000 + "[索引]" + "引" * 1000, "… 検", "[索引]引"),
        ("filler " * 200, "filler", "filler"),
    ],
)
def test_passage_when_it_is_long_then_it_is_cut_around_its_marks(passage: str, begins: str, has: str) -> None:
    marks = str.maketrans("[]", HIT_START + HIT_END)

    shown = shorten(passage.translate(marks)).translate(str.maketrans(HIT_START + HIT_END, "[]"))

    assert shown.startswith(begins)
    assert has in shown
    assert len(shown) < 260
