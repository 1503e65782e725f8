from __future__ import annotations

import socket
from pathlib import Path

import pytest

from searchcrawl.bodies import LargeBody, put_down
from searchcrawl.codes import Code
from searchcrawl.convert.xml_converter import convert_large_xml, convert_xml
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import Link, Page

RSS = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>Harbour &amp; news</title><link>/</link><description>What happens</description><language>de-DE</language>
<image><title>logo</title></image><pubDate>Tue, 05 Mar 2024 10:00:00 +0000</pubDate>
<item><title>Storm&nbsp;coming</title><link>/storm.html</link><dc:creator>N. N.</dc:creator>
<description>&lt;p&gt;Falling &lt;b&gt;quicksilver&lt;/b&gt; &amp;amp; more&lt;script&gt;hidden()&lt;/script&gt;</description>
<content:encoded><![CDATA[<ul><li>One<li>Two</ul>]]></content:encoded><guid>no-url</guid></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title type="html">A &lt;i>feed&lt;/i></title>
<updated>2024-03-05T10:00:00Z</updated><author><name>Ada</name></author><link rel="self" href="/self"/>
<entry><title>First</title><link href="a.html#part"/><link rel="enclosure" href="/movie"/>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>inner words</p></div></content></entry></feed>"""


def page_of(text: str | bytes) -> Page:
    body = text if isinstance(text, bytes) else text.encode()
    origins = frozenset({"meta:modified"})
    return convert_xml(body, ConversionContext(url="http://a.test/news/feed.xml", attribute_origins=origins))


@pytest.mark.parametrize(
    "text",
    [
        RSS.encode(),
        ATOM.encode(),
        b"\xef\xbb\xbf \n" + RSS.encode(),
        b"<a>plain letters</a>",
        "<?xml version='1.0' encoding='iso-8859-1'?><a>größe</a>".encode("latin-1"),
        "<a>größe</a>".encode("utf-16"),
        b"<?xml version='1.0' encoding='utf-8'?><a>before \x1b(B after</a>",
        ("<a>" + "<b c='größe'>words</b>\n" * 100_000 + "</a>").encode(),
    ],
    ids=["rss", "atom", "mark", "ascii", "latin-1", "utf-16", "escape", "pieces"],
)
def test_document_when_it_is_a_file_then_its_page_is_that_of_the_same_bytes_in_memory(
    tmp_path: Path, text: bytes
) -> None:
    context, large = ConversionContext(url="http://a.test/news/feed.xml"), put_down(text, tmp_path, 0)
    assert isinstance(large, LargeBody)

    assert convert_large_xml(large, context) == convert_xml(text, context)


def test_feed_when_it_is_rss_then_its_items_are_text_and_their_links_are_followed() -> None:
    page = page_of(RSS)

    assert (page.title, page.author, page.language) == ("Harbour & news", "N. N.", "de-de")
    assert page.text == "What happens\nStorm coming\nFalling quicksilver & more\nOne\nTwo"
    assert page.links == (Link("http://a.test/"), Link("http://a.test/storm.html"))
    assert page.description == "What happens"
    assert page.found == (("meta:modified", ("Tue, 05 Mar 2024 10:00:00 +0000",)),)
    assert page.modified == "2024-03-05T10:00:00Z"


def test_feed_when_it_is_atom_then_only_its_alternate_links_are_followed() -> None:
    page = page_of(ATOM)

    assert (page.title, page.author, page.language) == ("A feed", "Ada", "en")
    assert page.text == "First\ninner words"
    assert page.links == (Link("http://a.test/news/a.html"),)


def test_xml_when_it_is_no_feed_then_its_texts_are_lines_and_its_links_are_not_followed() -> None:
    page = page_of('<?xml version="1.0"?><book><title>T</title><p>Ein <b>Wort</b></p><a href="/x"/><!-- no --></book>')

    assert (page.title, page.text, page.links) == ("T", "T\nEin\nWort", ())


@pytest.mark.parametrize("encoding", ["utf-16", "shift_jis", "euc_jp"])
def test_xml_when_it_is_in_any_encoding_then_is_read(encoding: str) -> None:
    page = page_of(f'<?xml version="1.0" encoding="{encoding}"?><a>港の気圧計</a>'.encode(encoding))

    assert page.text == "港の気圧計"


def test_xml_when_it_is_a_sitemap_then_has_no_text() -> None:
    assert page_of("<urlset><url><loc>http://a.test/</loc></url></urlset>").text == ""


@pytest.mark.parametrize("text", ["<a><b></a>", "no markup", "<a>", "<a/><b/>", "", "<a b=1/>"])
def test_xml_when_it_is_not_well_formed_then_fails_with_903(text: str) -> None:
    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_FAILED):
        page_of(text)


def test_r14_xml_when_it_declares_entities_then_none_is_expanded_or_loaded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.setblocking(False)
        where = f"http://127.0.0.1:{canary.getsockname()[1]}/x"
        laughs = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
        declared = f'<!ENTITY e0 "lol">{laughs}<!ENTITY f SYSTEM "file:///etc/hostname"><!ENTITY x SYSTEM "{where}">'
        page = page_of(
            f'<!DOCTYPE a SYSTEM "{where}" [{declared}<!ENTITY % p SYSTEM "{where}">%p;]><a>barometer &e9; &f; &x; end</a>'
        )
        with pytest.raises(BlockingIOError):
            canary.accept()

    assert page.text == "barometer end"


def test_r14_xml_when_an_attribute_is_a_bomb_then_fails_with_904() -> None:
    laughs = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))

    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_LIMIT):
        page_of(f'<!DOCTYPE a [<!ENTITY e0 "lol">{laughs}]><a b="&e9;"/>')


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("<a><!-- ", " --></a>"),
        ('<a b="', '"/>'),
        ("<a><?p ", "?></a>"),
        ('<!DOCTYPE a [<!ENTITY b "', '">]><a/>'),
        ("<", "/>"),
    ],
    ids=["comment", "attribute", "instruction", "entity", "name"],
)
def test_r13_xml_when_one_tag_or_comment_has_many_megabytes_then_fails_with_904(begin: str, end: str) -> None:
    with pytest.raises(ConversionFailed, match="too long", check=lambda error: error.code == Code.CONVERSION_LIMIT):
        page_of(begin + "x" * 9_000_000 + end)


@pytest.mark.parametrize(
    ("begin", "words", "end"),
    [
        ("<a>", "word ", "</a>"),
        ("<a><![CDATA[", "word ", "]]></a>"),
        ("<a>", "<b>word</b>\n", "</a>"),
        (f"<a><!-- {'x' * 3_000_000} -->", "word ", "</a>"),
    ],
    ids=["text", "section", "elements", "after a long comment"],
)
def test_xml_when_it_is_large_then_all_of_its_text_is_read(begin: str, words: str, end: str) -> None:
    page = page_of(begin + words * 1_500_000 + end)

    assert page.text.count("word") == 1_500_000
