from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.html.page import parse_html, parse_page
from searchcrawl.html.page_text import collapse_lines
from searchcrawl.items import Link, Page

PAGE = "http://example.com/dir/page.html"


def page_of(
    html: str | bytes, *headers: tuple[bytes, bytes], content_type: str = "text/html; charset=utf-8", **arguments: Any
) -> Page:
    headers = ((b"Content-Type", content_type.encode()), *headers)
    context = ConversionContext(url=PAGE, headers=headers, user_agent="searchcrawl", **arguments)
    return parse_html(html.encode() if isinstance(html, str) else html, context)


def test_page_when_parsed_then_has_all_fields() -> None:
    page = page_of(
        """<!doctype html><html lang="de_AT"><head><title> A &amp;
        B </title><meta name="Description" content=" what  it is "><meta name=author content="N. N.">
        <meta name=dc.subject content=search><meta name=keywords content=unused>
        <link rel="alternate canonical" href="/canonical#part"></head><body><p>Hello <b>wor</b>ld<p><a href=x>x</a>"""
    )

    assert page == Page(
        title="A & B",
        text="Hello world\nx",
        description="what it is",
        author="N. N.",
        subject="search",
        language="de-at",
        charset="utf-8",
        canonical="http://example.com/canonical",
        links=(Link("http://example.com/dir/x", texts=("x",)),),
    )


def test_page_when_empty_then_has_nothing() -> None:
    assert page_of(b"") == Page(charset="utf-8")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<html lang='not a tag'><p>x", ""),
        ("<html lang=pt_BR><meta name=language content=de>", "pt-br"),
        ("<html lang='?'><meta http-equiv=Content-Language content=DE>", "de"),
        ("<meta http-equiv=content-language content='de, en'>", ""),
        ("<meta name=DC.Language content=fr><meta http-equiv=content-language content=it>", "it"),
        ("<meta name=DCTerms.language content=fr>", "fr"),
        ("<html lang=en><body lang=de><p>x", "de"),
        ("<html lang=en><body><div lang=de_CH><p>the text of the page</div><p>Imprint", "de-ch"),
        ("<html lang=en><nav lang=fr>a long menu of a site in another language</nav><p>short", "en"),
        ("<html lang=en><p>the text of the page<ul><li><a lang=de href=/de>Deutsch</a></ul>", "en"),
        ("<html lang=en><div lang=fr><div lang=de><p>the text of the page</div>x</div>", "de"),
        ("<html lang=en><template><div lang=de>y</div></template><style lang=de>a{}</style><p>x", "en"),
    ],
)
def test_page_when_a_language_is_declared_then_it_is_that_of_most_of_its_text_or_of_a_meta(
    html: str, expected: str
) -> None:
    assert page_of(html).language == expected


def test_page_when_parts_declare_their_own_languages_then_each_is_shown_with_some_of_its_text() -> None:
    page = page_of(
        "<html lang=en><main><p>A page of two columns, and of two languages<a lang=it href=/it>Italiano</a>"
        "<table><tr><td lang=de><p>Die <a href=/a>zweite</a> Spalte<p>ist lang genug dafür<td>x</table></main>"
    )

    assert (page.language, page.parts) == ("en", (("de", "ist lang genug dafür"),))


def test_page_when_it_is_parsed_in_pieces_then_an_element_around_them_declares_the_language_of_all() -> None:
    rows = "".join(f"<p>Absatz <b>{number}</b> von vielen" for number in range(5_000))

    assert page_of(f"<html lang=en><body><div lang=de>{rows}</div>").language == "de"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("a<script>b</script>c<style>d</style>e", "ace"),
        ("a<noscript>b <p>c</noscript>d", "ad"),
        ("a<template><p>b</template>c", "ac"),
        ("a<!-- b -->c", "ac"),
        ("<div>a</div>b<div>c</div>", "a\nb\nc"),
        ("<ul><li>a<li>b</ul>c", "a\nb\nc"),
        ("<table><tr><td>a</td><td>b</td></tr></table>c", "a\nb\nc"),
        ("a<br>b<hr>c", "a\nb\nc"),
        ("<p>a\n  b\t&nbsp;c</p>", "a b c"),
        ("<h1>a</h1><p>b<i>c</i><sub>2</sub></p>", "a\nbc2"),
        ("<textarea>a</textarea><select><option>b<option>c</select>", "a\nb\nc"),
        ("<svg><title>a</title></svg>b", "ab"),
        ("<iframe src=x>fallback</iframe>a", "a"),
        ("<plaintext>a</p>", "a</p>"),
    ],
)
def test_text_when_extracted_then_is_what_the_body_shows(html: str, expected: str) -> None:
    assert page_of(f"<title>t</title><body>{html}").text == expected


def test_text_when_japanese_has_inline_markup_then_words_stay_whole() -> None:
    assert page_of("<p>東京<b>都</b>庁<ruby>舎<rt>しゃ</rt></ruby></p>").text == "東京都庁舎しゃ"


def test_text_when_noscript_is_left_open_inside_then_rest_is_kept() -> None:
    assert page_of("<p>a<noscript><p>b</noscript><p>c").text == "a\nc"


def test_text_when_silent_elements_nest_then_all_are_left_out() -> None:
    html = "<svg><style><script>a</script></style></svg><noscript><style>b</style></noscript>c" * 50

    assert page_of(html).text == "c" * 50


def test_text_when_xml_forbids_characters_then_they_are_gone() -> None:
    html = "<title>a\x00&#1;&#xFFFE;</title><p>b\x00\x0b\x1b\ufffe\uffff&#x7;&#xD800;&#xFFFF;c日</p>\x1ed"

    page = page_of(html)

    assert (page.title, page.text) == ("a\ufffd", "b \ufffdc日\nd")


@pytest.mark.parametrize("code", [*range(0x20), 0xFFFE, 0xFFFF, 0xD800, 0xDFFF])
def test_lines_when_a_character_is_illegal_then_only_it_is_lost(code: int) -> None:
    cleaned = collapse_lines(f"日{chr(code)}本").replace(" ", "").replace("\n", "")

    assert cleaned == "日本"


def test_title_when_missing_then_drawing_does_not_give_it() -> None:
    assert page_of("<svg><title>drawing</title></svg>").title == ""


_WHOLE = "<html><head><title>T</title></head><body>b</body></html>"


@pytest.mark.parametrize(
    "before",
    [
        *(
            "<div>",
            "<p>",
            "<b>",
            "<a name=x>",
            "<form>",
            "<table><tr><td>",
            "<table>",
            "<select><option>",
            "<div><div>",
        ),
        *(
            "<script>a</script>",
            "<!-- a -->",
            "\ufeff",
            " \n",
            "<style>a</style>",
            "<iframe src=x></iframe>",
            "<svg><g>",
        ),
        *("<!doctype html><center>", "<svg><title>S</title></svg>", "<template><title>F</title></template>"),
    ],
)
def test_title_when_markup_comes_before_the_root_then_it_is_the_first_one_of_html(before: str) -> None:
    page = page_of(before + _WHOLE)

    assert (page.title, page.text.removeprefix("S")) == ("T", "b")


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<svg><foreignObject><title>F</title></foreignObject></svg><title>G</title>", "F"),
        ("<math><mi><title>F</title></mi></math><title>G</title>", "F"),
        ("<svg><g><title>D</title></g></svg><title>G</title>", "G"),
        ("<title></title><title>G</title>", ""),
    ],
)
def test_title_when_there_are_several_then_it_is_that_of_a_browser(html: str, title: str) -> None:
    assert page_of(html).title == title


@pytest.mark.parametrize(
    "html",
    [
        "a<video src=v><p>Your browser <a href=v.mp4>lacks</a> it</p></video>",
        "a<audio controls>Your browser lacks it</audio>",
        "a<canvas><table><tr><td>lacking</table></canvas>",
        "a<progress max=9 value=3>3 of 9</progress><meter value=1>33%</meter>",
        "a<input list=l><datalist id=l><option>proposed</datalist>",
    ],
)
@pytest.mark.parametrize("main", [True, False])
def test_text_when_it_is_for_browsers_that_lack_something_then_it_is_left_out(html: str, main: bool) -> None:
    page = page_of(f"{html}<p>b <a href=x>link</a>", text_rules=TextRules(main=main))

    assert page.text == "a\nb link"
    assert page.links[-1].texts == ("link",)


@pytest.mark.parametrize(
    "href", ["ftp://example.com/", "javascript:x", "http://[", ""], ids=["ftp", "script", "invalid", "empty"]
)
def test_canonical_when_not_a_web_url_then_is_none(href: str) -> None:
    assert page_of(f'<link rel=canonical href="{href}">').canonical is None


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<link rel=canonical href=/a><link rel=canonical href='/a#x'>", "http://example.com/a"),
        ("<link rel=canonical href=file:///a><link rel=canonical href=/b>", "http://example.com/b"),
        ("<link rel=canonical href=/a><link rel=canonical href=/b>", None),
        ("<body><p>comment: <link rel=canonical href=/a></p>", None),
        ("<link rel=canonical href=/a><body><link rel=canonical href=/b>", "http://example.com/a"),
    ],
    ids=["twice", "file", "contradiction", "body", "head and body"],
)
def test_canonical_when_links_are_several_or_out_of_place_then_only_one_of_the_head_counts(
    html: str, expected: str | None
) -> None:
    assert page_of(html).canonical == expected


def test_canonical_when_page_has_base_then_resolves_against_it() -> None:
    assert page_of("<base href=/b/><link rel=canonical href=c>").canonical == "http://example.com/b/c"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0;url=next.html", "http://example.com/dir/next.html"),
        ("5; URL='/x#y'", "http://example.com/x"),
        ("60", None),
        ("0;url=page.html#again", None),
        ("0;url=javascript:x", None),
        ("3600;url=next.html", None),
    ],
)
def test_refresh_when_in_meta_then_is_absolute_target(content: str, expected: str | None) -> None:
    assert page_of(f'<meta http-equiv="Refresh" content="{content}">').refresh == expected


def test_refresh_when_it_has_a_name_as_well_then_is_one() -> None:
    page = page_of('<meta name="refresh" http-equiv="refresh" content="0; url=/new"><meta name=author content=A>')

    assert (page.refresh, page.author) == ("http://example.com/new", "A")


def test_refresh_when_it_waits_long_then_is_a_link() -> None:
    page = page_of('<a href=x>x</a><meta http-equiv=refresh content="600;url=next">')

    assert page.links == (Link("http://example.com/dir/x", texts=("x",)), Link("http://example.com/dir/next"))


def test_noscript_when_it_has_links_then_they_count_but_its_refresh_does_not() -> None:
    page = page_of('<head><noscript><meta http-equiv=refresh content="0;url=/n"><a href=x>x</a></noscript>')

    assert (page.refresh, page.links) == (None, (Link("http://example.com/dir/x"),))


def test_robots_when_in_meta_and_header_then_both_count() -> None:
    page = page_of(
        "<meta name=SearchCrawl content=noindex>",
        *((b"X-Robots-Tag", value) for value in (b"otherbot: none", b"nofollow")),
    )

    assert (page.noindex, page.nofollow) == (True, True)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"\xef\xbb\xbf<p>a\xc3\xa9", "a\xe9"),
        (b"<p>a\xffb\xc3", "a\ufffdb\ufffd"),
        (b"<p>a\xef\xbf\xbdb", "a\ufffdb"),
        (b"<p>a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb"),
        (b"<p>\xe2\x80\xa8a\xc2\xa0\xe3\x80\x80b\xc2\x85", "a b"),
    ],
    ids=["bom", "invalid", "replaced", "surrogate", "blanks"],
)
def test_page_when_utf8_then_is_read_as_python_reads_it(body: bytes, expected: str) -> None:
    assert page_of(body).text == expected


@pytest.mark.parametrize("codec", ["euc_jp", "shift_jis"])
@pytest.mark.parametrize("declared", [True, False])
def test_page_when_japanese_then_is_read(codec: str, declared: bool) -> None:
    html = (
        "<title>天気予報</title><p>東京の天気は晴れ、大阪は雨でしょう。<a href=明日.html>明日の予報</a>はこちらです。"
    )
    content_type = f"text/html; charset={codec}" if declared else "text/html"

    page = page_of(html.encode(codec), content_type=content_type)

    assert (page.title, page.links) == (
        "天気予報",
        (Link("http://example.com/dir/%E6%98%8E%E6%97%A5.html", texts=("明日の予報",)),),
    )


@pytest.mark.parametrize(
    "html",
    ["<div>" * 200_000, "<b><p>" * 20_000, "<table><tr><td>" * 20_000, "<svg><g>" * 20_000, "<template>" * 20_000],
    ids=["div", "formatting", "table", "svg", "template"],
)
def test_page_when_nested_deeply_then_link_at_the_end_is_found(html: str) -> None:
    page = parse_page(f"<a href=first>x</a>{html}<a href=last>y</a>", ConversionContext(url=PAGE))

    assert page.links[0] == Link("http://example.com/dir/first", texts=("x",))
    assert len(page.links) == (1 if "template" in html else 2)


_EMPTY_ELEMENTS = (
    "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/><script src='a>b'/><style\n/>"
    "<meta name='description' content='d'/></head><body><a id='x'/><p>a<br/>b<textarea class=\"c\" /><i/></p><img src='x'/>c"
    "<iframe src='f' /><a href='y'>z</a></body></html>"
)


def test_page_when_it_is_sent_as_xhtml_then_elements_may_end_where_they_begin() -> None:
    page = page_of(_EMPTY_ELEMENTS, content_type="application/xhtml+xml; charset=utf-8")

    assert (page.title, page.description, page.text) == ("", "d", "a\nb\ncz")
    assert [(link.url, link.texts) for link in page.links] == [
        ("http://example.com/dir/f", ()),
        ("http://example.com/dir/y", ("z",)),
    ]


def test_fields_when_endless_then_are_cut_as_those_of_other_documents() -> None:
    long = "word " * 10_000

    page = page_of(
        f"<meta name=description content='{long}'><meta name=author content='{long}'><title>{long}<body>never closed"
    )

    assert {len(page.title), len(page.description), len(page.author)} == {8_192}


@pytest.mark.parametrize(
    ("head", "feeds"),
    [
        ("<link rel=alternate type=application/rss+xml href=/a>", ("http://example.com/a",)),
        (
            "<link rel='ALTERNATE home' type='application/atom+xml; charset=utf-8' href=a>",
            ("http://example.com/dir/a",),
        ),
        ("<link rel=alternate type=application/rss+xml href=/a>" * 2, ("http://example.com/a",)),
        ("<link rel='alternate nofollow' type=application/rss+xml href=/a>", ()),
        ("<link rel=alternate hreflang=de href=/a>", ()),
        ("<link rel=alternate type=application/json+oembed href=/a>", ()),
        ("<link rel=feed type=application/rss+xml href=/a>", ()),
        ("<link rel=alternate type=application/rss+xml href=mailto:a@b.test>", ()),
        ("</head><body><link rel=alternate type=application/rss+xml href=/a>", ()),
    ],
)
def test_feeds_when_the_head_names_them_then_are_known_and_are_no_links(head: str, feeds: tuple[str, ...]) -> None:
    page = page_of(head)

    assert page.feeds == feeds
    assert page.links == ()


def test_feeds_when_a_head_names_very_many_then_the_first_ones_are_known() -> None:
    head = "".join(f"<link rel=alternate type=application/rss+xml href=/{number}>" for number in range(50))

    assert page_of(head).feeds == tuple(f"http://example.com/{number}" for number in range(10))
