from __future__ import annotations

import gzip
import tracemalloc
from typing import Any

import pytest

from searchcrawl import clock
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.items import SitemapUrl
from searchcrawl.kinds.web.sitemaps import formats
from searchcrawl.kinds.web.sitemaps.formats import BATCH_URLS, NotASitemap, SitemapKind, SitemapParser, parse_date_ms
from searchcrawl.kinds.web.sitemaps.scanner import FeedScanner


def read(body: bytes | str, **options: Any) -> list[SitemapUrl]:
    reader = SitemapParser(body.encode() if isinstance(body, str) else body, **options)
    return [listed for batch in reader.batches() for listed in batch]


def read_urls(body: bytes | str, **options: Any) -> list[str]:
    return [listed.url for listed in read(body, **options)]


def urlset(*entries: str, head: str = "") -> str:
    inside = "\n".join(f"<url>{entry}</url>" for entry in entries)
    return f'{head}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{inside}\n</urlset>\n'


def many(count: int) -> bytes:
    return urlset(
        *(f"<loc>http://a.test/page-{n}.html</loc><lastmod>2024-05-13</lastmod>" for n in range(count))
    ).encode()


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (urlset("<loc>http://a.test/1</loc>"), SitemapKind.URLSET, ["http://a.test/1"]),
        (
            "<sitemapindex><sitemap><loc>http://a.test/s.xml.gz</loc></sitemap></sitemapindex>",
            SitemapKind.INDEX,
            ["http://a.test/s.xml.gz"],
        ),
        # Messages of the server before the list are passed over.
        (
            "Warning: mysql_connect() on line 3\n" + urlset("<loc>http://a.test/1</loc>"),
            SitemapKind.URLSET,
            ["http://a.test/1"],
        ),
        ("\n http://a.test/1 \r\n\r\nhttps://a.test/2\rx\n", SitemapKind.TEXT, ["http://a.test/1", "https://a.test/2"]),
        (
            (
                "<rss><channel><link>http://a.test/</link><item><link>http://a.test/1</link></item>"
                "<item><guid>http://a.test/2</guid></item></channel></rss>"
            ),
            SitemapKind.FEED,
            ["http://a.test/1", "http://a.test/2"],
        ),
        (
            (
                "<a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:link href='http://a.test/'/><a:entry>"
                "<a:link rel='self' href='http://a.test/x'/><a:link href='http://a.test/1?a=b&amp;c=d'/></a:entry></a:feed>"
            ),
            SitemapKind.FEED,
            ["http://a.test/1?a=b&c=d"],
        ),
    ],
    ids=["urlset", "index", "messages", "text", "rss", "atom"],
)
def test_body_when_in_each_format_then_its_urls_are_read(body: str, kind: SitemapKind, expected: list[str]) -> None:
    for sent in (body.encode(), gzip.compress(body.encode())):
        reader = SitemapParser(sent)

        listed = [one.url for batch in reader.batches() for one in batch]

        assert (reader.kind, listed, reader.whole) == (kind, expected, True)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("<url><loc>\n http://a.test/1\t</loc></url>", ["http://a.test/1"]),
        ("<url><loc><![CDATA[http://a.test/?x=1&y=2]]></loc></url>", ["http://a.test/?x=1&y=2"]),
        ("<url><loc>http://a.test/?x=1&y=2</loc></url>", ["http://a.test/?x=1&y=2"]),
        ("<url><loc>http://a.test/?x=1&copy=2&#38;z=&#x33;</loc></url>", ["http://a.test/?x=1&copy=2&z=3"]),
        ("<url><loc>http://a.test/&test;</loc></url>", ["http://a.test/&test;"]),
        ("<url><loc>/relative</loc></url><url><loc>http://a.test/2</loc></url>", ["http://a.test/2"]),
        ("<url><loc>//a.test/1</loc></url><url><loc>http://a.test/2</loc></url>", ["http://a.test/2"]),
        ("<url><loc>http://[bad/</loc></url><url><loc>http://a.test/2</loc></url>", ["http://a.test/2"]),
        ("<url><loc>file:///etc/passwd</loc></url><url><loc>javascript:1</loc></url>", []),
        ("<url></url><url><lastmod>2020</lastmod></url><url><loc></loc></url><url><loc>http://a.test/2</loc></url>", ["http://a.test/2"]),
        ("<url>http://a.test/1</url><url><loc>http://a.test/2<url><loc>http://a.test/3", ["http://a.test/1", "http://a.test/2", "http://a.test/3"]),
        ("<URL><LOC>http://a.test/1</LOC></URL>", ["http://a.test/1"]),
        ("<url><loc>http://a.test/1</loc><image:image><image:loc>http://a.test/i.png</image:loc></image:image></url>", ["http://a.test/1"]),
        ("<url><loc>http://a.test/1</loc><xhtml:link rel='alternate' href='http://a.test/de'/></url>", ["http://a.test/1"]),
        ("<url><location>http://a.test/0</location><loc >http://a.test/1</loc ></url>", ["http://a.test/1"]),
        ("<!-- <url><loc>http://a.test/0</loc></url> --><url><loc>http://a.test/<!-- x -->1</loc></url>", ["http://a.test/1"]),
        ("<url><loc>http://a.test/1</loc></url></urlset> garbage & <more", ["http://a.test/1"]),
    ],
)  # fmt: skip
def test_entries_when_faulty_then_only_the_broken_ones_are_left_out(entries: str, expected: list[str]) -> None:
    found = read_urls(f"<urlset>{entries}</urlset>" if "</urlset>" not in entries else f"<urlset>{entries}")

    assert found == expected


def test_entries_when_fed_byte_by_byte_then_the_same_is_read() -> None:
    body = urlset(
        "<loc><![CDATA[http://a.test/1?ü]]></loc><lastmod>2020-01-01T00:00:00Z</lastmod>",
        "<!-- <loc>http://a.test/0</loc> --><loc>http://a.test/2</loc>",
        head='<?xml version="1.0"?><!DOCTYPE urlset [ <!ENTITY a "<loc>http://a.test/e</loc>"> ]>',
    )
    coded = zlib_in_pieces(body.encode())

    found = read(coded)

    assert found == [SitemapUrl("http://a.test/1?%C3%BC", 1_577_836_800_000), SitemapUrl("http://a.test/2")]


def zlib_in_pieces(body: bytes) -> bytes:
    """One gzip member a byte: the reader gets it byte by byte."""
    return b"".join(gzip.compress(body[n : n + 1]) for n in range(len(body)))


@pytest.mark.parametrize(
    "coded",
    [
        "<?xml version='1.0' encoding='utf-8'?>{}".encode("utf-8-sig"),
        "<?xml version='1.0' encoding='utf-16'?>{}".encode("utf-16"),
        "<?xml version='1.0' encoding='utf-16'?>{}".encode("utf-16-be"),
        "{}".encode("utf-16-le"),
        "<?xml version='1.0' encoding='ISO-8859-1'?>{}".encode("latin-1"),
        # A label that no file may choose, and one that is a lie.
        b"<?xml version='1.0' encoding='rot13'?>{}",
        b"<?xml version='1.0' encoding='utf-16'?>{}",
    ],
    ids=["utf-8 mark", "utf-16 mark", "utf-16-be", "utf-16-le", "latin-1", "rot13", "not utf-16"],
)
def test_body_when_in_another_encoding_then_it_is_read(coded: bytes) -> None:
    encoding = {b"\xff\xfe": "utf-16-le", b"\0<": "utf-16-be", b"{\0": "utf-16-le"}.get(coded[:2], "latin-1")
    entry = urlset("<loc>http://a.test/gr%FCn/\xe4</loc>" if b"8859" in coded else "<loc>http://a.test/1</loc>")
    body = coded.replace("{}".encode(encoding), entry.encode(encoding))

    found = read_urls(body)

    assert found == (["http://a.test/gr%FCn/%C3%A4"] if b"8859" in coded else ["http://a.test/1"])


def test_text_when_the_header_names_its_charset_then_it_is_read_in_it() -> None:
    found = read_urls("http://a.test/\xe4".encode("latin-1"), charset="iso-8859-1")

    assert found == ["http://a.test/%C3%A4"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  ",
        b"<!DOCTYPE html><html><body><a href='http://a.test/'>http://a.test/</a></body></html>",
        b"Not found",
        b'{"url": "x"}',
        b"\x89PNG\r\n\x1a\n\0\0\0",
        b"%PDF-1.4 <<",
        gzip.compress(b"", mtime=0),
    ],
)
def test_body_when_of_no_format_then_it_is_refused(body: bytes) -> None:
    with pytest.raises(NotASitemap):
        read(body)


def test_gzip_when_cut_then_what_came_before_is_kept_and_it_is_not_whole() -> None:
    body = gzip.compress(many(5000))
    reader = SitemapParser(body[: len(body) // 2])

    count = sum(len(batch) for batch in reader.batches())

    assert 1000 < count < 5000
    assert (reader.whole, reader.note) == (False, "cut gzip")


def test_xml_when_cut_then_it_is_not_whole_and_the_cut_entry_is_left_out() -> None:
    reader = SitemapParser(many(3).partition(b"page-2.html")[0])

    found = [one.url for batch in reader.batches() for one in batch]

    assert (found, reader.whole) == (["http://a.test/page-0.html", "http://a.test/page-1.html"], False)


def test_gzip_when_broken_at_once_then_it_is_an_error() -> None:
    with pytest.raises(BrokenCoding):
        read(b"\x1f\x8b\x08\x00nothing of this is gzip")


def test_gzipped_file_when_sent_with_a_coding_of_its_own_then_both_are_undone() -> None:
    body = gzip.compress(gzip.compress(many(3)))

    assert len(read(body, codings=["gzip"])) == 3
    assert len(read(gzip.compress(many(3)), codings=["gzip"])) == 3


def test_urls_when_more_than_the_protocol_allows_then_the_rest_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_URLS", 20)
    reader = SitemapParser(many(30))

    count = sum(len(batch) for batch in reader.batches())

    assert (count, reader.note, reader.whole) == (20, "more than 20 URLs", False)


def test_bytes_when_more_than_the_protocol_allows_then_the_rest_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_BYTES", 100_000)
    reader = SitemapParser(gzip.compress(many(5000)))

    count = sum(len(batch) for batch in reader.batches())

    assert 1000 < count < 2000
    assert reader.note == "more than 100000 bytes"


def test_batches_when_read_then_each_has_a_bounded_size() -> None:
    sizes = [len(batch) for batch in SitemapParser(many(2500)).batches()]

    assert sizes == [BATCH_URLS, BATCH_URLS, 500]


def test_memory_when_four_times_as_many_urls_are_read_then_it_is_the_same() -> None:
    def peak(count: int) -> int:
        body = gzip.compress(many(count))
        tracemalloc.start()
        for _ in SitemapParser(body).batches():
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    small, large = peak(5000), peak(20_000)

    assert large < small + 900_000


def test_r14_entities_when_a_billion_then_none_is_expanded() -> None:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    doctype = f'<!DOCTYPE urlset [<!ENTITY l0 "ha">{entities}<!ENTITY x SYSTEM "http://127.0.0.1:9/x">]>'
    body = urlset("<loc>http://a.test/&l9;</loc>", "<loc>&x;</loc>", "<loc>http://a.test/2</loc>", head=doctype)

    found = read_urls(body)

    assert found == ["http://a.test/&l9;", "http://a.test/2"]


@pytest.mark.parametrize(
    "body",
    [
        b"<urlset>" + b"<url" * 300_000,
        b"<urlset>" + b"<loc>" * 300_000,
        b"<urlset>" + b"<loc><![CDATA[" * 100_000,
        b"<urlset>" + b"<" * 1_000_000,
        b"<urlset><url><loc>http://a.test/" + b"a" * 5_000_000,
        b"<urlset><!--" + b"-" * 5_000_000,
        b"<urlset><!DOCTYPE x [" + b"] " * 2_000_000,
        b"http://a.test/" + b"a" * 5_000_000,
    ],
    ids=["tags", "locs", "cdata", "brackets", "long loc", "comment", "doctype", "line"],
)
def test_text_when_made_to_be_slow_or_large_then_little_of_it_is_kept(body: bytes) -> None:
    tracemalloc.start()
    reader = SitemapParser(body)

    count = sum(len(batch) for batch in reader.batches())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert count <= 1
    assert peak < 4_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-13T08:30:15Z", "2024-05-13T08:30:15.000Z"),
        ("2024-05-13T08:30:15.123456+02:00", "2024-05-13T06:30:15.123Z"),
        ("2024-05-13T08:30-0130", "2024-05-13T10:00:00.000Z"),
        ("2024-05-13 08:30:15", "2024-05-13T08:30:15.000Z"),
        ("2024-05-13T24:00:00Z", "2024-05-14T00:00:00.000Z"),
        ("2024-5-3", "2024-05-03T23:59:59.999Z"),
        ("2024-02", "2024-02-29T23:59:59.999Z"),
        ("2024", "2024-12-31T23:59:59.999Z"),
        ("Mon, 13 May 2024 08:30:15 GMT", "2024-05-13T08:30:15.000Z"),
        ("13 May 24 10:30:15 +0200", "2024-05-13T08:30:15.000Z"),
        ("Mon, 13 May 2024 08:30:15", "2024-05-13T08:30:15.000Z"),
        (" 2024-05-13\n", "2024-05-13T23:59:59.999Z"),
        # Nobody can read these.
        *((text, None) for text in ("", "yesterday", "2024-13-01", "2024-02-30", "2024-05-13T25:00Z", "0000-00-00")),
        *((text, None) for text in ("9" * 5000, "13.05.2024", "٢٠٢٤")),
    ],
)
def test_date_when_in_a_known_form_then_it_is_a_moment(text: str, expected: str | None) -> None:
    assert clock.iso(parse_date_ms(text)) == expected


FEED = "http://a.test/blog/feed.xml"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<feed><entry><link href='1'/></entry></feed>", ["http://a.test/blog/1"]),
        (
            "<feed xml:base='/x/'><entry xml:base='y/'><link xml:base='z/' href='1?a&amp;b'/></entry></feed>",
            ["http://a.test/x/y/z/1?a&b"],
        ),
        (
            "<feed xml:base='/x/'><entry xml:base='y/'><link href='/1'/></entry><entry><link href='2'/></entry></feed>",
            ["http://a.test/1", "http://a.test/x/2"],
        ),
        ("<feed><entry><link title='a > b' rel=\"alternate\" href='/1'/></entry></feed>", ["http://a.test/1"]),
        ("<feed><entry><link title=' href=\"/0\"' href='/1'/></entry></feed>", ["http://a.test/1"]),
        (
            "<feed><entry><link rel='http://www.iana.org/assignments/relation/alternate' href='/1'/></entry></feed>",
            ["http://a.test/1"],
        ),
        ("<feed><entry><link rel='http://www.iana.org/assignments/relation/self' href='/1'/></entry></feed>", []),
        (
            "<feed><entry><link href='http://['/><link href='/2'/></entry><entry><link href='/3'/></feed>",
            ["http://a.test/3"],
        ),
        (
            "<rss><channel><item><link>/1</link><guid isPermaLink='false'>id</guid></item></channel></rss>",
            ["http://a.test/1"],
        ),
        ("<rss><channel><item><guid isPermaLink='false'>id</guid></item></channel></rss>", []),
        ("<rss><channel><item><link>1</link><guid>http://a.test/g</guid></item></channel></rss>", ["http://a.test/g"]),
        (
            urlset("<loc>/1</loc>", "<loc>//b.test/2</loc>", "<loc>www.a.test/3</loc>", "<loc>/not a url</loc>"),
            [],
        ),
        (
            urlset("<loc a='x>y'>http://a.test/1</loc>", '<loc a="x>http://a.test/2</loc>'),
            ["http://a.test/1", "http://a.test/2"],
        ),
    ],
)
def test_body_when_references_are_relative_or_tags_odd_then_they_are_read(body: str, expected: list[str]) -> None:
    assert read_urls(body, url=FEED) == expected


@pytest.mark.parametrize("cut", range(20, 75))
def test_feed_when_a_tag_is_cut_in_a_value_then_it_is_whole_in_the_next_piece(cut: int) -> None:
    body = "<feed><entry><title/><link title='a > b' href='http://a.test/1'/></entry></feed>"
    scanner = FeedScanner("feed", None, "")

    found = [*scanner.feed(body[:cut]), *scanner.feed(body[cut:]), *scanner.finish()]

    assert [entry.url for entry in found] == ["http://a.test/1"]
