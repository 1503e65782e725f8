from __future__ import annotations

import random
import time

import pytest

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.context import ALL_TEXT, ConversionContext, TextRules
from searchcrawl.html.links import (
    LOCAL,
    MAX_LINKS,
    PageLinks,
    Resolver,
    extract_links,
    find_base,
    find_header_canonical,
    read_reference,
)
from searchcrawl.html.page import parse_page
from searchcrawl.html.tree import parse_tree
from searchcrawl.items import Link, Page

PAGE = "http://example.com/dir/page.html"


def links_of(html: str, url: str = PAGE) -> PageLinks:
    tree = parse_tree(html)
    references = map(read_reference, tree.css("a,area,frame,iframe"))
    found = extract_links(
        [one for one in references if one is not None and one is not LOCAL], Resolver(find_base(tree.css("base"), url))
    )
    return PageLinks(found.links, found.malformed)


def urls_of(html: str, url: str = PAGE) -> list[str]:
    return [link.url for link in links_of(html, url).links]


def slow_resolve(reference: str, base: str) -> str | None:
    try:
        return urls.resolve(reference, base)
    except InvalidUrl:
        return None


def test_links_when_of_all_elements_then_are_in_document_order() -> None:
    html = "<a href=1>x</a><iframe src=2></iframe><map><area href=3></map><a href=/4>x</a><img src=5><link href=6>"

    assert urls_of(html) == [
        "http://example.com/dir/1",
        "http://example.com/dir/2",
        "http://example.com/dir/3",
        "http://example.com/4",
    ]


def test_links_when_in_a_drawing_then_are_found() -> None:
    html = "<svg><a xlink:href=1><text>one</text></a><a href=2>two</a></svg>"

    assert urls_of(html) == ["http://example.com/dir/1", "http://example.com/dir/2"]


def test_links_when_frameset_then_frames_are_found() -> None:
    assert urls_of("<frameset><frame src=menu.html><frame src=main.html></frameset>") == [
        "http://example.com/dir/menu.html",
        "http://example.com/dir/main.html",
    ]


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("/other/", "http://example.com/other/a"),
        ("http://elsewhere.org/x/y", "http://elsewhere.org/x/a"),
        ("javascript:x", "http://example.com/dir/a"),
        ("http://[", "http://example.com/dir/a"),
        ("", "http://example.com/dir/a"),
    ],
)
def test_links_when_page_has_base_then_resolve_against_it(base: str, expected: str) -> None:
    assert urls_of(f'<base target=x><base href="{base}"><base href=/ignored/><a href=a>x</a>') == [expected]


def test_links_when_target_repeats_then_is_once_and_nofollow_only_if_all_are() -> None:
    html = (
        "<a href=a rel=nofollow>x</a><a href=b rel='noopener NoFollow'>x</a>"
        "<a href=a#part>x</a><a href=./b rel=nofollow>x</a><a href=c>x</a><a href=c rel=nofollow>x</a>"
    )

    assert links_of(html).links == (
        Link("http://example.com/dir/a", False),
        Link("http://example.com/dir/b", True),
        Link("http://example.com/dir/c", False),
    )


@pytest.mark.parametrize(
    "href",
    ["#top", "javascript:alert(1)", "mailto:a@b.c", "data:text/html,x", "file:///etc/passwd", "ftp://a/b", "tel:1", ""],
)
def test_links_when_scheme_is_not_the_webs_then_are_left_out(href: str) -> None:
    assert urls_of(f'<a href="{href}">x</a><a>y</a>') == []


def test_links_when_malformed_then_the_first_ones_are_named_once() -> None:
    html = '<a href="http://[#x">x</a><a href="http://a b/">x</a><a href="JavaScript:x">x</a><a href="ok">x</a>'
    again = "".join(f'<a href="http://[">x</a><a href="http://{number}%/">x</a>' for number in range(100))

    assert links_of(html) == PageLinks((Link("http://example.com/dir/ok"),), ("http://[", "http://a b/"))
    assert links_of(again).malformed[:3] == ("http://[", "http://0%/", "http://1%/")
    assert len(links_of(again).malformed) == 10


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        (" \t a b \n", "http://example.com/dir/a%20b"),
        ("a\nb\tc", "http://example.com/dir/abc"),
        ("http://user:secret@example.com/x#y", "http://example.com/x"),
        ("HTTP://EXAMPLE.com:80/A", "http://example.com/A"),
        ("//other.org", "http://other.org/"),
        ("?page=2", "http://example.com/dir/page.html?page=2"),
        ("../up/./x", "http://example.com/up/x"),
        ("日本", "http://example.com/dir/%E6%97%A5%E6%9C%AC"),
        ("a\x00b", "http://example.com/dir/a%EF%BF%BDb"),
        ("&#x1;x&amp;y", "http://example.com/dir/x&y"),
    ],
)
def test_links_when_written_oddly_then_resolve_as_in_browsers(href: str, expected: str) -> None:
    assert urls_of(f'<a href="{href}">x</a>') == [expected]


def test_links_when_300000_on_a_page_then_all_are_found() -> None:
    html = "".join(f"<a href=p{number}>x</a>" for number in range(300_000))

    assert len(urls_of(html)) == 300_000


def test_links_when_href_has_30_million_characters_then_it_alone_is_lost() -> None:
    html = f'<a href="{"a/" * 15_000_000}">x</a><a href=b>y</a>'

    assert links_of(html) == PageLinks((Link("http://example.com/dir/b"),), (("a/" * 100),))


def test_resolver_when_compared_with_identity_then_agrees() -> None:
    chooser = random.Random(20)
    bases = ["http://e.org/", PAGE, "https://e.org:8443/a/b/?q=1/2", "http://e.org/a/b/c;x", "http://[::1]/x/y"]
    pieces = [".", "..", "/", "//", "?", "#", "%", "%41", ".%2e", "~", "-", "_", ";", "=", "&", ":", "@", "+", "*", "|"]
    pieces += ["a", "b", "1", "é", "'", '"', "\\", " ", "\t", "\x01", "http:", "https://", "/a/b"]
    pieces += ["../", "../", "./", "a/", "b.c"]
    pieces += ["http://e.org/", "http://e.org", "http://E.org", "https://e.org:8443/"]
    pieces += ["http://www.", "https://a-.", "http://xn--", ".xn--a", ".0x7f", ".1", "www.example.org/", "-a."]

    differing = []
    for _ in range(20_000):
        base = chooser.choice(bases)
        reference = "".join(chooser.choice(pieces) for _ in range(chooser.randint(1, 7)))
        if Resolver(base).resolve(reference) != slow_resolve(reference, base):
            differing.append((reference, base))

    assert differing == []


def test_r13_links_when_a_page_has_too_many_then_the_first_are_taken() -> None:
    references = [(f"/{number}", None) for number in range(MAX_LINKS + 5)]

    links = extract_links([*references, ("/0", "nofollow")], Resolver("http://a.test/")).links

    assert len(links) == MAX_LINKS
    assert links[-1].url == f"http://a.test/{MAX_LINKS - 1}"


FILE_URL = "http://a.test/dir/page.pdf"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (['<http://a.test/x>; rel="canonical"'], "http://a.test/x"),
        (["<../x.html>;rel=canonical"], "http://a.test/x.html"),
        (['</style.css>; rel=preload; as=style, </x?a=1,2;b#part> ; title="a, b; c" ; REL="Alternate CANONICAL"'], "http://a.test/x?a=1,2;b"),
        (["</y>; rel=next", "</x>; rel=canonical"], "http://a.test/x"),
        (["</x>; rel=canonical; rel=next"], "http://a.test/x"),
        (["</x>; rel=next; rel=canonical"], None),
        (['</x>; rel=canonical; anchor="/other"'], None),
        (["</x>; rel=canonical, </y>; rel=canonical"], None),
        (["</x>; rel=canonical, <http://a.test/x#b>; rel=canonical"], "http://a.test/x"),
        (["<file:///x>; rel=canonical"], None),
        (["<http://[>; rel=canonical"], None),
        (["/x; rel=canonical"], None),
        (['</x>; rel="canonical'], None),
        ([""], None),
        ([], None),
    ],
)  # fmt: skip
def test_canonical_when_a_link_header_names_one_then_it_is_absolute(values: list[str], expected: str | None) -> None:
    assert find_header_canonical(values, base_url=FILE_URL) == expected


@pytest.mark.parametrize("part", ["<", "<x>;", '<x>;a="', "<x>;a=\\", "<x> ;  ", '<x>;a="\\"', "<x>,"])
def test_canonical_when_a_header_is_long_and_broken_then_reading_it_takes_no_time(part: str) -> None:
    began = time.process_time()

    find_header_canonical([part * 100_000], base_url=FILE_URL)

    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<object data=o.pdf type=application/pdf>none <a href=o2>x</a></object>", [("o.pdf", ()), ("o2", ("x",))]),
        ("<object data=o.html>none</object><a href=x>x</a>", [("o.html", ()), ("x", ("x",))]),
        ("<embed src=e.pdf><a href=x>x</a>", [("e.pdf", ()), ("x", ("x",))]),
        ("<noscript><embed src=e.pdf></noscript>", [("e.pdf", ())]),
        ("<object data=p.svg type='image/svg+xml'></object><embed src=f.swf type=application/x-shockwave-flash>", []),
        (
            "<object classid=clsid:1 data=f></object><object></object><embed src='#x'><object data='data:x,y'></object>",
            [],
        ),
    ],
)
def test_links_when_a_document_is_embedded_then_it_is_one(html: str, found: list[tuple[str, tuple[str, ...]]]) -> None:
    links = parse_page(html, ConversionContext(url=PAGE)).links

    assert [(link.url.removeprefix("http://example.com/dir/"), link.texts) for link in links] == found


@pytest.mark.parametrize(
    ("charset", "href", "found"),
    [
        ("windows-1252", "/é?q=é&amp;r=日#é", "/%C3%A9?q=%E9&r=%26%2326085%3B"),
        ("windows-1251", "?q=%20я я", "/dir/page.html?q=%20%FF%20%FF"),
        ("shift_jis", "x?ソ", "/dir/x?%83\\"),
        ("gbk", "x?中", "/dir/x?%D6%D0"),
        ("utf-8", "x?é", "/dir/x?%C3%A9"),
        ("utf-16le", "x?é", "/dir/x?%C3%A9"),
        ("iso-8859-8-i", "x?א", "/dir/x?%E0"),
    ],
)
def test_links_when_the_page_is_in_another_encoding_then_queries_are_too(charset: str, href: str, found: str) -> None:
    page = parse_page(f'<a href="{href}">x</a>', ConversionContext(url=PAGE), charset=charset)

    assert [link.url for link in page.links] == [f"http://example.com{found}"]


@pytest.mark.parametrize(
    ("base", "url"), [("", "http://a.test/app?v=1#/here/x"), ("<base href=/app?v=1>", "http://a.test/other#/here")]
)
def test_links_when_routes_are_urls_then_those_of_the_page_itself_are_links_and_other_fragments_are_not(
    base: str, url: str
) -> None:
    html = (
        f"{base}<a href='#/users'>users</a><a href='#top'>top</a><a href='/app?v=1#!a b'>ab</a><a href=more#/x>more</a>"
        "<a href=more#part>again</a><noscript><a href='#/plain'>x</a></noscript><link rel=canonical href='#/users'>"
    )

    page = parse_page(f"<html><head></head><body>{html}</body></html>", ConversionContext(url=url, routes=True))

    found = {link.url: link.texts for link in page.links}
    app = "http://a.test/app?v=1"
    if base:
        found.pop(app, None)
    assert [link for link in found if "#" in link] == [
        f"{app}#/users", f"{app}#!a%20b", "http://a.test/more#/x", f"{app}#/plain",
    ]  # fmt: skip
    assert found[f"{app}#/users"] == ("users",)
    assert "http://a.test/more" in found


def test_links_when_routes_are_places_then_they_are_none() -> None:
    page = parse_page(
        "<a href='#/users'>users</a><a href='more#/x'>more</a>", ConversionContext(url="http://a.test/app")
    )

    assert [link.url for link in page.links] == ["http://a.test/more"]


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
