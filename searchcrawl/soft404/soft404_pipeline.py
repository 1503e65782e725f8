"""Asks hosts for paths that they cannot know, and tells pages that are such an answer (L9, X-R17, 965)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl, LeaseLost, StoreError
from searchcrawl.html.encoding import decode
from searchcrawl.html.page import has_password_field, parse_html
from searchcrawl.html.page_text import collapse_lines
from searchcrawl.http.content_coding import BrokenCoding, codings_of, undo_prefix
from searchcrawl.http.redirect_middleware import slot_of
from searchcrawl.http.visit_end import failing_of
from searchcrawl.items import Document, Outcome, Page
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.robots_middleware import RobotsMiddleware, RobotsUnavailable
from searchcrawl.run import Run
from searchcrawl.soft404.signature import Sample, Signature, probe_url
from searchcrawl.sources.loading import read_start_urls
from searchcrawl.stages import stages_of
from searchcrawl.store.hosts import host_table

logger = logging.getLogger(__name__)

RULE: Final = "sentinel: what the host answers to any path"
_MAX_HOSTS: Final = 10_000
#: A host that could not be asked is asked again with a later page, so often.
_MAX_TRIES: Final = 3
_MAX_REDIRECTS: Final = 5
#: Those that lead a page elsewhere under its own URL (requirements.md, decision 3).
_TEMPORARY: Final = frozenset({302, 303, 307})
_MAX_BYTES: Final = 1_000_000


@dataclass(slots=True, kw_only=True)
class _Host:
    """What is known of one origin; ``asking`` is None before and after."""

    tries: int = 0
    asking: asyncio.Task[None] | None = None
    signature: Signature | None = None
    #: it answered any path before this run, too, with pages of its own besides
    answers_any: bool = False
    has_own_pages: bool = False
    #: what the last known page that changed says now, and whether the host was asked because of two alike
    last_text: int = 0
    asked_again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A page that came for a path that nobody can know, and the URL that it came from."""

    asked: str
    url: str
    page: Page


class _NoAnswer(Exception):
    """The host does not answer any path: another status, no text, or it may not be asked."""


class PlaceholderPagePipeline:
    """Ends the visits of placeholder pages: those that their host answers to any path (965).

    Documents that nobody read pass. A host is asked only once it has sent a page with new bytes that may be such an answer: not the
    first visit of its home or of a start URL. Where the answer is no page, as nearly everywhere, one
    question is enough for the run, unless two known pages turn into one.
    """

    def __init__(self, crawler: Crawler, run: Run, rate_limiter: RateLimiter, robots: RobotsMiddleware) -> None:
        self._crawler = crawler
        self._run = run
        self._rate_limiter = rate_limiter
        self._robots = robots
        self._hosts: dict[str, _Host] = {}
        self._starts = frozenset(read_start_urls(run.project, run.source))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PlaceholderPagePipeline:
        stages = stages_of(crawler)
        return cls(crawler, stages.get(Run), stages.get(RateLimiter), stages.get(RobotsMiddleware))

    def process_item(self, item: object) -> object:
        """The item, or how its visit ends; an awaitable of it where the host has to be asked first."""
        if not isinstance(item, Document) or item.page is None or item.converter is None:
            return item
        found = self._look(item, item.page)
        if found is None or isinstance(found, Outcome):
            return found or item
        return self._wait(found, item)

    @staticmethod
    async def _wait(answer: Awaitable[Outcome | None], document: Document) -> Document | Outcome:
        return await answer or document

    def _look(self, document: Document, page: Page) -> Outcome | Awaitable[Outcome | None] | None:
        """How the visit ends where ``page`` is no content; None where it is."""
        origin = urls.origin_of(document.claim.url)
        host = self._hosts.get(origin)
        if host is None:
            if not self._is_worth_asking(document):
                return None
            host = self._hosts[origin] = _Host()
            if len(self._hosts) > _MAX_HOSTS:
                del self._hosts[next(iter(self._hosts))]
        unknown = 0 <= host.tries < _MAX_TRIES and self._is_worth_asking(document)
        if host.asking is None and (unknown or self._has_turned(host, document, page)):
            host.asking = asyncio.ensure_future(self._ask(host, document))
        if host.asking is not None:
            return self._look_later(host.asking, host, document, page)
        return None if host.signature is None else self._judge(host, host.signature, document, page)

    async def close_spider(self) -> None:
        noted = [slot_of(origin) for origin, host in self._hosts.items() if host.has_own_pages and not host.answers_any]
        if not noted or self._run.shutdown.failure is not None:
            return
        try:
            await asyncio.to_thread(
                self._run.write, lambda transaction: host_table.note_answers_any(transaction, noted)
            )
        except (StoreError, LeaseLost) as error:
            self._run.shutdown.fail(error)

    def _is_worth_asking(self, document: Document) -> bool:
        if "html" not in document.mimetype and not document.mimetype.startswith("text/"):
            return False
        claim = document.claim
        return claim.held or not self._is_home(claim.url, None) or has_password_field(document.body)

    @staticmethod
    def _has_turned(host: _Host, document: Document, page: Page) -> bool:
        """Whether two known pages in a row have become one: an honest host may begin to lie during a run."""
        if host.signature is not None or host.asked_again or not document.claim.held:
            return False
        text = hash((page.title, page.text))
        host.asked_again, host.last_text = text == host.last_text, text
        return host.asked_again

    def _is_home(self, url: str, signature: Signature | None) -> bool:
        parsed = urlsplit(url)
        home = parsed.path == "/" and not parsed.query
        return home or url in self._starts or (signature is not None and url == signature.landing)

    async def _look_later(
        self, asking: asyncio.Task[None], host: _Host, document: Document, page: Page
    ) -> Outcome | None:
        # One page that is cancelled must not take the answer from the others.
        await asyncio.shield(asking)
        return None if host.signature is None else self._judge(host, host.signature, document, page)

    def _judge(self, host: _Host, signature: Signature, document: Document, page: Page) -> Outcome | None:
        claim = document.claim
        if not signature.matches(page, asked=claim.url):
            host.has_own_pages = True
            return None
        # What a host sends whoever is lost is content; not where it was another page, and all pages became one.
        welcome = self._is_home(claim.url, signature) and (not claim.held or host.answers_any)
        if welcome and not has_password_field(document.body):
            return None
        return Outcome(
            claim=claim,
            code=Code.SENTINEL,
            rule=RULE,
            error=f"what {urls.origin_of(claim.url)} answers to any path: {document.base_url}",
            redirects=document.redirects,
        )

    async def _ask(self, host: _Host, document: Document) -> None:
        """Finds out what the host answers to any path; never raises."""
        url = document.claim.url
        try:
            host.signature = await self._signature_of(document)
            host.tries = -1
            if host.signature is not None:
                logger.warning(
                    "%s answers any path with one page: pages that look like it are not taken", urls.origin_of(url)
                )
                host.answers_any = await asyncio.to_thread(
                    self._run.read, lambda transaction: host_table.answers_any(transaction, slot_of(url))
                )
        except _NoAnswer:
            host.tries = -1
        except StoreError as error:
            self._run.shutdown.fail(error)
        except Exception as error:
            # The edge of the stage: what cannot be asked is no evidence.
            host.tries += 1
            if failing_of(error) is None and not isinstance(error, RobotsUnavailable):
                logger.exception("%s cannot be asked for a path that it does not have", urls.origin_of(url))
        finally:
            host.asking = None

    async def _signature_of(self, document: Document) -> Signature | None:
        one = await self._fetch(document)
        other = await self._fetch(document)
        samples = [Sample.of(answer.page, asked=answer.asked) for answer in (one, other)]
        return Signature.between(*samples, landing=one.url if one.url == other.url else None)

    async def _fetch(self, document: Document) -> _Answer:
        """The page that comes for a path beside that of ``document``; raises _NoAnswer where none does."""
        asked = url = probe_url(document.claim.url)
        if not self._run.boundary.decide(url, document.claim.depth).allowed:
            raise _NoAnswer
        for _ in range(_MAX_REDIRECTS + 1):
            response = await self._request(url, asked_for=asked)
            if response.status not in _TEMPORARY:
                break
            try:
                url = urls.resolve((response.headers.get(b"Location") or b"").decode("utf-8", "replace"), url)
            except InvalidUrl:
                raise _NoAnswer from None
            if self._run.source.fetch.sites and slot_of(url) != slot_of(asked):
                # Under a cap on sites that host may have to wait for this one, which waits for the answer.
                raise _NoAnswer
        if response.status not in (200, 203):
            raise _NoAnswer
        page = await asyncio.to_thread(self._page_of, response)
        return _Answer(asked=asked, url=url, page=page)

    async def _request(self, url: str, *, asked_for: str) -> Response:
        if self._run.source.robots.obey:
            rules = await self._robots.file_of(urls.origin_of(url))
            if not rules.decide(url).allowed:
                raise _NoAnswer
        slot = slot_of(url)
        # In the place of the page that waits for it.
        await self._rate_limiter.wait_until_allowed(slot)
        meta: dict[str, Any] = {
            "sentinel": True,
            "asked_for": asked_for,
            "own_headers": url == asked_for,
            "download_slot": slot,
            "verbatim_url": True,
            "body_prefix_bytes": _MAX_BYTES,
        }
        return await self._crawler.engine.download_async(Request(url, meta=meta, dont_filter=True))

    def _page_of(self, response: Response) -> Page:
        headers = response.headers
        try:
            body = undo_prefix(response.body, codings_of(headers.getlist(b"Content-Encoding")), max_bytes=_MAX_BYTES)
        except BrokenCoding:
            raise _NoAnswer from None
        content_type = (headers.get(b"Content-Type") or b"").decode("latin-1")
        charset = self._run.source.fetch.default_charset
        if content_type.lower().startswith("text/plain"):
            text, _ = decode(body, content_type=content_type, default_charset=charset)
            return Page(text=collapse_lines(text))
        return parse_html(
            body,
            url=response.url,
            content_type=content_type,
            default_charset=charset,
            robots_headers=(),
            user_agent="",
        )
