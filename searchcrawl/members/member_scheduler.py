"""The scheduler of a member: it hands on the visits that the process of the run sends."""

from __future__ import annotations

import asyncio
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler

from searchcrawl.engine.visit_engine import use_visit_engine
from searchcrawl.frontier.scheduler import VisitScheduler, build_request
from searchcrawl.items import Claim, Outcome
from searchcrawl.members.hand_over_pipeline import HandOver
from searchcrawl.members.link import Link
from searchcrawl.members.messages import Finish, GoOn, Moved, Ready, Visit
from searchcrawl.stages import stages_of


class MemberScheduler(VisitScheduler):
    """Visits what it is told to; the process of the run decides when each may go.

    A redirected visit waits here, and is announced there: it goes on when its new host allows it.
    """

    def __init__(self, crawler: Crawler, link: Link, hand_over: HandOver) -> None:
        super().__init__(crawler)
        self._link = link
        self._hand_over = hand_over
        self._redirected: dict[int, Request] = {}
        self._started = self._finished = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MemberScheduler:
        stages = stages_of(crawler)
        return cls(crawler, stages.get(Link), stages.get(HandOver)).listen()

    def open(self, spider: Spider) -> None:
        self._spider = spider
        use_visit_engine(self._crawler)
        self._link.listen(self._take)

    def has_pending_requests(self) -> bool:
        return not self._finished

    def next_request(self) -> Request | None:
        if not self._started:
            self._started = True
            self._link.send(Ready())
        return self._take_waiting()

    def close(self, reason: str) -> None:
        """Visits that were not begun are claimed again: the process of the run knows which ended."""
        self._woken.clear()

    def _take(self, message: Any) -> None:
        if isinstance(message, Visit):
            self._visit(message)
        elif isinstance(message, GoOn):
            self._hand_to_engine(self._redirected.pop(message.url_id))
        elif isinstance(message, Finish) and not self._finished:
            self._finished = True
            engine: Any = self._crawler.engine
            self._closing = asyncio.ensure_future(engine.close_spider_async(reason="finished"))

    def _visit(self, visit: Visit) -> None:
        spider: Any = self._spider
        self._hand_over.begin(visit.claim)
        self._hand_to_engine(
            build_request(visit.claim, visit.host, callback=spider.handle_response, errback=spider.handle_failure)
        )

    def _redirect(self, claim: Claim, request: Request) -> None:
        self._redirected[claim.url_id] = request
        self._link.send(Moved(claim.url_id, request.meta["download_slot"]))

    def _end(self, outcome: Outcome) -> None:
        if self._hand_over.is_under_way(outcome.claim):
            self._hand_over.end(outcome)
