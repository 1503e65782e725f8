"""A long page that is parsed in pieces is read as in one (X-R13)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from selectolax.lexbor import LexborHTMLParser

from searchcrawl.html.context import ALL_TEXT, ConversionContext, TextRules
from searchcrawl.html.page import parse_page
from searchcrawl.html.pieces import parse_pieces
from searchcrawl.html.tree import parse_trees
from searchcrawl.items import Page

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
