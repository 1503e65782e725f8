from __future__ import annotations

import asyncio
import gzip
import threading

import pytest
from scrapy import Request
from scrapy.http import Response

from searchcrawl.codes import Code
from searchcrawl.commit.part_sender import ENTRIES_AHEAD, PartSender
from searchcrawl.exceptions import CrawlEnds
from searchcrawl.http.side_requests import SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import BodyTooLarge
from searchcrawl.items import SitemapPart, SitemapUrl
from searchcrawl.kinds.web.sitemaps.fetching import (
    BodyRoom,
    SitemapBody,
    Validators,
    fetch_sitemap,
    parse,
)
from searchcrawl.kinds.web.sitemaps.queue import WantedSitemap
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.boundary import Boundary
from tests.factories import ANY_TARGET

URL = "http://a.test/sitemap.xml"
NO_VALIDATORS = Validators()
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
        SitemapUrl("http://a.test/1", 1000),
        SitemapUrl("http://b.test/2"),
        SitemapUrl("https://a.test/3"),
    )
    assert {one.lastmod_ms for one in all_of_it.urls} == {1000}


@pytest.mark.parametrize(("origin", "etag"), [("http://a.test", '"1"'), ("http://b.test", None)])
def test_parse_when_foreign_dates_are_left_out_then_only_its_own_origin_keeps_its_validators(
    origin: str, etag: str | None
) -> None:
    *_, last = parts_of(urlset("http://a.test/1", "http://b.test/2"), origins=frozenset({origin}))

    assert last.end is not None
    assert last.end.etag == etag


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


def count(part: SitemapPart) -> int:
    return len(part.urls) + len(part.children)


def test_send_when_too_many_parts_are_on_their_way_then_it_waits_for_the_writer() -> None:
    sent: list[SitemapPart] = []
    sender = PartSender(lambda part: sent.append(part) or True, count)
    part = SitemapPart(url=URL, children=("http://a.test/1.xml",) * (ENTRIES_AHEAD // 4 - 1))
    for _ in range(4):
        sender.send(part)

    waiting = threading.Thread(target=sender.send, args=(part,))
    waiting.start()
    before = len(sent)
    sender.on_committed(part)
    waiting.join(30)

    assert (before, len(sent)) == (4, 5)


def test_send_when_the_run_ends_then_nobody_waits_for_ever() -> None:
    sender = PartSender(lambda part: True, count)
    part = SitemapPart(url=URL, children=("http://a.test/1.xml",) * ENTRIES_AHEAD)
    sender.send(part)
    threading.Timer(0.1, sender.stop).start()

    with pytest.raises(CrawlEnds):
        sender.send(part)


def test_send_when_nothing_is_listed_then_many_may_be_on_their_way() -> None:
    sent: list[SitemapPart] = []
    sender = PartSender(lambda part: sent.append(part) or True, count)

    for _ in range(1_000):
        sender.send(SitemapPart(url=URL))

    assert len(sent) == 1_000


def test_room_when_it_is_full_then_only_one_that_is_alone_may_have_more() -> None:
    room = BodyRoom(100)

    with room.hold() as one:
        one.count(80)
        with room.hold() as other, pytest.raises(BodyTooLarge):
            other.count(30)
        one.count(80)
        was_low = room.is_low

    assert (one.refused, other.refused) == (False, True)
    assert (was_low, room.is_low) == (True, False)


def fetched(
    answers: dict[str, tuple[int, dict[str, str]]],
    validators: Validators = NO_VALIDATORS,
    *,
    forbidden: str = "",
) -> SitemapBody | None:
    async def check(url: str) -> None:
        if url == forbidden:
            raise SideRequestFailed("robots.txt: /", code=Code.ROBOTS)

    async def download(request: Request) -> Response:
        status, headers = answers[request.url]
        return Response(request.url, status=status, headers=headers, body=b"<urlset/>", request=request)

    side = SideRequests(download=download, rate_limiter=RateLimiter(), targets=ANY_TARGET)
    boundary = Boundary(include_hosts=["a.test"])
    return asyncio.run(fetch_sitemap(URL, validators, side=side, boundary=boundary, check=check))


def test_sitemap_when_fetched_then_its_headers_say_how_to_read_it_and_whether_it_changed() -> None:
    headers = {"Content-Type": "text/xml; charset=utf-8", "ETag": '"1"', "Content-Encoding": "gzip"}

    body = fetched({URL: (200, headers)})

    assert body == SitemapBody(body=b"<urlset/>", codings=("gzip",), charset="utf-8", validators=Validators(etag='"1"'))


def test_sitemap_when_redirected_then_its_validators_are_not_those_of_the_url() -> None:
    body = fetched({URL: (301, {"Location": "/other.xml"}), "http://a.test/other.xml": (200, {"ETag": '"1"'})})

    assert body is not None
    assert body.validators == Validators()


def test_sitemap_when_not_modified_since_its_validators_then_there_is_none() -> None:
    assert fetched({URL: (304, {})}, Validators(etag='"1"')) is None


@pytest.mark.parametrize(
    ("answer", "validators", "code", "transient"),
    [
        ((304, {}), Validators(), 304, True),
        ((304, {}), Validators(etag='"é"'), 304, True),
        ((404, {}), Validators(), 404, False),
        ((503, {"Retry-After": "7"}), Validators(), 503, True),
        ((302, {}), Validators(), Code.NO_LOCATION, False),
        ((302, {"Location": "http://b.test/"}), Validators(), Code.OUTSIDE_BOUNDARY, False),
    ],
)
def test_sitemap_when_it_is_not_sent_then_failure_has_the_code_of_a_page(
    answer: tuple[int, dict[str, str]], validators: Validators, code: int, transient: bool
) -> None:
    with pytest.raises(SideRequestFailed) as failed:
        fetched({URL: answer}, validators)

    assert (failed.value.code, failed.value.transient) == (code, transient)
    assert failed.value.retry_after_seconds == (7.0 if answer[0] == 503 else None)


def test_sitemap_when_robots_txt_forbids_the_target_of_its_redirect_then_that_is_not_requested() -> None:
    target = "http://a.test/private.xml"

    with pytest.raises(SideRequestFailed) as failed:
        fetched({URL: (302, {"Location": target})}, forbidden=target)

    assert failed.value.code == Code.ROBOTS
