"""A long page that is parsed in pieces is read as in one, in linear time and memory (X-D4, X-R13)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
from selectolax.lexbor import LexborHTMLParser

from searchcrawl.html.context import ALL_TEXT, ConversionContext, TextRules
from searchcrawl.html.page import parse_page
from searchcrawl.html.pieces import parse_pieces
from searchcrawl.html.tree import parse_tree, parse_trees
from searchcrawl.items import Page
from tests.growth import assert_linear

URL = "http://a.test/"


def harmless(raw: bytes, tags: int) -> bool:
    return True


def read_whole(text: str, rules: TextRules, monkeypatch: pytest.MonkeyPatch) -> Page:
    """The page from one tree, without any care."""
    with monkeypatch.context() as patch:
        patch.setattr("searchcrawl.html.tree.MOST_NESTED_TAGS", 10**9)
        patch.setattr("searchcrawl.html.tree._is_harmless", harmless)
        return parse_page(text, ConversionContext(url=URL, text_rules=rules))


def strip(page: Page) -> Page:
    """What of a page is no text."""
    return replace(page, text="", whole="", whole_digest="")


def some_page(chance: random.Random, blocks: int) -> str:
    """A page as people write them: elements in elements, some ends left out, scripts and comments with tags in them."""

    def build(depth: int) -> str:
        kind = chance.randrange(17)
        number = chance.randrange(10**6)
        if depth == 0 or kind < 5:
            return f"<p class=c{number}>words {number} <b>bold</b> <a href=/{number}>link {number}</a> end"
        inside = "".join(build(depth - 1) for _ in range(chance.randint(1, 4)))
        return (
            f"<div id=d{number}>{inside}</div>",
            f"<ul><li>{inside}<li>last {number}</ul>",
            f"<table><tr><td>{inside}<td>cell {number}<tr><th>{number}</table>",
            f"<section>{inside}</section>",
            f"<!-- <div> {'<p>' * chance.randint(0, 400)} --> {inside}",
            f"<script>x = '{'<li>' * chance.randint(0, 400)}';</script>{inside}",
            f"<blockquote><pre>one  {number}\n  two</pre>{inside}</blockquote>",
            f"<form><select><option>{number}<option>b</select>{inside}</form>",
            f"<dl><dt>{number}<dd>{inside}</dl>",
            f"<nav>{inside}</nav>",
            f"<article><header>{number}</header>{inside}</article><aside>{inside}</aside>",
            f"<div class=sidebar>{inside}</div><div hidden>{inside}</div>",
        )[kind - 5]

    body = "".join(build(4) for _ in range(blocks))
    return (
        f"<!DOCTYPE html><html lang=en><head><title>T &amp; t</title><meta name=author content=Me></head><body>{body}"
    )


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("rules", [ALL_TEXT, TextRules(main=True), TextRules(keep=("article *",), drop=("div p",))])
def test_page_when_parsed_in_pieces_then_has_text_links_and_fields_of_the_whole(
    seed: int, rules: TextRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = some_page(random.Random(seed), 200)

    trees, is_flat = parse_trees(text)

    assert len(trees) > 3
    assert not is_flat
    page, whole = parse_page(text, ConversionContext(url=URL, text_rules=rules)), read_whole(text, rules, monkeypatch)
    # A line may end where a piece ends.
    assert page.text.split() == whole.text.split()
    assert page.whole.split() == whole.whole.split()
    assert strip(page) == strip(whole)


def test_piece_when_it_is_inside_elements_then_they_are_opened_again_without_where_they_lead() -> None:
    text = "<main class='a\"b' id=m><a href=/once><article role=note>" + "<p>x</p>" * 5_000

    trees = parse_trees(text).trees

    around = [[(node.tag, node.attributes) for node in tree.css("main, article, a")] for tree in trees]
    assert len(around) > 3
    assert around[1] == [("main", {"class": 'a"b', "id": "m"}), ("a", {}), ("article", {"role": "note"})]
    assert around[1:] == [around[1]] * (len(around) - 1)
    assert [link.url for link in parse_page(text, ConversionContext(url=URL)).links] == [f"{URL}once"]


def test_pieces_when_a_value_around_them_is_long_then_no_more_than_is_looked_at_stays() -> None:
    text = f"<div id=a class='{'x' * 400_000}' title='{'y' * 1_000}'><table><tr><td>" + "<p>x</p>" * 5_000

    trees = parse_trees(text).trees

    assert [node.attributes for node in trees[-1].css("div")] == [{"id": "a", "class": "x" * 300}]
    assert len(trees[-1].css("table td p")) > 100


@pytest.mark.parametrize(
    "text",
    [
        "<div>" * 5_000 + "x",
        "<p>x</p>" * 5_000 + '<script id="searchcrawl-end-of-piece"></script>' + "<p>x</p>" * 5_000,
        "<template>" + "<p>x</p>" * 5_000,
        "<!-- " + "<p>x</p>" * 20_000,
        "<frameset>" + "<frame src=x>" * 5_000,
        "".join(f"<{'x' * 60}{number}>" for number in range(80)) + "<p>x</p>" * 5_000,
        "".join(f"<b a={number}><p></b><p>x" for number in range(20_000)),
    ],
    ids=["deep", "with the mark", "in a template", "in a comment", "frames", "long names", "formatting"],
)
def test_page_when_it_cannot_be_parsed_in_pieces_then_is_one_tree_without_nesting(text: str) -> None:
    trees, is_flat = parse_trees(text)

    assert (len(trees), is_flat) == (1, True)


def test_pieces_when_tags_are_crowded_in_one_place_then_none_has_many() -> None:
    raw = (b"word " * 60_000) + b"<p>x</p>" * 5_000 + (b" word" * 60_000)

    trees = parse_pieces(raw, tags=10_000, is_harmless=harmless)

    assert trees is not None
    assert max(len(tree.css("p")) for tree in trees) <= 1_500
    assert sum(len(tree.css("p")) for tree in trees) == 5_000


def test_pieces_when_one_is_not_harmless_then_shorter_ones_are_tried() -> None:
    def is_short(raw: bytes, tags: int) -> bool:
        return tags < 500

    trees = parse_pieces(b"<p>x</p>" * 5_000, tags=10_000, is_harmless=is_short)

    assert trees is not None
    assert len(trees) > 20
    assert parse_pieces(b"<p>x</p>" * 5_000, tags=10_000, is_harmless=lambda raw, tags: False) is None


@pytest.mark.parametrize(
    "build",
    [
        lambda n: f"<script>{'<p>' * n}</script>",
        lambda n: f"<!--{'<p>' * n}-->",
        lambda n: f"<p title='{'<p>' * n}'>",
    ],
    ids=["script", "comment", "value"],
)
def test_page_when_a_piece_would_end_where_no_tag_is_then_ends_later(build: Callable[[int], str]) -> None:
    text = "<div class=around>" + "<p>x</p>" * 2_000 + build(1_200) + "<p>y</p>" * 2_000

    trees, is_flat = parse_trees(text)

    assert not is_flat
    assert sum(len(tree.css("div.around > p")) for tree in trees) == len(
        LexborHTMLParser(text, scripting=True).css("div.around > p")
    )
    assert [line for line in parse_page(text, ConversionContext(url=URL)).text.split("\n") if line != "x"] == [
        "y"
    ] * 2_000


Build = Callable[[int], str]


def different(count: int, name: str = "font") -> str:
    """Start tags that are all different, so that a parser keeps each of them."""
    return "".join(f"<{name} a={number}>" for number in range(count))


#: Formatting elements that stay open, and blocks in which they are opened anew.
REOPENED: Final[dict[str, Build]] = {
    "in a paragraph": lambda n: f"<p>{different(n)}{'<p>x' * n}",
    "colours": lambda n: "<p>" + "".join(f"<font color={number}>" for number in range(n)) + "<p>x" * n,
    "in a block that ends": lambda n: f"<div>{different(n, 'b')}</div>{'<div>x</div>' * n}",
    "one in each": lambda n: "".join(f"<p><I a={number}>" for number in range(n)),
    "before rows": lambda n: f"<table>{different(n, 'b')}{'<tr>x' * n}",
    "cells end none": lambda n: "<table>" + "".join(f"<b a={k}><td></b>" for k in range(n)) + "<tr>x" * n,
    "ended where none is": lambda n: "<p>" + "".join(f"<b a={k}><!--</b>--><!--<p>-->" for k in range(n)) + "<p>x" * n,
    "ended in a value": lambda n: "<p>" + "".join(f"<b a={k} c='></b>'>" for k in range(n)) + "<p>x" * n,
    "quotes that are none": lambda n: "<p>" + "".join(f'<b ="a=" a={k}></b>">' for k in range(n)) + "<p>x" * n,
    "value in a value": lambda n: "<p>" + "".join(f'<b a= b="x c=" a={k}></b>">' for k in range(n)) + "<p>x" * n,
    "spans around": lambda n: f"{'<span>' * n}{different(n, 'i')}{'</span>x' * n}",
    "drawing": lambda n: f"<svg><title><p>{different(n, 'b')}{'<p>x' * n}</title></svg>",
    "menu": lambda n: f"<select><p>{different(n, 'b')}</select><p>{different(n, 'b')}{'<p>x' * n}",
    "blanks": lambda n: "<p>" + "".join(f"<b\n\tA={k} >" for k in range(n)) + "<p> " * n,
}
#: Elements within each other, also where a look at the tags says that they end.
NESTED: Final[dict[str, Build]] = {
    "blocks": lambda n: "<div>" * n,
    "blocks that seem to end": lambda n: "<div><!--</div>-->" * n,
    "ends in values": lambda n: "<div a='</div>'>" * n,
    "ends that are ignored": lambda n: "<span><div></span></div>" * n,
    "spans and ends": lambda n: "<span>" * n + "</z>" * n,
    "unknown": lambda n: "<x-y>" * n + "</z>" * n,
    "drawings": lambda n: "<svg>" * n + "</z>" * n,
    "void in a drawing": lambda n: "<svg>" + "<wbr>" * n + "</z>" * n,
    "links in a formula": lambda n: "<math>" + "<td>" * n + "</z>" * n,
    "templates": lambda n: "<template>" * n + "</z>" * n,
    "lists": lambda n: "<ul><li>" * n,
    "tables": lambda n: "<table><td>" * n + "</tfoot>" * n,
    "frames": lambda n: "<frameset>" * n,
    "forms": lambda n: "<form><div></form>" * n,
    "names with brackets": lambda n: "<b<div" * n + "<br<div>" * n + "</z>" * n,
    "names beyond ascii": lambda n: "<lin\u212a>" * n + "<\u017fpan>" * n + "</z>" * n,
    "names with nul": lambda n: "<br\0>" * n + "</z>" * n,
    "names with odd blanks": lambda n: "<br\x0b>" * n + "<br\xa0>" * n + "</z>" * n,
    "in a noscript": lambda n: "<noscript>" + "<div>" * n + "</noscript>",
}
#: What a parser compares with all others of its kind, or adds to what is there.
COMPARED: Final[dict[str, Build]] = {
    "options": lambda n: "<select>" + "<option>x" * n,
    "groups": lambda n: "<select>" + "<optgroup><option>x" * n,
    "attributes of the body": lambda n: "".join(f"<body a{number % 5_000}>" for number in range(n)),
    "many attributes of roots": lambda n: "".join(
        "<html " + " ".join(f"a{k % 10}b{number}" for number in range(500)) + ">" for k in range(n // 200)
    ),
    "attributes": lambda n: "<p " + " ".join(f"a{number}" for number in range(n)) + ">",
    "attributes behind a comment": lambda n: '<!--<b x="--><p ' + " ".join(f"a{number}" for number in range(n)) + ">",
    "attributes of end tags": lambda n: "</p " + " ".join(f"a{number}" for number in range(n)) + ">",
    "attributes with brackets": lambda n: "<p " + " ".join(f"a{number}='>'" for number in range(n)) + ">",
    "quotes": lambda n: "<a =\"'" * n + " x" * n,
    "text before a table": lambda n: "<table>" + ("x" * 20 + "<tr>") * n,
    "text in pieces": lambda n: ("x" * 20 + "</z>") * n,
    "text in pieces, attributes between": lambda n: "<p>" + ("x" * 20 + "</z a=1>") * n,
    "text in pieces, attributes of links between": lambda n: "<p>" + "".join(f"x</a b={k}>" for k in range(n)),
    "text in pieces, cells between": lambda n: "<p>" + "".join(f"xxxxx<td a={k}>" for k in range(n)),
    "text in pieces, heads between": lambda n: "<p>" + "xxxxx<head a=1>" * n,
    "text in a menu in pieces": lambda n: "<select><option>" + "".join(f"x</z a={k}>" for k in range(n)),
    "long pieces": lambda n: "<p>" + ("x" * n + "</z a=1>") * 200,
    "links": lambda n: "".join(f"<a href={number}><div>" for number in range(n)),
    "open links in cells": lambda n: "".join(f"<table><td><a href={number}>" for number in range(n)),
    "markers": lambda n: "<table><td><object></table>" * n,
    "names of tags": lambda n: "<a<a" * n + "<b='>'>" * n,
    "unended tags": lambda n: "<p>" + "<a" * n + ">" + "=" * 20_000,
    "steps to the parent": lambda n: "".join(
        f"<a href='{'../' * 20_000}{number}'>x</a>" for number in range(n // 1_000)
    ),
}
#: What is looked at to find the main content.
REGIONS: Final[dict[str, Build]] = {
    "regions in each other": lambda n: "<nav class=a>x<main><header>" * n,
    "names": lambda n: "".join(f"<div class='nav{k} menu-{k}' id=content{k}>x</div>" for k in range(n)),
    "one long name": lambda n: f"<div class='{'nav- ' * n}'>x" * 20,
    "styles": lambda n: "<p style='display:block;display' hidden>x" * n,
    "one long style": lambda n: f"<p style='{'display: ' * n}'>x" * 20,
    "switches": lambda n: "<!--googleoff: index-->x" * n + "<!--googleon: index-->x" * n,
    "a switch behind many pieces": lambda n: "<p>x<b>y</b></p>" * n + "<!--googleoff: index-->z",
    "marks in the text": lambda n: "\x02\x1d" * n + "\x02\x05\x02\x1e" * n + "\x02\x08" * n,
    "marks of links": lambda n: "<p>\x03<a href=x>\x03" * n,
    "texts of links": lambda n: "".join(f"<p><a href={k}>word {k}x</a>" for k in range(n)),
    "texts of one link": lambda n: "".join(f"<p><a href=x>word {k}x</a>" for k in range(n)),
    "regions in a link": lambda n: "<a href=x>" + "word<section>" * n,
    "languages in each other": lambda n: "<div lang=de>x " * n,
    "languages beside each other": lambda n: "".join(f"<div lang=l{k % 99}x>word {k}</div>" for k in range(n)),
    "menus in each other with words and links": lambda n: "<div class=sidebar><a href=x>x</a>word<ul class=menu>" * n,
    "contents in each other": lambda n: "<div class=content>word<a href=x>x</a>" * n,
    "footers one after the other": lambda n: "<footer>word <a href=x>x</a></footer><h2>x</h2>" * n,
    "links to headings": lambda n: "<h3>x<a href='#a'>¶</a></h3>" * n,
    "links to the page in each other": lambda n: "<table><td><a href='#a'>" * n,
    "cells that are regions": lambda n: "<table>" + "<td class=sidebar>x<td id=main>" * n,
}
FAMILIES: Final = [
    pytest.param(build, id=name) for family in (REGIONS, REOPENED, NESTED, COMPARED) for name, build in family.items()
]
#: Pages are asked for these, too.
_RULES: Final = TextRules(main=True, keep=("[data-kept]",), drop=(".dropped", "div > .x"))


def parse(text: str) -> object:
    return parse_page(text, ConversionContext(url="http://a.test/", text_rules=_RULES))


@pytest.mark.few(15)
@pytest.mark.parametrize("build", FAMILIES)
def test_r13_page_when_it_grows_then_its_cost_does_not_grow_faster(build: Build) -> None:
    assert_linear(parse, build, smallest=1_000, largest=32_000)


@pytest.mark.parametrize("tag", ["<p a=>x", "<p a= >x", "<p a=1>x"], ids=["no value", "blanks", "value"])
def test_r13_tree_when_it_passes_a_million_characters_then_its_cost_does_not_leap(tag: str) -> None:
    assert_linear(parse_tree, lambda size: tag * (size // len(tag)), smallest=1 << 18, largest=1 << 20, factor=4)


@pytest.mark.few(60)
@pytest.mark.parametrize("build", FAMILIES)
@pytest.mark.parametrize("size", [100, 200, 400, 1_500, 2_900, 6_000])
def test_r13_tree_when_a_page_is_made_to_be_large_then_has_few_more_elements_than_tags(build: Build, size: int) -> None:
    text = build(size)

    most = 2 * text.count("<") + 30_000
    assert len(parse_tree(text).css("*")) < most
    assert sum(len(tree.css("*")) for tree in parse_trees(text).trees) < most
