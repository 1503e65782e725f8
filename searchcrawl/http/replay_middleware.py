"""Answers the requests of a replay from the cache, so that none is sent (D9, L11)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

import orjson
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.headers import Headers

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import Place, StoredPage
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.http.visit_end import VisitEnded, find_claim, find_redirects
from searchcrawl.items import Hop, Outcome
from searchcrawl.stages import stages_of
from searchcrawl.store.urls.replay_table import StoredAnswer

logger = logging.getLogger(__name__)

_PAGE: Final = 200


class _Expected(NamedTuple):
    place: Place
    hops: tuple[Hop, ...]


class ReplayMiddleware:
    """Gives each claimed row the answers of its last good visit: its redirects, one after the other, then the page.

    So the stages after the download decide as if the page had come just now. A row whose record cannot be read is
    released as it is, and noted in ``given_up``: a run visits it. Any thread may call ``expect``.
    """

    def __init__(self, cache: DocumentCache) -> None:
        self._cache = cache
        self._expected: dict[int, _Expected] = {}
        self.given_up: set[int] = set()
        #: how many pages were read
        self.pages = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ReplayMiddleware:
        return stages_of(crawler).get(cls)

    def expect(self, answers: Iterable[StoredAnswer]) -> None:
        """Notes where the answers of rows are that will be requested."""
        for answer in answers:
            place = Place(
                segment=answer.segment,
                offset=answer.offset,
                response_bytes=answer.response_bytes,
                fields_bytes=answer.fields_bytes,
            )
            hops = tuple(Hop(hop["url"], hop["code"]) for hop in orjson.loads(answer.redirects or "[]"))
            self._expected[answer.url_id] = _Expected(place, hops)

    async def process_request(self, request: Request) -> Response:
        claim = find_claim(request)
        if claim is None:
            raise IgnoreRequest("a request of a user's own code: nothing is sent while pages are processed again")
        expected = self._expected[claim.url_id]
        try:
            page = await asyncio.to_thread(self._cache.read_page, expected.place, url=claim.url)
            answer = self._answer(request, page, expected.hops)
        except DamagedRecord as error:
            logger.error("%s; %s is fetched again", error, claim.url)
            self.given_up.add(claim.url_id)
            del self._expected[claim.url_id]
            raise VisitEnded(Outcome(claim=claim, code=claim.code, released=True)) from None
        if answer.status == _PAGE:
            self.pages += 1
        return answer

    def _answer(self, request: Request, page: StoredPage, hops: tuple[Hop, ...]) -> Response:
        taken = len(find_redirects(request))
        if hops and page.base_url is None:
            raise DamagedRecord(f"an earlier release stored {page.url} without the URL that it led to")
        if taken < len(hops):
            target = hops[taken + 1].url if taken + 1 < len(hops) else page.base_url
            location = {b"Location": (target or page.url).encode()}
            return Response(request.url, status=hops[taken].code, headers=location, request=request)
        request.meta["fetched_at"] = page.fetched_at
        headers = Headers()
        for name, value in page.headers:
            headers.appendlist(name, value)
        return Response(request.url, status=page.status, headers=headers, body=page.body, request=request)
