"""Headings and defined terms: those of the main text, each once, bounded, whatever a page does (G1)."""

from __future__ import annotations

import pytest

from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.html.headings import MOST_CHARACTERS, MOST_HEADINGS
from searchcrawl.html.page import parse_page
from searchcrawl.html.regions import HEADING_MARK
from searchcrawl.items import Page
from tests.growth import assert_linear

MAIN = TextRules(main=True)
STORY = "<p>" + "A kettle boils the water that it holds. " * 10


def read(html: str, rules: TextRules = MAIN) -> Page:
    return parse_page(html, ConversionContext(url="http://example.com/page", text_rules=rules))


def test_headings_when_a_page_has_some_then_those_that_name_it_come_first() -> None:
    html = (
        f"<h1>Kettles</h1>{STORY}<h4>Small <i>ones</i></h4><dl><dt id=tea.Kettle.boil><code>boil</code>(litres)<dd>It boils."
        f"<dt>Lid<dd>On top.</dl><h2 id=care>Care<a class=headerlink href=#care>¶</a></h2>{STORY}<h3>Lid</h3><h5>Small print</h5>"
    )

    assert read(html).headings == ("Kettles", "Care", "tea.Kettle.boil", "boil(litres)", "Small ones", "Lid")


def test_headings_when_their_marks_are_in_the_text_then_it_has_the_same_lines_as_before() -> None:
    html = f"<h1>Kettles</h1>{STORY}<h2>Care</h2>Wipe it.<dl><dt>Lid<dd>On top.<dt>Spout<dd>In front.</dl>"

    lines = read(html).text.split("\n")

    assert lines[0] == "Kettles"
    assert lines[2:] == ["Care", "Wipe it.", "Lid", "On top.", "Spout", "In front."]


@pytest.mark.parametrize("part", ["nav", "footer", "header", "div hidden", "div data-nosnippet"])
def test_headings_when_they_are_not_indexed_then_they_are_none(part: str) -> None:
    html = f"<{part}><h2 id=menu.of.all>Menu</h2><dl><dt>Home</dl></{part.partition(' ')[0]}><h1>Kettles</h1>{STORY}"

    assert read(html).headings == ("Kettles",)


def test_headings_when_only_what_is_around_the_content_has_some_that_name_the_page_then_these_do() -> None:
    html = f"<div class=header><div class=title>Kettles</div></div><div class=contents><h3>Care</h3>{STORY}</div>"

    page = read(html)

    assert page.headings == ("Kettles", "Care")
    assert page.naming == 1
    assert "Kettles" not in page.text
    assert read(html, TextRules(main=True, drop=(".header",))).headings == ("Care",)
    assert read(html.replace("h3", "h2")).headings == ("Care",)


@pytest.mark.parametrize(
    "heading",
    [
        "<h1><a href=/x>Kettles</a> <a href=#y>§</a></h1>",
        "<h1><div>Kettles</div></h1>",
        "<h1><div class=content><p>Kettles</div></h1>",
        "<div class='title of-all'>Kettles</div>",
        "<dl><dt><div class=term>Kettles</div><dd>x</dl>",
    ],
)
def test_headings_when_they_have_other_elements_in_them_then_their_text_is_whole(heading: str) -> None:
    assert read(f"<main>{heading}</main>{STORY}").headings == ("Kettles",)


@pytest.mark.parametrize("name", ["part", "3.1", "a..b", "x." * 80 + "y", "a.b.", ".b", "a.b\x7f2\x7fc", "a b.c"])
def test_headings_when_an_id_is_no_dotted_name_then_it_is_no_term(name: str) -> None:
    assert read(f'<dl><dt id="{name}">Lid<dd>On top.</dl>{STORY}').headings == ("Lid",)


@pytest.mark.parametrize("own", ["\x7f", "\x7f1", "\x7f40;", "\x7f4999999;", "\x7f4", "\x7fone", "\x7f4\u0661;"])
def test_headings_when_a_page_writes_marks_itself_then_its_text_has_none_of_ours(own: str) -> None:
    page = read(f"<p>{own}One{own}</p><h2>T{own}wo</h2><h1 id=tea.pot>Kettles{own}</h1>{STORY}<a href=x>li{own}nk</a>")

    assert page.text.replace(own, "").split()[-2:] == ["holds.", "link"]
    assert HEADING_MARK.search(page.text) is None
    assert "tea.pot" not in page.text


def test_headings_when_some_are_empty_then_the_text_has_no_empty_lines() -> None:
    page = read(f"<h2></h2><p>First words</p><h1>Kettles</h1><h2> </h2>{STORY}<h2></h2><p>Last words<h3></h3>")

    assert page.text.split("\n")[:2] == ["First words", "Kettles"]
    assert page.text.endswith("Last words")
    assert "\n\n" not in page.text


@pytest.mark.parametrize("tags", [10, 4_000, 30_000])
def test_headings_when_a_page_has_many_then_some_are_kept_however_it_is_parsed(tags: int) -> None:
    many = "".join(f"<h3>Kettle number {number}</h3><p>It boils {number} litres." for number in range(tags))

    headings = read(f"<h3>First</h3>{many}<h1>Kettles</h1>").headings

    assert headings[:3] == ("Kettles", "First", "Kettle number 0")
    assert len(headings) == min(tags + 2, MOST_HEADINGS)


def test_headings_when_they_are_long_then_all_of_them_together_are_bounded() -> None:
    headings = read(
        "".join(f"<h2>{'kettle ' * 100}{number}</h2>{STORY}" for number in range(10)) + "<h2>b</h2>"
    ).headings
    many = read("".join(f"<h2>{'k' * 100}{number}</h2>" for number in range(150)) + STORY).headings

    # Their beginnings are the same.
    assert len(headings) == 2
    assert len(headings[0]) <= 120
    assert MOST_CHARACTERS - 200 < sum(map(len, many)) <= MOST_CHARACTERS


@pytest.mark.parametrize("markup", ["<h1>x</h1>", "<dt id=a.b>x", "<h2>", "<dt>\x7f1", "<h1><nav>x"])
def test_r13_headings_when_there_are_many_then_reading_them_takes_linear_time(markup: str) -> None:
    assert_linear(read, lambda count: markup * count, smallest=500, largest=32_000)


@pytest.mark.parametrize(
    "secret", ["<div data-nosnippet><h1>Secret</h1></div>", "<!--googleoff: all--><h1>Secret</h1><!--googleon: all-->"]
)
def test_headings_when_the_page_drops_those_that_would_name_it_then_none_does(secret: str) -> None:
    page = read(f"{secret}<div class=contents><h3>Care</h3>{STORY}</div>")

    assert page.headings == ("Care",)
