"""Identities of rows: each key has one, and it survives what is done with URLs."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.kinds.table.identity import NoKey, build_container, build_key, parse_row

_VALUES = st.one_of(
    st.integers(),
    st.text(),
    st.binary(),
    st.booleans(),
    st.uuids(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.decimals(allow_nan=False),
)


def _identify(*values: Any, table: str = "articles") -> str:
    return build_container("shop", table) + build_key(values)


@given(st.lists(_VALUES, min_size=1, max_size=3), st.text(min_size=1).filter(lambda text: text not in {".", ".."}))
def test_identity_when_made_of_any_key_then_it_is_a_url_and_says_the_key(key: list[Any], table: str) -> None:
    url = _identify(*key, table=table)

    row = parse_row(url)

    assert urls.resolve(url, listed=True) == url
    assert (row.source, row.table) == ("shop", table)
    assert list(row.key) == key


@given(st.lists(_VALUES, min_size=2, max_size=2, unique_by=lambda value: (type(value), value)))
def test_identities_when_of_two_keys_then_differ(keys: list[Any]) -> None:
    one, other = keys
    same_number = isinstance(one, int | Decimal) and isinstance(other, int | Decimal) and one == other

    assert same_number or _identify(one) != _identify(other)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (17, "17"),
        (-3, "-3"),
        ("17", "~t:17"),
        ("007", "007"),
        ("", "~t:"),
        (".", "~t:."),
        ("..", "~t:.."),
        ("%2e", "%252e"),
        ("a/b", "a%2Fb"),
        ("~x", "~t:~x"),
        ("a ", "a%20"),
        ("A", "A"),
        (b"\x00\xff", "~b:00ff"),
        (memoryview(b"\x01"), "~b:01"),
        (True, "~o:true"),
        (Decimal(17), "17"),
        (Decimal("17.0"), "~n:17.0"),
        (UUID(int=1), "~u:00000000-0000-0000-0000-000000000001"),
        (date(2030, 1, 31), "~d:2030-01-31"),
        (datetime(2030, 1, 31, 12), "~s:2030-01-31T12:00:00"),  # noqa: DTZ001  (a column without a zone)
        (time(12, 30), "~h:12:30:00"),
        ("\udcff", "%FF"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_key_when_written_then_it_has_this_form(value: Any, written: str) -> None:
    url = _identify(value)

    assert url == f"row://shop/articles/{written}"
    assert urls.resolve(url, listed=True) == url
    assert parse_row(url).source == "shop"


@pytest.mark.parametrize("value", [None, 1.5, object(), [1]])
def test_key_when_its_value_identifies_no_row_then_it_is_refused(value: Any) -> None:
    with pytest.raises(NoKey):
        build_key([value])


@pytest.mark.parametrize(
    "url",
    [
        "row://shop/articles/",
        "row://shop/articles",
        "http://shop/articles/1",
        "row://shop/articles/~t:a",
        "row://shop/articles/~x:a",
        "row://shop/articles/~u:a",
        "row://shop/articles/%61",
        "row://shop/articles/~o:yes",
        "row://shop/articles/~n:1x",
    ],
)
def test_url_when_it_is_not_written_as_here_then_it_is_no_row(url: str) -> None:
    with pytest.raises(InvalidUrl):
        parse_row(url)
