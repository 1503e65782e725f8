"""Answers the requests of a replay from the cache, so that none is sent (D9, L11)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import orjson
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.headers import Headers
from scrapy.utils.misc import load_object

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import StoredPage
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.http.large_response import build_response
from searchcrawl.http.visit_end import VisitEnded, find_claim, find_redirects
from searchcrawl.items import CachedAnswer, Claim, Fallback, FetchedAnswer, Hop, Outcome, Place
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store.urls.review_table import StoredAnswer
from searchcrawl.user_code import is_ours

logger = logging.getLogger(__name__)

_PAGE: Final = 200
_TEMPORARY: Final = 302
#: So many pages are read for a request, or so many bytes of them, and one page.
_GROUP_PAGES: Final = 32
_GROUP_BYTES: Final = 1 << 20
_COMPONENTS: Final = ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES")
#: The key of ``Request.meta`` for ``find_further``.
_FURTHER: Final = "further_answers"


class _Expected(NamedTuple):
    place: Place
    hops: tuple[Hop, ...]
    redirected: bool
    body_bytes: int

    def find_hops(self, claim: Claim) -> tuple[Hop, ...]:
        """The redirects that led to the page; one to the URL that gave it where no more is known of them."""
        return self.hops or ((Hop(claim.url, _TEMPORARY),) if self.redirected else ())


class Claims(NamedTuple):
    """How a replay gets further claims: the next one with its host if there is one; and how it gives one back."""

    take: Callable[[], tuple[str, Claim] | None]
    put_back: Callable[[Claim, str], None]


class ReplayMiddleware:
    """Gives each claimed row the answers of its last good visit: its redirects, one after the other, then the page.

    So the stages after the download decide as if the page had come just now. A row whose record cannot be read is
    released as it is, and noted in ``given_up``: a run visits it. Any thread may call ``expect``.

    After ``begin_groups`` an answer brings those of further claims along (``find_further``): a request of its own for each
    would take longer than what is done with its page.
    """

    def __init__(self, cache: DocumentCache) -> None:
        self._cache = cache
        self._claims: Claims | None = None
        self._alone = False
        self._expected: dict[int, _Expected] = {}
        self.given_up: set[int] = set()
        #: how many pages were read
        self.pages = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ReplayMiddleware:
        middleware = stages_of(crawler).get(cls)
        # Those of a user's own expect a request and an item for each page. What they made of its text is in its record:
        # they get the page as it came.
        middleware._alone = stages_of(crawler).get(Run).source.has_document_plugins or any(
            not is_ours(load_object(component).__module__)
            for name in _COMPONENTS
            for component, place in crawler.settings.getdict(name).items()
            if place is not None
        )
        return middleware

    def begin_groups(self, claims: Claims) -> None:
        """Has the pages of several claims answered at once; the edit concerns neither text nor links of a page."""
        self._claims = claims

    def expect(self, answers: Iterable[StoredAnswer]) -> None:
        """Notes where the answers of rows are that will be requested."""
        for answer in answers:
            hops = tuple(Hop(hop["url"], hop["code"]) for hop in orjson.loads(answer.redirects or "[]"))
            self._expected[answer.url_id] = _Expected(answer.place, hops, answer.redirected, answer.content_length)

    async def process_request(self, request: Request) -> Response:
        claim = find_claim(request)
        if claim is None:
            raise IgnoreRequest("a request of a user's own code: nothing is sent while pages are processed again")
        further = self._take_further(claim)
        try:
            # In the reactor, which has nothing else to do: threads that read would take turns with it all the time.
            first, *others = [self._read(each) for each in (claim, *(other for _, other in further))]
            answer = self._answer(request, first, self._expected[claim.url_id].find_hops(claim))
        except Exception as error:
            if self._claims is not None:
                for host, other in reversed(further):
                    self._claims.put_back(other, host)
            if isinstance(error, DamagedRecord):
                raise VisitEnded(self._give_up(claim, error)) from None
            raise
        request.meta[_FURTHER] = [self._end(other, page) for (_, other), page in zip(further, others, strict=True)]
        return answer

    def _take_further(self, claim: Claim) -> list[tuple[str, Claim]]:
        """Claims whose pages are read together with that of ``claim``."""
        further: list[tuple[str, Claim]] = []
        expected, claims = self._expected[claim.url_id], self._claims
        if claims is None or self._alone or expected.find_hops(claim):
            return further
        size = expected.body_bytes
        while size < _GROUP_BYTES and len(further) < _GROUP_PAGES - 1 and (found := claims.take()) is not None:
            host, other = found
            if self._expected[other.url_id].find_hops(other):
                claims.put_back(other, host)
                break
            further.append(found)
            size += self._expected[other.url_id].body_bytes
        return further

    def _read(self, claim: Claim) -> StoredPage | DamagedRecord:
        try:
            return self._cache.read_page(self._expected[claim.url_id].place, url=claim.url)
        except DamagedRecord as error:
            return error

    def _end(self, claim: Claim, page: StoredPage | DamagedRecord) -> FetchedAnswer | Outcome:
        try:
            page = _check(page, ())
        except DamagedRecord as error:
            return self._give_up(claim, error)
        self._note_read(claim, page)
        cached = self._build_cached(page)
        # The cache has a page as it was rendered.
        return FetchedAnswer(
            *(claim, claim.url, page.headers, page.body, page.fetched_at),
            cached=cached,
            rendered=claim.rendered,
            parts=claim.parts,
            lacks=claim.lacks,
        )

    def _give_up(self, claim: Claim, error: DamagedRecord) -> Outcome:
        logger.error("%s; %s is fetched again", error, claim.url)
        self.given_up.add(claim.url_id)
        del self._expected[claim.url_id]
        return Outcome(claim=claim, code=claim.code, released=True)

    def _answer(self, request: Request, page: StoredPage | DamagedRecord, hops: tuple[Hop, ...]) -> Response:
        """The answer of a row; raises DamagedRecord."""
        page = _check(page, hops)
        taken = len(find_redirects(request))
        if taken < len(hops):
            target = hops[taken + 1].url if taken + 1 < len(hops) else page.base_url
            location = {b"Location": (target or page.url).encode()}
            return Response(request.url, status=hops[taken].code, headers=location, request=request)
        self._note_read(request.meta["claim"], page)
        request.meta["fetched_at"] = page.fetched_at
        request.meta["cached"] = self._build_cached(page)
        claim = request.meta["claim"]
        request.meta["rendered"] = claim.rendered
        request.meta["wholeness"] = claim.parts, claim.lacks
        headers = Headers()
        for name, value in page.headers:
            headers.appendlist(name, value)
        return build_response(
            Response, request.url, status=page.status, headers=headers, body=page.body, request=request
        )

    def _note_read(self, claim: Claim, page: StoredPage) -> None:
        self.pages += page.status == _PAGE
        if not self._alone:
            # A component of a user's own may ask once more. There may be millions.
            del self._expected[claim.url_id]

    def _build_cached(self, page: StoredPage) -> CachedAnswer | None:
        text = page.fields.get("content")
        if self._claims is None or self._alone or not isinstance(text, str):
            return None
        whole_digest = page.fields.get("whole_digest", "")
        headings, naming = tuple(page.fields.get("headings", ())), page.fields.get("naming", 0)
        fallback = Fallback(*noted) if (noted := page.fields.get("fallback")) else None
        return CachedAnswer(
            page.body, page.headers, text, page.record, page.record_id, whole_digest, headings, naming, fallback
        )


def _check(page: StoredPage | DamagedRecord, hops: tuple[Hop, ...]) -> StoredPage:
    """A page that was read; raises DamagedRecord where it cannot be replayed after these redirects."""
    if isinstance(page, DamagedRecord):
        raise page
    if hops and page.base_url is None:
        raise DamagedRecord(f"an earlier release stored {page.url} without the URL that it led to")
    if page.base_url is not None and not hops:
        raise DamagedRecord(f"an earlier release stored {page.url} without the redirects to {page.base_url}")
    return page


def find_further(response: Response) -> Sequence[FetchedAnswer | Outcome]:
    """The answers of further claims that came with one, and the ends of those whose record cannot be read."""
    further: Sequence[FetchedAnswer | Outcome] = response.meta.get(_FURTHER, ())
    return further
