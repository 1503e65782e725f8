"""What a member has of Scrapy in the place of the claims, the writer and the end of a run.

Its scheduler hands on the visits that the process of the run sends, its last pipeline hands their ends back, and its
extension says what it counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final, cast

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler

from searchcrawl.cache.segment import encode_page
from searchcrawl.commit.document_rows import build_record
from searchcrawl.engine.visit_engine import use_visit_engine, wake_engine
from searchcrawl.frontier.scheduler import VisitScheduler, build_request
from searchcrawl.http.given_up_hosts import GivenUpHosts
from searchcrawl.http.turn_middleware import TURN_ENDS
from searchcrawl.http.visit_log_middleware import VisitLog
from searchcrawl.items import Claim, Document, Outcome, copy_with
from searchcrawl.members.link import MemberLink
from searchcrawl.members.messages import Closed, Ended, Finish, Forget, GiveUp, GoOn, Moved, Ready, Visit
from searchcrawl.run import Run
from searchcrawl.stages import stages_of


class HandOver:
    """Knows which visits a member has under way, and hands on how each ended; ``log`` gets a line of it."""

    def __init__(self, link: MemberLink, log: VisitLog | None) -> None:
        self._link = link
        self._log = log
        #: the rows whose visits have begun and not ended
        self.under_way: set[int] = set()

    def end(self, item: Document | Outcome) -> None:
        """Hands on the end of a visit."""
        self._link.send(Ended.of(_pack(item) if isinstance(item, Document) else item))
        # Where that failed, the visit ends with the failure.
        self.under_way.discard(item.claim.url_id)
        if self._log is not None:
            self._log.write(item)


class HandOverPipeline:
    """Takes the place of the writer; other items pass unchanged. While the process of the run is behind, it waits."""

    def __init__(self, crawler: Crawler, run: Run, link: MemberLink, hand_over: HandOver) -> None:
        self._crawler = crawler
        self._run = run
        self._link = link
        self._hand_over = hand_over

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HandOverPipeline:
        stages = stages_of(crawler)
        return cls(crawler, stages.get(Run), stages.get(MemberLink), stages.get(HandOver))

    async def open_spider(self) -> None:
        await self._link.open()

    async def process_item(self, item: object) -> object:
        if isinstance(item, Document | Outcome):
            self._hand_over.end(item)
            if self._link.channel.is_full:
                await self._link.channel.wait_for_room()
        return item

    async def close_spider(self) -> None:
        rewriting, stats = self._run.rewriting, self._crawler.stats
        for name, count in rewriting.plugin_errors.items():
            stats.inc_value(f"searchcrawl/rewriter_errors/{name}", count)
        rewriting.close()


def _pack(document: Document) -> Document:
    """The document with the records for the cache in place of its body, which are made here: that takes a while.

    A large body goes as it is, for what is sent is its descriptor; the writer makes its record in pieces.
    """
    if document.page is None:
        # The bytes are as before, or no rule asks for them: the cache gets nothing.
        return copy_with(document, body=b"", sent_bytes=len(document.body))
    claim = document.claim
    is_kept = document.code != 200 or (claim.has_document and claim.fields_digest == document.fields_digest)
    if is_kept or not isinstance(document.body, bytes):
        return document
    # Only a large body makes a record in pieces.
    records = cast("tuple[bytes, bytes]", encode_page(build_record(document)))
    return copy_with(document, records=records, body=b"", sent_bytes=len(document.body))


class MemberScheduler(VisitScheduler):
    """Visits what it is told to; the process of the run decides when each may go.

    A redirected visit waits here, and is announced there: it goes on when its new host allows it.
    """

    def __init__(self, crawler: Crawler, link: MemberLink, hand_over: HandOver, given_up: GivenUpHosts) -> None:
        super().__init__(crawler)
        self._given_up = given_up
        self._link = link
        self._hand_over = hand_over
        self._redirected: dict[int, Request] = {}
        self._visits: deque[Request] = deque()
        self._started = self._finished = False
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MemberScheduler:
        stages = stages_of(crawler)
        return cls(crawler, stages.get(MemberLink), stages.get(HandOver), stages.get(GivenUpHosts)).listen()

    def open(self, spider: Spider) -> None:
        self._spider = spider
        use_visit_engine(self._crawler)
        self._link.listener = self._take

    def has_pending_requests(self) -> bool:
        return not self._finished

    def next_request(self) -> Request | None:
        if not self._started:
            self._started = True
            self._link.send(Ready())
            if self._finished:
                self._finish()
        waiting = self._visits or self._others
        return waiting.popleft() if waiting else None

    def _take(self, message: Any) -> None:
        if isinstance(message, Visit):
            spider: Any = self._spider
            self._hand_over.under_way.add(message.claim.url_id)
            request = build_request(
                message.claim, message.host, callback=spider.handle_response, errback=spider.handle_failure
            )
            self._begin(request, message.before)
        elif isinstance(message, GoOn):
            self._begin(self._redirected.pop(message.url_id), message.before)
        elif isinstance(message, Forget):
            self._redirected.pop(message.url_id, None)
            self._hand_over.under_way.discard(message.url_id)
        elif isinstance(message, GiveUp):
            self._given_up.give_up(message.codes)
        elif isinstance(message, Finish):
            self._finished = True
            # A spider that is being opened cannot be closed.
            if self._started:
                self._finish()

    def _finish(self) -> None:
        if self._closing is None:
            engine: Any = self._crawler.engine
            self._closing = asyncio.ensure_future(engine.close_spider_async(reason="finished"))

    def _begin(self, request: Request, before: float) -> None:
        request.meta[TURN_ENDS] = before
        self._visits.append(request)
        wake_engine(self._crawler)

    def _redirect(self, claim: Claim, request: Request) -> None:
        self._redirected[claim.url_id] = request
        self._link.send(Moved(claim.url_id, request.meta["download_slot"]))

    def _end(self, outcome: Outcome) -> None:
        if outcome.claim.url_id in self._hand_over.under_way:
            self._hand_over.end(outcome)


#: The statistics that the process of the run adds to its own.
_OURS: Final = ("searchcrawl/", "downloader/", "item_", "response_received_count")


class MemberExtension:
    """Says why the member ends, and what it counted, once all of its visits are over."""

    def __init__(self, crawler: Crawler, run: Run, link: MemberLink) -> None:
        self._crawler = crawler
        self._run = run
        self._link = link

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MemberExtension:
        stages = stages_of(crawler)
        extension = cls(crawler, stages.get(Run), stages.get(MemberLink))
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        stats = self._crawler.stats.get_stats()
        ours = {name: count for name, count in stats.items() if name.startswith(_OURS) and isinstance(count, int)}
        attributes = self._run.attributes
        unreadable = {} if attributes is None else dict(attributes.unreadable)
        await self._link.channel.send_last(Closed(reason, ours, self._run.copy_counts(), unreadable))
