"""Markup without nesting: what is read of a page stays, and nothing in it can nest (X-R13)."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from selectolax.lexbor import LexborHTMLParser

from searchcrawl.html import flat_markup
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.flat_markup import MAX_REOPENED, count_reopened, flatten
from searchcrawl.html.page import parse_page

CONTENT: Final = Path(__file__).parents[2] / "site" / "content"
URL: Final = "http://a.test/folder/page"

#: What a tree may have of a text that was flattened; the last are those that a parser adds, ``p`` for an end tag alone.
ALLOWED_NAMES: Final = (
    "a area base br frame hr iframe img input link meta noembed noframes noscript plaintext script style textarea title "
    "wbr xmp button form frameset optgroup option select template html head body p"
)
ALLOWED: Final = frozenset(ALLOWED_NAMES.split())
NAMES: Final = "div b span table td tr a svg math title script style select option template p li br body html x-y BR A"
PIECES: Final = [
    *(f"<{name}" for name in NAMES.split()), *(f"</{name}" for name in NAMES.split()), "<", "</", "<!--", "-->", "<![CDATA[",
    "]]>", "<?", ">", ">", ">", ">", ">", "/>", " ", "\t", "\f", "\x0b", "\0", "\xa0", "=", '"', "'", "x", "x=", "/", "&lt;",
    "K", "\u212a", "<lin\u212a>", "\u017f", "<br\x0b>", "<br\0>", "<\u017fpan>", "\r",
]  # fmt: skip


def read_texts(*, suffix: str) -> list[str]:
    return [path.read_text("utf-8", "replace") for path in sorted(CONTENT.rglob(f"*{suffix}"))]


def assert_read_alike(text: str) -> None:
    # Without its elements it has no headings.
    assert parse_page(flatten(text), ConversionContext(url=URL)) == replace(
        parse_page(text, ConversionContext(url=URL)), headings=(), naming=0
    )


def test_page_when_flattened_then_is_read_as_before() -> None:
    texts = read_texts(suffix=".html")

    assert len(texts) > 50
    for text in texts:
        assert_read_alike(text)


@pytest.mark.parametrize(
    "text",
    [
        "<body><p>a<b>b</b>c<div>d</div>e<ul><li>f<li>g</ul>h<table><tr><td>i<td>j</table>k",
        "<title>t</title><a href=1><h1>x</h1></a><svg><a href=2>y</a></svg><button>z</button>",
        "<template><p>hidden</p></template>shown<noscript><div><a href=1>x</a></div></noscript>",
        "<script>if (a<b</script><p>shown",
        "<script>x='<b</div>'</script><p>shown",
        "<head><link rel=canonical href=/c></head><div><link rel=canonical href=/d></div>x",
        "<frameset><frame src=1><frame src=2></frameset>",
        "<HTML LANG=de><BODY><DIV>a</DIV>b<P>c<SPAN>d</SPAN>e",
        "<form><select name=a><option>x<option selected>y</select><textarea>z</textarea></form>",
    ],
)
def test_text_when_flattened_then_is_read_as_before(text: str) -> None:
    assert_read_alike(text)


def test_r13_tree_when_of_flattened_noise_then_has_no_element_that_nests() -> None:
    chance = random.Random(5)
    for _ in range(20_000):
        text = "".join(chance.choices(PIECES, k=chance.randint(1, 30)))
        tree = LexborHTMLParser(flatten(text), scripting=True)

        assert {node.tag for node in tree.css("*")} <= ALLOWED, text
        assert tree.css("p *") == [], text


@pytest.mark.parametrize(("name", "stay"), [("template", 1_000), ("FORM", 1_000), ("select", 1_000), ("body", 6)])
def test_r13_flattened_when_what_may_nest_is_too_much_then_the_first_stay(name: str, stay: int) -> None:
    assert flatten(f"<{name} a>x</{name}>" * 2_000).count(f"<{name}") == stay


def test_r13_text_when_a_menu_is_too_long_then_stays_apart_from_it() -> None:
    text = flatten("<select>" + "<option>x</option>" * 2_000 + "</select>after")

    assert parse_page(text, ConversionContext(url=URL)).text.split("\n") == ["x"] * 2_000 + ["after"]


def leaves_open(raw: bytes) -> bool:
    """Whether a formatting element is taken for one that may stay open: of many of these a page is flattened."""
    return flat_markup._LEFT_OPEN.search(raw) is not None


def test_r13_formatting_when_it_stays_open_then_is_found() -> None:
    chance = random.Random(7)
    pieces = ["a", "=", '"', "'", " ", " ", "/", "<", ">", "\n", "a=", '="', '"x"', "<span>", "</span>", "</b ", "</b>"]
    missed = []
    for _ in range(60_000):
        inner = "".join(chance.choices(pieces, k=chance.randint(1, 9)))
        text = f'<p><b{inner}>x</b><p>y<p>z<q title="\'"><p>y<p>z'
        reopened = len(LexborHTMLParser(text).css("b")) > text.count("<b")
        if reopened and not leaves_open(text.encode()):
            missed.append(text)

    assert missed == []


@pytest.mark.parametrize(
    "text",
    [
        "<b>x</b>",
        "<b class='x' id=y z>x</b >",
        '<CODE class="a b"><span class=c>x</span>.<span>y</span></CODE>',
        "<i></i><em>a &lt; b</em>",
        "<br><body><section><table><ul>",
    ],
)
def test_formatting_when_it_ends_then_is_none_that_stays_open(text: str) -> None:
    assert not leaves_open(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "<b>x<p>",
        "<b><i>x</i></b>",
        "<b>x</i>",
        "<b a='>'>x</b>",
        '<b ="">x</b>',
        "<code><span><a>",
        "<S>x</span>",
        "<i/",
    ],
)
def test_formatting_when_it_may_stay_open_then_is_seen(text: str) -> None:
    assert leaves_open(f"{text}<p>".encode())


def test_formatting_when_a_real_page_has_much_then_it_may_stay() -> None:
    text = "<p>" + "<code class=x><em>a</em> <a href=y>b</a></code> <strong>c</strong>, <i class=z></i><br>" * 250

    assert count_reopened(text.encode(), tags=text.count("<")) <= MAX_REOPENED
