"""The scheduler of a member: it hands on the visits that the process of the run sends."""

from __future__ import annotations

import asyncio
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler

from searchcrawl.engine.visit_engine import use_visit_engine
from searchcrawl.frontier.scheduler import VisitScheduler, build_request
from searchcrawl.http.turn_middleware import TURN_ENDS
from searchcrawl.items import Claim, Outcome
from searchcrawl.members.hand_over_pipeline import HandOver
from searchcrawl.members.link import Link
from searchcrawl.members.messages import Finish, Forget, GoOn, Moved, Ready, Visit
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
        self._closing: asyncio.Future[None] | None = None

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
            if self._finished:
                self._finish()
        return self._take_waiting()

    def close(self, reason: str) -> None:
        """Visits that were not begun are claimed again: the process of the run knows which ended."""
        self._woken.clear()

    def _take(self, message: Any) -> None:
        if isinstance(message, Visit):
            spider: Any = self._spider
            self._hand_over.begin(message.claim)
            request = build_request(
                message.claim, message.host, callback=spider.handle_response, errback=spider.handle_failure
            )
            self._begin(request, message.before)
        elif isinstance(message, GoOn):
            self._begin(self._redirected.pop(message.url_id), message.before)
        elif isinstance(message, Forget):
            self._redirected.pop(message.url_id, None)
            self._hand_over.forget(message.url_id)
        elif isinstance(message, Finish):
            self._finished = True
            # A spider that is being opened cannot be closed.
            if self._started:
                self._finish()

    def _finish(self) -> None:
        if self._closing is None:
            engine: Any = self._crawler.engine
            self._closing = asyncio.ensure_future(engine.close_spider_async(reason="finished"))

    def _begin(self, request: Request, before: float | None) -> None:
        if before is not None:
            request.meta[TURN_ENDS] = before
        self._hand_to_engine(request)

    def _redirect(self, claim: Claim, request: Request) -> None:
        self._redirected[claim.url_id] = request
        self._link.send(Moved(claim.url_id, request.meta["download_slot"]))

    def _end(self, outcome: Outcome) -> None:
        if self._hand_over.is_under_way(outcome.claim):
            self._hand_over.end(outcome)
