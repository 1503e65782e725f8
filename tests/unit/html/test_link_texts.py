"""Texts of links: those in the main text alone, each with its own target, whatever a page does (C8, G2)."""

from __future__ import annotations

import pytest

from searchcrawl.html.context import ALL_TEXT, ConversionContext, TextRules
from searchcrawl.html.page import parse_page
from searchcrawl.items import Page

SITE = "http://example.com/"
MAIN = TextRules(main=True)
STORY = "<p>" + "A kettle boils the water that it holds. " * 10


def read(html: str, rules: TextRules = MAIN) -> Page:
    return parse_page(html, ConversionContext(url=f"{SITE}page", text_rules=rules))


def texts_of(html: str, rules: TextRules = MAIN) -> dict[str, tuple[str, ...]]:
    return {link.url.removeprefix(SITE): link.texts for link in read(html, rules).links if link.texts}


def test_texts_when_links_are_in_the_main_text_then_they_alone_have_one() -> None:
    html = (
        f"<nav><a href=n>Menu</a></nav><header><a href=h>Head</a></header><main>{STORY}<a href=a>Filling  <b>the</b>\n"
        f"kettle</a> and<a href=b#part>its <i>lid</i></a>.</main><footer><a href=f>Imprint</a></footer>"
    )

    assert texts_of(html) == {"a": ("Filling the kettle",), "b": ("its lid",)}
    assert set(texts_of(html, ALL_TEXT)) == {"n", "h", "a", "b", "f"}
    # The marks of links leave no trace in the text.
    assert "Filling the\nkettle andits lid." in read(html).text.replace("the kettle", "the\nkettle")


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("<a href=x rel=nofollow>text</a>", {}),
        ("<a href=page>itself</a><a href=#part>part</a>", {}),
        ("<a href=x>¶</a><a href=x>42</a><a href=x>»</a>", {}),
        ("<a href=x>https://example.com/x</a><a href=y>www.example.com</a>", {}),
        ("<a href=x>one</a><a href=x#2>two</a><a href=x>one</a>", {"x": ("one", "two")}),
        ("<a href=x>a</a><a href=x>b</a><a href=x>c</a><a href=x>d</a>", {"x": ("a", "b", "c")}),
        ("<a href=x rel=nofollow>a</a><a href=x>b</a>", {"x": ("b",)}),
        ("<iframe src=f>no</iframe><a href=x>after</a>", {"x": ("after",)}),
        ("<noscript><a href=n>script</a></noscript><a href=x>after</a>", {"x": ("after",)}),
        ("<a href=mailto:x@example.com>mail</a><a href=x>after</a>", {"x": ("after",)}),
        ("<a name=x>no link</a><a href=x>after</a>", {"x": ("after",)}),
        ("<a href=x><div>Card<section class=content><p>in</p></section></div></a>", {"x": ("Card", "in")}),
        ("<a href=x><h2>Card</h2><p>of blocks</p></a>", {"x": ("Card of blocks",)}),
        ("<a href=x>never closed", {"x": ("never closed",)}),
        ("<a href=x>first<a href=y>second</a>", {"x": ("first",), "y": ("second",)}),
        # Links in links, as in cells, or frames; none has the text of another.
        (
            "<a href=x>in<table><td><a href=y>cell</a></table>out</a><a href=z>on</a>",
            {"x": ("in",), "y": ("cell",), "z": ("on",)},
        ),
        ("<a href=x>in<iframe src=f></iframe>out</a><a href=z>on</a>", {"x": ("in",), "z": ("on",)}),
        ("<a href=x>in<map><area href=y></map>out</a><a href=z>on</a>", {"x": ("in",), "z": ("on",)}),
        (f"<a href=x>{'word ' * 100}</a>", {"x": (" ".join(["word"] * 24),)}),
        (f"<a href=x>{'w' * 1000}</a>", {"x": ("w" * 120,)}),
        ("<a href=x>東京の天気</a>", {"x": ("東京の天気",)}),
        ("<a href=x>soft\xadhyphen &#2;&#1;</a>", {"x": ("soft\xadhyphen",)}),
        ("<table><tr><td><a href=x>in</a><a href=y>table</a></table>", {"x": ("in",), "y": ("table",)}),
    ],
)
def test_texts_when_links_are_written_in_many_ways_then_say_what_is_shown(
    link: str, expected: dict[str, tuple[str, ...]]
) -> None:
    assert texts_of(f"<body><article>{STORY}<div>{link}</div></article>") == expected


@pytest.mark.parametrize("mark", ["\x03", "&#3;", "\x04", "\x02\x03", "\x02\x04", "\x03\x03", "\x03\x04", "\x04\x03"])
def test_texts_when_a_page_has_the_marks_itself_then_it_has_none_or_its_own(mark: str) -> None:
    page = read(f"<p>before{mark}<a href=x>te{mark}xt</a>after{STORY}")

    assert page.text.replace("\n", "").startswith("beforetextafter")
    assert {link.url for link in page.links} == {f"{SITE}x"}
    assert all("after" not in text for link in page.links for text in link.texts)


def test_texts_when_a_page_is_parsed_in_pieces_then_each_has_its_own_target() -> None:
    links = "".join(f"<li><div><a href=p{number}>Kettle number {number}x</a></div>" for number in range(4_000))
    found = texts_of(f"<main><ul>{links}</ul></main>")

    assert len(found) == 1_000
    assert found["p0"] == ("Kettle number 0x",)
    assert all(texts == (f"Kettle number {target[1:]}x",) for target, texts in found.items())
