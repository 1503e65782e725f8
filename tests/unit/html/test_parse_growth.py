"""A page costs linear time and memory, whatever its tags are and wherever they stand (X-D4, X-R13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.html.page import parse_page
from searchcrawl.html.tree import parse_tree, parse_trees
from tests.growth import assert_linear

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
