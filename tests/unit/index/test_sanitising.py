from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone

import orjson
import pytest

from searchcrawl.index.sanitising import (
    MAX_TERM_BYTES,
    clean_fields,
    clean_text,
    cut_bytes,
    format_number,
    iso_utc,
    parse_number,
)

LONG = "word " * 2000


@pytest.mark.parametrize("bad", ["\x00", "\x08", "\x0b", "\x1f", "\ud800", "\ufffe", "\uffff", "\ue000", "\ue001"])
@pytest.mark.parametrize("rest", ["short", LONG, LONG + "日本"], ids=["short", "long", "cjk"])
def test_clean_text_when_a_character_is_forbidden_then_only_it_is_removed(bad: str, rest: str) -> None:
    cleaned = clean_text(f"a{bad}b{rest}{bad}")

    assert cleaned == f"ab{rest}"


@pytest.mark.parametrize(
    "text", ["", "tab\tline\nreturn\r", "日本語", "😀", LONG, LONG + "é", LONG + "\U0001f600\ue002"]
)
def test_clean_text_when_all_is_allowed_then_nothing_changes(text: str) -> None:
    assert clean_text(text) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, 2**70, [], [None, math.nan]])
def test_clean_fields_when_a_value_cannot_be_stored_then_the_field_is_left_out(value: object) -> None:
    assert clean_fields({"x_l": value, "depth": 1}) == {"depth": 1}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC), "2026-01-02T03:04:05.678Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=9))), "2026-01-01T18:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05Z"),  # noqa: DTZ001 - the zone is missing on purpose
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9))), "0001-01-01T00:00:00Z"),
        (date(2026, 1, 2), "2026-01-02T00:00:00Z"),
    ],
)
def test_iso_utc_when_given_a_moment_then_is_solrs_form(value: date, expected: str) -> None:
    assert iso_utc(value) == expected


def test_clean_fields_when_values_are_mixed_then_all_are_json() -> None:
    fields = {
        "groups": ("a", "b\x00"),
        "flag": True,
        "n": 1.5,
        "raw": b"caf\xc3\xa9\xff",
        "when_dt": [date(2026, 1, 2)],
    }

    cleaned = clean_fields(fields)

    assert cleaned == {
        "groups": ["a", "b"],
        "flag": True,
        "n": 1.5,
        "raw": "café\ufffd",
        "when_dt": ["2026-01-02T00:00:00Z"],
    }
    assert orjson.loads(orjson.dumps(cleaned)) == cleaned


@pytest.mark.parametrize(
    ("name", "is_cut"),
    [
        ("url", True),
        ("access_url", True),
        ("duplicates", True),
        ("color_s", True),
        ("content", False),
        ("note_t", False),
    ],
)
def test_clean_fields_when_a_value_is_long_then_only_untokenised_ones_are_cut(name: str, is_cut: bool) -> None:
    value = "é" * 20_000

    cleaned = clean_fields({name: value})[name]

    assert isinstance(cleaned, str)
    assert (len(cleaned.encode()) == MAX_TERM_BYTES) is is_cut


@pytest.mark.parametrize(
    ("text", "most", "expected"), [("日本", 5, "日"), ("日本", 6, "日本"), ("abc", 2, "ab"), ("", 0, "")]
)
def test_cut_bytes_when_a_character_does_not_fit_then_it_is_left_out_whole(text: str, most: int, expected: str) -> None:
    assert cut_bytes(text, most) == expected


def test_clean_when_one_text_stands_in_two_fields_then_it_is_cleaned_in_both() -> None:
    text = "a\x00b " * 400

    cleaned = clean_fields({"content": text, "content_txt_en": text, "source": text, "title": "t" * 600})

    assert cleaned["content"] == cleaned["content_txt_en"] == cleaned["source"] == "ab " * 400
    assert cleaned["title"] == "t" * 600


@pytest.mark.parametrize(
    ("text", "number", "shown"), [("1.50", 1.5, "1.5"), ("+2", 2.0, "2"), ("1e20", 1e20, "1e+20"), ("-0", -0.0, "0")]
)
def test_number_when_read_and_shown_then_in_one_form(text: str, number: float, shown: str) -> None:
    assert parse_number(text) == number
    assert format_number(number) == shown


@pytest.mark.parametrize(
    "text", ["", "x", "1,5", "1.", ".5", "0x1", "nan", "inf", "1 2", "٣", "1e400", "-1e400", "9" * 400]
)
def test_number_when_the_text_is_none_then_none(text: str) -> None:
    assert parse_number(text) is None
