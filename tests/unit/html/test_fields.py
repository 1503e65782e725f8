"""What pages say under the names that a source maps (A5)."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any, Final

import pytest

from searchcrawl.convert.html_converter import convert_html, convert_html_again
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.page import parse_head, parse_page
from searchcrawl.items import Page
from tests.fuzz.strategies import real_pages
from tests.readers.pages import MARKUP


def found(html: str, *wanted: str) -> dict[str, tuple[str, ...]]:
    return dict(parse_page(html, ConversionContext(url="http://a.test/", attribute_origins=frozenset(wanted))).found)


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

    assert parse_page(html, ConversionContext(url="http://a.test/")).found == ()


def test_page_when_its_text_is_hostile_then_values_are_legal_and_bounded() -> None:
    chance = random.Random(7)
    for _ in range(200):
        junk = "".join(chr(chance.choice([0, 1, 11, 0xFFFE, 0xFFFF, 34, 39, 60, 62, 65, 0x3042])) for _ in range(40))
        values = found(f'<meta name="a" content="{junk}">{script(junk)}', "meta:a", "jsonld:a").get("meta:a", ())

        assert all(not set(value) & set("\x00\x01\x0b\ufffe\uffff") for value in values)


CONTEXT: Final = ConversionContext(
    url="http://a.test/b/c",
    headers=((b"Content-Type", b"text/html"),),
    user_agent="searchcrawl",
    attribute_origins=frozenset({"meta:keywords", "meta:generator", "jsonld:name"}),
)
HEAD: Final = (
    "<!doctype html><html lang=de><head><meta charset=utf-8><title>T</title><meta name=generator content=g>"
    "<meta name=description content=d><link rel=canonical href=/x><meta name=robots content=noindex></head>"
)


def both(html: str) -> tuple[Page, Page | None]:
    """The page without its links, once from the whole body, once from the head."""
    whole = convert_html(html.encode(), CONTEXT)
    # What is not indexed of the text is not read from the head.
    plain = replace(whole, links=(), malformed=(), whole="", whole_digest="", headings=(), naming=0)
    return plain, convert_html_again(html.encode(), CONTEXT, whole.text)


def test_head_when_body_has_only_text_then_page_is_the_same() -> None:
    whole, again = both(HEAD + "<body class=x><p>Text <a href=y>z</a><title>other</title><link rel=canonical href=/y>")

    assert again == whole
    assert (whole.title, whole.canonical, whole.noindex, whole.language) == ("T", "http://a.test/x", True, "de")
    assert whole.found == (("meta:generator", ("g",)),)


@pytest.mark.parametrize(
    "rest",
    [
        "<p>x",
        "<body><META name=keywords content=k>",
        "<body><p>x<html lang=fr>",
        "<body><base href=/other/>",
        "<body LANG = fr><p>x",
        "<body><p>x<div lang=fr>y",
        "<div lang=fr>y<body>",
        "<div lang=fr>y<html lang=de><body>",
        '<body><script type=\'application/LD+json\'>{"name": "n"}</script>',
        "<!-- <body> --><link rel=canonical href=/y><body>",
        "<script>'<body>'</script><link rel=canonical href=/y><body>",
        "<template><body></template><link rel=canonical href=/y><body>",
        "<noscript><body></noscript><body>",
        "<frameset><body>",
        "<title>the <body> of it</title><body>",
        f"<script>{'x' * 20_000}</script><body>",
    ],
)
def test_head_when_what_follows_may_have_fields_then_whole_body_is_to_be_parsed(rest: str) -> None:
    assert both(HEAD + rest)[1] is None


def test_head_when_it_has_no_title_then_whole_body_is_to_be_parsed() -> None:
    assert both("<html><head></head><body><title>Later</title><p>x")[1] is None


def test_head_when_pages_are_soups_of_markup_then_it_is_never_another_page() -> None:
    chosen, read = random.Random(5), 0
    for number in range(4_000):
        head, body = (
            "".join(chosen.choices(MARKUP, k=chosen.randrange(12))).replace("{n}", str(chosen.randrange(9)))
            for _ in range(2)
        )
        many = "<p>x" * 3_600 if number % 20 == 0 else ""
        whole, again = both(f"{'<title>t</title>' * chosen.randrange(2)}{head}<body {body}{many}")

        assert again in {None, whole}
        read += again is not None
    assert read > 400


def test_head_when_pages_are_real_then_most_are_read_from_it() -> None:
    pages = [page.decode("utf-8", "replace") for page in real_pages()]
    results = [both(page) for page in pages]

    assert all(again in {None, whole} for whole, again in results)
    assert sum(again is not None for _, again in results) > len(results) // 2


@pytest.mark.parametrize("tags", [10, 4_000])
def test_head_when_a_value_has_markup_then_field_has_it_however_many_tags_follow(tags: int) -> None:
    head = '<title>t</title><meta name=description content="A <b>bold</b> <li>x">'

    whole, again = both(f"{head}<body>{'<p>x' * tags}")

    assert whole.description == "A <b>bold</b> <li>x"
    assert again == whole


def test_head_when_text_is_known_then_it_is_not_read() -> None:
    page = parse_head(HEAD.encode() + b"<body>x", ConversionContext(url="http://a.test/"), "known")

    assert page is not None
    assert page.text == "known"
