"""How alike texts are (L9, X-R17)."""

from __future__ import annotations

import pytest

from searchcrawl.rules.turned_pages import words_of
from searchcrawl.soft404.signature import Features, distance
from searchcrawl.soft404.signature import features_of as features_of_words


def features_of(text: str) -> Features:
    return features_of_words(words_of(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Page, of 12:30 — No. 7", ["the", "page", "of", "", "", "no", ""]),
        ("token a3f9c0 and " + "x" * 31, ["token", "", "and", ""]),
        ("snake_case Größe naïve", ["snake", "case", "größe", "naïve"]),
        ("没有找到页面", list("没有找到页面")),
        ("", []),
    ],
)
def test_words_when_read_then_numbers_and_tokens_are_blank(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_features_when_made_then_are_words_and_pairs_but_not_across_numbers() -> None:
    assert features_of("Not found: error 404 here") == {
        *("not", "found", "error", "here"),
        *(("not", "found"), ("found", "error")),
    }


def test_distance_when_texts_are_compared_then_is_their_share_of_other_features() -> None:
    text = "this page says how to calibrate a gauge"

    same = distance(features_of(text), features_of(text.upper() + " 12:30"))
    near = distance(features_of(text), features_of(text.replace("gauge", "scale")))
    far = distance(features_of(text), features_of("an invoice nobody has paid yet"))

    assert (same, far) == (0, 1)
    assert near == pytest.approx(1 - 13 / 17)


@pytest.mark.parametrize(
    ("one", "other", "expected"), [("", "", 0.0), ("one", "", 1.0), ("not found", "Not found 7", 0.0)]
)
def test_distance_when_texts_are_short_then_is_still_one(one: str, other: str, expected: float) -> None:
    assert distance(features_of(one), features_of(other)) == expected


def test_features_when_words_are_left_out_then_their_pairs_are_too() -> None:
    words = words_of("docs and docstrings of docs")

    assert features_of_words(words, without={"docs"}) == {
        *("and", "docstrings", "of"),
        *(("and", "docstrings"), ("docstrings", "of")),
    }
