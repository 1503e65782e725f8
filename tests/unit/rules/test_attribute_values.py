"""Typed values of attributes, from texts that people write (A5)."""

from __future__ import annotations

import pytest

from searchcrawl.rules.attribute_values import MAX_VALUES, AttributeMap, Mapped, Value, convert_value


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("3", "string", "3"),
        ("3", "text", "3"),
        ("3", "number", 3),
        ("-3.50", "number", -3.5),
        ("+1e3", "number", 1000),
        ("9007199254740993", "number", 9007199254740992.0),
        ("1e999", "number", None),
        ("3,5", "number", None),
        ("3 km", "number", None),
        ("NaN", "number", None),
        ("٣", "number", None),
        ("2024", "date", "2024-01-01T00:00:00Z"),
        ("2024-03", "date", "2024-03-01T00:00:00Z"),
        ("2024-03-05", "date", "2024-03-05T00:00:00Z"),
        ("2024/03/05", "date", "2024-03-05T00:00:00Z"),
        ("2024/03/05 10:11", "date", "2024-03-05T10:11:00Z"),
        ("2024-03-05T01:00:00+02:00", "date", "2024-03-04T23:00:00Z"),
        ("2024-03-05T01:00:00.1234Z", "date", "2024-03-05T01:00:00.123Z"),
        ("Tue, 05 Mar 2024 10:11:12 GMT", "date", "2024-03-05T10:11:12Z"),
        ("2024-02-30", "date", None),
        ("0001-01-01T00:00:00+14:00", "date", None),
        ("9999-12-31T23:59:59-14:00", "date", None),
        ("1600-01-01", "date", None),
        ("soon", "date", None),
        ("05.03.2024", "date", None),
    ],
)
def test_value_when_read_as_a_type_then_typed_or_nothing(text: str, kind: str, expected: Value | None) -> None:
    value = convert_value(text, kind)

    assert value == expected
    assert type(value) is type(expected)


def test_map_when_several_origins_give_one_attribute_then_each_value_once_in_the_order_of_the_map() -> None:
    mapped = AttributeMap([Mapped("meta:b", "x", "string"), Mapped("header:x-a", "x", "string")])

    reading = mapped.read({"header:x-a": ["two", "one"], "meta:b": ["one ", " ", "\tthree  x"]})

    assert reading == ({"x": ("one", "three x", "two")}, [])


def test_map_when_values_are_unreadable_then_they_are_told_and_the_others_stay() -> None:
    mapped = AttributeMap([Mapped("meta:n", "size", "number"), Mapped("meta:n", "note", "string")])

    reading = mapped.read({"meta:n": ["3", "many", "4"]})

    assert reading.values == {"size": (3, 4), "note": ("3", "many", "4")}
    assert reading.unreadable == [("size", "many")]


def test_map_when_a_page_has_too_many_values_then_the_first_are_kept() -> None:
    mapped = AttributeMap([Mapped("meta:n", "n", "number")])

    reading = mapped.read({"meta:n": [str(number) for number in range(5000)]})

    assert len(reading.values["n"]) == MAX_VALUES


def test_headers_when_mapped_then_by_any_case_and_in_utf_8_or_latin_1() -> None:
    mapped = AttributeMap([Mapped("header:x-version", "version", "string")])
    headers = [(b"X-Version", "größe".encode()), (b"x-VERSION", "größe".encode("latin-1")), (b"X-Other", b"no")]

    found = mapped.find_in_headers(headers)

    assert found == {"header:x-version": ["größe", "größe"]}
    assert mapped.join_headers(headers) != mapped.join_headers(headers[:1])
    assert mapped.join_headers(headers[2:]) == ""
    assert AttributeMap([Mapped("meta:x-other", "o", "string")]).find_in_headers(headers) == {}
