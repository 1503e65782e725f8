"""What pages say under the names that a source maps (A5)."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from searchcrawl.html.page import parse_page


def found(html: str, *wanted: str) -> dict[str, tuple[str, ...]]:
    return dict(parse_page(html, url="http://a.test/", attribute_origins=frozenset(wanted)).found)


def script(content: Any, kind: str = "application/ld+json") -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    return f'<script type="{kind}">{text}</script>'


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<meta name="DC.Creator" content=" Ann  Lee ">', {"meta:dc.creator": ("Ann Lee",)}),
        ('<meta property="og:title" content="T">', {"meta:og:title": ("T",)}),
        ('<meta property="article:x og:title" content="T">', {"meta:og:title": ("T",)}),
        ('<meta name=og:title property=og:title content="once">', {"meta:og:title": ("once",)}),
        ("<meta http-equiv=X-Version content=3>", {"meta:x-version": ("3",)}),
        ('<p>body<meta name="dc.creator" content="B">', {"meta:dc.creator": ("B",)}),
        (
            '<meta name=dc.creator content="A"><meta name=DC.CREATOR content="B"><meta name=dc.creator content="">',
            {"meta:dc.creator": ("A", "B")},
        ),
        ("<meta name=dc.creator><meta content=x><meta name=other content=y>", {}),
        ("<noscript><meta name=dc.creator content=hidden></noscript>", {}),
    ],
)
def test_metas_when_their_names_are_wanted_then_each_text_in_order(
    html: str, expected: dict[str, tuple[str, ...]]
) -> None:
    assert found(html, "meta:dc.creator", "meta:og:title", "meta:x-version") == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (script({"Author": "Ann", "author": "Bob"}), ("Ann", "Bob")),
        (script({"author": {"@type": "Person", "name": "Ann"}}), ("Ann",)),
        (script({"author": [{"name": "Ann"}, "Bob", {"@value": 3}, {"@id": "x"}, ["deep"], None, True]}),
         ("Ann", "Bob", "3", "true")),
        (script([{"author": "Ann"}, 3, {"author": "Bob"}]), ("Ann", "Bob")),
        (script({"@graph": [{"author": "inner"}, 3, [{"author": "deep"}]], "publisher": {"author": "other"}}), ("inner",)),
        (script([{"@graph": {"author": "Ann"}}, {"author": "Bob"}]), ("Ann", "Bob")),
        (script({"author": "Ann"}, "APPLICATION/LD+JSON "), ("Ann",)),
        (script({"author": "Ann"}, "application/json"), ()),
        (script("{broken"), ()),
        (script("[" * 5000), ()),
        (script({"author": "x" * 2_000_000}), ()),
        (script({"author": " "}) + script({"author": 1.5}), ("1.5",)),
    ],
)  # fmt: skip
def test_json_ld_when_a_key_at_the_top_is_wanted_then_its_texts(html: str, expected: tuple[str, ...]) -> None:
    assert found(html, "jsonld:author").get("jsonld:author", ()) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"author": {"name": "Ann"}}, ("Ann",)),
        ({"Author": {" Name": "Ann", "url": "x"}}, ("Ann",)),
        ({"author": [{"name": "Ann"}, "Bob", {"name": ["Eve", {"@value": "Max"}]}]}, ("Ann", "Eve", "Max")),
        ({"@graph": [{"@type": "WebSite"}, {"author": {"name": "Ann"}}]}, ("Ann",)),
        ({"author.name": "Ann"}, ("Ann",)),
        ({"author": {"name": {"name": "Ann"}}}, ("Ann",)),
        ({"author": "Ann", "name": "x", "authors": {"name": "y"}, "author.": {"name": "z"}}, ()),
        ({"author": {"name": {"first": "Ann"}}}, ()),
    ],
)
def test_json_ld_when_a_key_of_a_value_is_wanted_then_its_texts(content: Any, expected: tuple[str, ...]) -> None:
    assert found(script(content), "jsonld:author.name").get("jsonld:author.name", ()) == expected


@pytest.mark.parametrize(("origin", "expected"), [("jsonld:a.b.c", ("1", "2")), ("jsonld:@graph.a.b.c", ("2",))])
def test_json_ld_when_the_path_is_long_then_each_value_is_found_once(origin: str, expected: tuple[str, ...]) -> None:
    content = {"a": {"b.c": 1}, "@graph": {"a.b": {"c": 2}}}

    assert found(script(content), origin)[origin] == expected


def test_page_when_nothing_is_wanted_then_nothing_is_found() -> None:
    html = '<meta name="a" content="b">' + script({"a": "b"})

    assert parse_page(html, url="http://a.test/").found == ()


def test_page_when_its_text_is_hostile_then_values_are_legal_and_bounded() -> None:
    chance = random.Random(7)
    for _ in range(200):
        junk = "".join(chr(chance.choice([0, 1, 11, 0xFFFE, 0xFFFF, 34, 39, 60, 62, 65, 0x3042])) for _ in range(40))
        values = found(f'<meta name="a" content="{junk}">{script(junk)}', "meta:a", "jsonld:a").get("meta:a", ())

        assert all(not set(value) & set("\x00\x01\x0b\ufffe\uffff") for value in values)
