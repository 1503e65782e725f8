"""The last item pipeline of a member: hands the ends of visits to the process of the run, which has the writer."""

from __future__ import annotations

from scrapy.crawler import Crawler

from searchcrawl.cache.segment import encode_page
from searchcrawl.commit.document_rows import build_record
from searchcrawl.http.visit_log import VisitLog
from searchcrawl.items import Claim, Document, Outcome, copy_with
from searchcrawl.members.link import Link
from searchcrawl.members.messages import Ended
from searchcrawl.run import Run
from searchcrawl.stages import stages_of


class HandOver:
    """Knows which visits a member has under way, and hands on how each ended; ``log`` gets a line of it."""

    def __init__(self, link: Link, log: VisitLog | None) -> None:
        self._link = link
        self._log = log
        self._under_way: set[int] = set()

    def begin(self, claim: Claim) -> None:
        """Notes a visit that begins."""
        self._under_way.add(claim.url_id)

    def forget(self, url_id: int) -> None:
        """Notes that a visit was ended by the process of the run."""
        self._under_way.discard(url_id)

    def is_under_way(self, claim: Claim) -> bool:
        """Whether a visit has begun and has not ended."""
        return claim.url_id in self._under_way

    def end(self, item: Document | Outcome) -> None:
        """Hands on the end of a visit."""
        self._link.send(Ended.of(_pack(item) if isinstance(item, Document) else item))
        # Where that failed, the visit ends with the failure.
        self._under_way.discard(item.claim.url_id)
        if self._log is not None:
            self._log.write(item)


class HandOverPipeline:
    """Takes the place of the writer; other items pass unchanged. While the process of the run is behind, it waits."""

    def __init__(self, crawler: Crawler, run: Run, link: Link, hand_over: HandOver) -> None:
        self._crawler = crawler
        self._run = run
        self._link = link
        self._hand_over = hand_over

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HandOverPipeline:
        stages = stages_of(crawler)
        return cls(crawler, stages.get(Run), stages.get(Link), stages.get(HandOver))

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
    """The document with the records for the cache in place of its body, which are made here: that takes a while."""
    if document.page is None:
        # The bytes are as before, or no rule asks for them: the cache gets nothing.
        return copy_with(document, body=b"", sent_bytes=len(document.body))
    claim = document.claim
    if document.code != 200 or (claim.has_document and claim.fields_digest == document.fields_digest):
        return document
    return copy_with(document, records=encode_page(build_record(document)), body=b"", sent_bytes=len(document.body))
