"""What becomes of the values of columns."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from searchcrawl.kinds.table.values import (
    build_last_modified,
    compute_digest,
    is_too_young,
    list_principals,
    list_texts,
    to_text,
)

_NOW = datetime(2030, 1, 31, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (17, "17"),
        (1.5, "1.5"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+5"), "100000"),
        (Decimal("1E+500000"), "1E+500000"),
        (Decimal("sNaN"), "NaN"),
        (date(2030, 1, 31), "2030-01-31"),
        (datetime(2030, 1, 31, 12, tzinfo=UTC), "2030-01-31 12:00:00+00:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("0000-00-00", "0000-00-00"),
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffd\ufffd\ufffdb"),
        ("a\udcffb", "a\ufffdb"),
        (b"caf\xc3\xa9", "café"),
        (["a", None, 1.5], '["a", null, 1.5]'),
        ({"a": Decimal("1.5")}, '{"a": "1.5"}'),
        (timedelta(hours=30), "1 day, 6:00:00"),
    ],
)
def test_value_when_written_as_text_then_it_has_this_form(value: Any, text: str) -> None:
    assert to_text(value) == text


def test_array_when_it_is_a_value_then_its_entries_are_values() -> None:
    assert list_texts(["a", None, 2]) == ["a", "2"]
    assert list_texts(b"\x00") == []
    assert list_texts(None) == []


@pytest.mark.parametrize(
    ("values", "principals"),
    [
        (["user:anna, group:staff", None, "user:anna"], ("user:anna", "group:staff")),
        ([["user:anna", "group:a,b"]], ("user:anna", "group:a,b")),
        (["user:anna\ngroup:staff\r\n"], ("user:anna", "group:staff")),
        ([None, ""], ()),
        ([17], None),
        ([b"user:anna"], None),
        (["user:\udcff"], None),
        ([["user:anna", None]], None),
    ],
)
def test_principals_when_read_then_all_or_nothing_is_known(
    values: list[Any], principals: tuple[str, ...] | None
) -> None:
    assert list_principals(values) == principals


def test_digest_when_values_move_between_columns_or_change_their_type_then_differs() -> None:
    columns = ["a", "b"]
    rows = [("x", ""), ("", "x"), ("x", None), ("1", ""), (1, ""), (b"1", ""), ("x', '", ""), (1.0, "")]

    digests = list(compute_digest(columns, rows))

    assert len(set(digests)) == len(rows)
    assert list(compute_digest(["b", "a"], [("", "x")])) == digests[:1]
    assert list(compute_digest(["a", "c"], [("x", "")])) != digests[:1]


@pytest.mark.parametrize(
    ("modified", "young"),
    [
        ("2030-01-31 12:00:00", True),
        ("2030-01-31 11:59:58+00", True),
        ("2030-01-31 11:59:57", False),
        ("2030-01-31 12:00:00.5", False),
        ("2030-01-31T12:00:00.000Z", True),
        ("2030-01-31 13:59:59+02", True),
        ("2030-01-31", True),
        ("2030-01-29", False),
        ("2040-01-01 00:00:00", False),
        ("infinity", False),
        ("0000-00-00 00:00:00", False),
        (None, False),
        (1896091200, True),
        (1896091100, False),
        (7, False),
    ],
)
def test_change_when_another_one_may_get_the_same_time_then_it_is_too_young(modified: Any, young: bool) -> None:
    assert is_too_young(modified, _NOW) is young


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("2030-01-31 12:00:00", "Thu, 31 Jan 2030 12:00:00 GMT"),
        ("2030-01-31 12:00:00.25+02", "Thu, 31 Jan 2030 10:00:00 GMT"),
        (datetime(2030, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))), "Thu, 31 Jan 2030 10:00:00 GMT"),
        (datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2))), None),
        ("0000-00-00", None),
        ("infinity", None),
        (None, None),
        (17, None),
    ],
)
def test_last_modified_when_made_then_it_is_in_the_zone_of_headers(value: Any, header: str | None) -> None:
    assert build_last_modified(value) == header
