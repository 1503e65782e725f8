from __future__ import annotations

import gzip
import threading

import pytest

from searchcrawl.http.side_requests import CrawlEnds
from searchcrawl.items import ListedUrl, SitemapPart
from searchcrawl.sitemaps.fetching import PARTS_AHEAD, PartSender, SitemapBody, Validators, parse
from searchcrawl.sitemaps.queue import WantedSitemap

URL = "http://a.test/sitemap.xml"
DATED = "<url><loc>{}</loc><lastmod>1970-01-01T00:00:01Z</lastmod></url>"


def urlset(*urls: str) -> bytes:
    return f"<urlset>{''.join(DATED.format(url) for url in urls)}</urlset>".encode()


def parts_of(body: bytes, **values: object) -> list[SitemapPart]:
    sent: list[SitemapPart] = []
    parse(WantedSitemap(url=URL, **values), SitemapBody(body=body, validators=Validators(etag='"1"')), sent.append)  # type: ignore[arg-type]  # as above
    return sent


def test_parse_when_urls_are_listed_then_they_come_in_parts_and_the_end_last() -> None:
    *parts, last = parts_of(urlset(*(f"http://a.test/{n}.html" for n in range(1500))))

    assert [len(part.urls) for part in parts] == [1000, 500]
    assert {part.end for part in parts} == {None}
    assert last.end is not None
    assert (last.end.code, last.end.whole, last.end.etag) == (200, True, '"1"')


def test_parse_when_an_index_then_its_children_are_named() -> None:
    body = b"<sitemapindex><sitemap><loc>http://a.test/child.xml</loc></sitemap></sitemapindex>"
    sent: list[SitemapPart] = []

    parsed = parse(WantedSitemap(url=URL), SitemapBody(body=body), sent.append)

    assert parsed.children == sent[0].children == ("http://a.test/child.xml",)
    assert sent[0].urls == ()


def test_parse_when_it_does_not_speak_for_a_host_then_its_date_is_left_out() -> None:
    body = urlset("http://a.test/1", "http://b.test/2", "https://a.test/3")

    (part, _), (all_of_it, _) = parts_of(body, origins=frozenset({"http://a.test"})), parts_of(body)

    assert part.urls == (
        ListedUrl("http://a.test/1", 1000),
        ListedUrl("http://b.test/2"),
        ListedUrl("https://a.test/3"),
    )
    assert {one.lastmod_ms for one in all_of_it.urls} == {1000}


@pytest.mark.parametrize(
    ("body", "code", "error"),
    [(b"<html></html>", 903, "no sitemap: '<html></html>'"), (b"\x1f\x8b\x08\x00broken", 958, "gzip")],
)
def test_parse_when_it_is_no_sitemap_or_broken_then_the_end_says_why(body: bytes, code: int, error: str) -> None:
    (only,) = parts_of(body)

    assert only.end is not None
    assert (only.end.code, only.end.whole) == (code, False)
    assert error in (only.end.error or "")


def test_parse_when_it_was_cut_then_its_validators_are_forgotten() -> None:
    body = gzip.compress(urlset(*(f"http://a.test/{n}.html" for n in range(5000))))

    *parts, last = parts_of(body[:-100])

    assert parts
    assert last.end is not None
    assert (last.end.code, last.end.whole, last.end.etag, last.end.error) == (200, False, None, "cut gzip")


def test_send_when_too_many_parts_are_on_their_way_then_it_waits_for_the_writer() -> None:
    sent: list[SitemapPart] = []
    sender = PartSender(lambda part: sent.append(part) or True)
    part = SitemapPart(url=URL)
    for _ in range(PARTS_AHEAD):
        sender.send(part)

    waiting = threading.Thread(target=sender.send, args=(part,))
    waiting.start()
    before = len(sent)
    sender.on_committed(part)
    waiting.join(30)

    assert (before, len(sent)) == (PARTS_AHEAD, PARTS_AHEAD + 1)


def test_send_when_the_run_ends_then_nobody_waits_for_ever() -> None:
    sender = PartSender(lambda part: True)
    part = SitemapPart(url=URL)
    for _ in range(PARTS_AHEAD):
        sender.send(part)
    threading.Timer(0.1, sender.stop).start()

    with pytest.raises(CrawlEnds):
        sender.send(part)
