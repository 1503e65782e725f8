from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from selectolax.lexbor import LexborHTMLParser

from searchcrawl.html import flat_markup
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.flat_markup import MAX_REOPENED, count_reopened, flatten
from searchcrawl.html.page import parse_page
from searchcrawl.html.tree import MAX_ATTRIBUTES, MAX_NAMES, cap_attributes, end_long_tags, may_hide_end, parse_tree


def depth_of(html: str) -> int:
    """The depth of the deepest element, counted in the tree that was built."""
    deepest = 0
    for node in parse_tree(html).css(":not(:has(*))"):
        depth, parent = 0, node.parent
        while parent is not None:
            depth, parent = depth + 1, parent.parent
        deepest = max(deepest, depth)
    return deepest


def test_parse_when_nested_200000_deep_then_tree_is_shallow() -> None:
    html = "<div>" * 200_000 + "<b>end</b>"

    assert depth_of(html) <= 10


def test_parse_when_nested_elements_hold_links_then_all_are_found() -> None:
    html = "".join(f"<div><a href={number}>x</a>" for number in range(20_000)) + "</div>" * 20_000

    assert len(parse_tree(html).css("a")) == 20_000


def test_parse_when_2000_fonts_are_unclosed_then_all_links_are_found() -> None:
    html = "".join(f"<p><font color={number}><a href={number}>x</a>" for number in range(2_000))

    assert len(parse_tree(html).css("a")) == 2_000


@pytest.mark.parametrize(
    ("start", "repeated", "end", "lines"),
    [
        ("<ul>", "<li>x", "</ul>", ["x"]),
        ("<table>", "<tr><td>x<td>y", "</table>", ["x", "y"]),
        ("", "<div><p>x</p><br></div>", "", ["x"]),
        ("<!--", "<div>", "--><p>x", None),
        ("<script>", "<div>", "</script><p>x", None),
        ("", "<DIV>a<b>b</b>c</div>d", "", ["abc", "d"]),
    ],
    ids=["items", "cells", "blocks", "comment", "script", "capitals"],
)
def test_page_when_it_has_many_tags_then_its_text_is_that_of_a_page_with_few(
    start: str, repeated: str, end: str, lines: list[str] | None
) -> None:
    few, many = (
        parse_page(start + repeated * n + end, ConversionContext(url="http://a.test/")).text.split("\n")
        for n in (5, 5_000)
    )

    assert few == (["x"] if lines is None else lines * 5)
    assert many == (["x"] if lines is None else lines * 5_000)


@pytest.mark.parametrize("html", ["<!-- x" * 5_000, "<script>x" * 5_000, "<" * 5_000, "</x>" * 5_000, "<div" * 5_000])
def test_parse_when_markup_is_broken_then_still_gives_a_tree(html: str) -> None:
    assert parse_tree(html).root is not None


def test_parse_when_noscript_is_unclosed_inside_then_rest_is_kept() -> None:
    tree = parse_tree("<body>a<noscript><p>b</noscript><p id=c>c")

    assert [node.parent.tag for node in tree.css("#c") if node.parent] == ["body"]


@pytest.mark.parametrize(
    "html",
    [
        "<img src='data:image/png;base64," + "A" * 50_000 + "'>",
        "<p>" + "word " * 20_000,
        "<path d='" + "M 0 " * 9_000 + "'>",
        "<a title='b > c' =d e=f =g/>h</a>" * 9_000,
    ],
    ids=["data", "text", "drawing", "many"],
)
def test_cap_attributes_when_a_run_is_only_long_then_is_unchanged(html: str) -> None:
    assert cap_attributes(html, tags=html.count("<")) == html


def test_parse_when_text_has_a_lone_surrogate_then_leaves_it_out() -> None:
    assert [node.text() for node in parse_tree("<p>a\ud800b").css("p")] == ["ab"]


def test_hides_an_end_when_the_parser_reads_a_bracket_into_an_attribute_then_says_so() -> None:
    chance = random.Random(1)
    missed = []
    for _ in range(30_000):
        text = "<a" + "".join(chance.choices(["b", "=", '"', "'", " ", ">", "/", "<", "\n"], k=chance.randint(3, 14)))
        tree = parse_tree(text + ">")
        nodes = tree.root.traverse() if tree.root is not None else ()
        read = [f"{name}{value}" for node in nodes for name, value in node.attributes.items()]
        if any(">" in attribute for attribute in read) and not may_hide_end(text + ">"):
            missed.append(text)

    assert missed == []


@pytest.mark.parametrize(
    "html", ['<a href="x" b=\'c\' d=e f>it\'s "1 > 0"</a>', "<p>a < b</p>", "x=1 > y", "<br/><i a = b >"]
)
def test_hides_an_end_when_tags_are_plain_then_says_no(html: str) -> None:
    assert not may_hide_end(html)


@pytest.mark.parametrize("option", ["<option>x", "<option>x</option>", "<OPTION value=1>x"])
def test_r13_select_when_it_has_thousands_of_options_then_all_are_read_in_no_time(option: str) -> None:
    # Lexbor itself takes minutes for these.
    tree = parse_tree(f"<p>before<select name=s>{option * 60_000}</select><a href=/x>after</a>")

    assert tree.body is not None
    assert tree.body.text().count("x") == 60_000
    assert [node.attributes["href"] for node in tree.css("a")] == ["/x"]


def test_select_when_its_options_are_few_then_stays_one() -> None:
    tree = parse_tree("<select>" + "<option>x</option>" * 300 + "</select>" + "<p>x</p>" * 5000)

    assert len(tree.css("select > option")) == 300


PIECES: Final = (
    *("<a ", "<b", "</p ", "<!--", "-->", "<script>", "</script>", "<textarea>", "</textarea>", "<title>", "</title>"),
    *("<svg>", "<![CDATA[", "]]>", "<select>", "<style>", "<", ">", "/", "=", '"', "'", " ", "\n", "x", "a1 b2 c3"),
    *('z="', "q='", '=""', "k=v", "\0", "m=>", "n= \n>"),
)


def attributes_of(text: str) -> list[int]:
    """How many attributes each element has; html and body get those of all their tags."""
    tree = LexborHTMLParser(text, scripting=True)
    return [len(node.attributes) for node in tree.css("*") if node.tag not in {"html", "body"}]


def write_soup(chance: random.Random) -> str:
    """Markup that is broken in any way."""
    return "".join(chance.choices(PIECES, k=chance.randint(1, 60)))


@pytest.mark.parametrize("seed", range(20))
def test_soup_when_long_tags_are_ended_then_none_has_more_attributes(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(300):
        soup, most = write_soup(chance), chance.randint(1, 4)
        ended = end_long_tags(soup, most=most, names=chance.choice([None, 10_000]))

        assert max(attributes_of(ended), default=0) <= most, soup
        assert end_long_tags(ended, most=most) == ended


def test_soup_when_its_tags_are_short_then_stays_as_it_is() -> None:
    chance = random.Random(1)
    for _ in range(1_000):
        soup = write_soup(chance)

        assert end_long_tags(soup, most=200) == soup


MANY: Final[dict[str, Callable[[int], str]]] = {
    "plain": lambda n: "<div " + " ".join(f"a{k}=1" for k in range(n)) + ">",
    "behind a comment": lambda n: '<!--<b x="--><div ' + " ".join(f"a{k}" for k in range(n)) + ">",
    "behind a script": lambda n: "<script>'<b x='</script><div " + "/".join(f"a{k}" for k in range(n)) + ">",
    "with brackets": lambda n: "<div " + " ".join(f"a{k}='<b>'" for k in range(n)) + ">",
    "without blanks": lambda n: "<div" + "".join(f" a{k}=\">\"b{k}='>'" for k in range(n // 2)) + ">",
}


@pytest.mark.parametrize("build", MANY.values(), ids=MANY)
def test_tag_when_it_has_too_many_attributes_then_it_is_ended_and_links_stay(build: Callable[[int], str]) -> None:
    ended = end_long_tags(f"<p>a</p>{build(20_000)}<a href=x>x</a>")

    assert max(attributes_of(ended)) == MAX_ATTRIBUTES
    assert [node.attributes for node in LexborHTMLParser(ended).css("a[href]")] == [{"href": "x"}]


def test_page_when_it_has_too_many_names_then_further_tags_have_no_new_ones() -> None:
    text = "".join(f"<p a{number}>" for number in range(2 * MAX_NAMES)) + "<a a5 href=x>x</a>"

    tree = LexborHTMLParser(end_long_tags(text, names=MAX_NAMES))

    assert len({name for node in tree.css("*") for name in node.attributes}) == MAX_NAMES


CONTENT: Final = Path(__file__).parents[2] / "site" / "content"
URL: Final = "http://a.test/folder/page"

#: What a tree may have of a text that was flattened; the last are those that a parser adds, ``p`` for an end tag alone.
ALLOWED_NAMES: Final = (
    "a area base br frame hr iframe img input link meta noembed noframes noscript plaintext script style textarea title "
    "wbr xmp button form frameset optgroup option select template html head body p"
)
ALLOWED: Final = frozenset(ALLOWED_NAMES.split())
NAMES: Final = "div b span table td tr a svg math title script style select option template p li br body html x-y BR A"
PARTS: Final = [
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
        text = "".join(chance.choices(PARTS, k=chance.randint(1, 30)))
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
