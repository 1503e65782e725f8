"""The names and values of attributes' fields."""

from __future__ import annotations

import itertools
import math

import pytest

from searchcrawl.index.attribute_fields import name_and_suffix, number_from, number_of, number_text, sortable


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("version_s", ("version", "_s")),
        ("a_s_t", ("a_s", "_t")),
        ("dc.x-y_dt", ("dc.x-y", "_dt")),
        ("n_l", ("n", "_l")),
        ("last_modified", None),
        ("title", None),
        ("_s", None),
        ("1_s", None),
        ("a b_s", None),
        ("größe_s", None),
    ],
)
def test_field_when_it_is_that_of_an_attribute_then_name_and_suffix(
    field: str, expected: tuple[str, str] | None
) -> None:
    assert name_and_suffix(field) == expected


def test_numbers_when_made_sortable_then_they_sort_and_come_back() -> None:
    numbers = [-math.inf, -1e308, -2.5, -2, -1e-300, 0.0, 5e-324, 0.1, 1, 2.5, 10, 2.0**53, 1e308]

    written = [sortable(number) for number in numbers]

    assert all(one < other for one, other in itertools.pairwise(written))
    assert [number_from(digits) for digits in written] == numbers
    assert sortable(-0.0) == sortable(0.0)


@pytest.mark.parametrize(
    ("text", "number", "shown"), [("1.50", 1.5, "1.5"), ("+2", 2.0, "2"), ("1e20", 1e20, "1e+20"), ("-0", -0.0, "0")]
)
def test_number_when_read_and_shown_then_in_one_form(text: str, number: float, shown: str) -> None:
    assert number_of(text) == number
    assert number_text(number) == shown


@pytest.mark.parametrize("text", ["", "x", "1,5", "1.", ".5", "0x1", "nan", "inf", "1 2", "٣"])
def test_number_when_the_text_is_none_then_none(text: str) -> None:
    assert number_of(text) is None
