"""Finds placeholder pages, which a host sends for any path, and ends their visits (L9, X-R17, 965)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from scrapy.crawler import Crawler

from searchcrawl import urls
from searchcrawl.codes import TEMPORARY_REDIRECTS, Code
from searchcrawl.exceptions import LeaseLost, StoreError
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.encoding import decode
from searchcrawl.html.page_text import collapse_lines
from searchcrawl.html.raw_page import has_password_field
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import ENDLESS, SideAnswer, SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import PAGES
from searchcrawl.items import ARCHIVE_ETAG, Document, Outcome, Page
from searchcrawl.render.rendered_page import RENDERED_TYPE, RenderFailed
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.rules.archives import list_archives
from searchcrawl.run import Run
from searchcrawl.soft404.signature import LEAST_PAGES, ProbeResult, Probes, Sample, Signature, probe_url
from searchcrawl.soft404.signs import Outline, is_nearly_empty, looks_like_notice
from searchcrawl.soft404.taken_pages import TakenPage, TakenPages, build_withdrawn
from searchcrawl.sources.loading import read_start_urls
from searchcrawl.stages import stages_of
from searchcrawl.store import host_table

if TYPE_CHECKING:
    from searchcrawl.render.renderer import Renderer

logger = logging.getLogger(__name__)

RULE: Final = "sentinel: what the host answers to any path"
_MAX_HOSTS: Final = 10_000
#: So many pages of a host are compared with the next one: fewer where many are remembered, of all hosts together.
_MOST_OF_HOST: Final = 100
_LEAST_OF_HOST: Final = 5
_MOST_KEPT: Final = 50_000
#: How often a host that could not be probed is probed again with a later page.
_MAX_TRIES: Final = 3
_MAX_BYTES: Final = 1_000_000
#: The form of a login stands in so much of a page.
_LOGIN_BYTES: Final = 1 << 23
#: These redirects are followed: after them a page keeps its own URL.
_POLICY: Final = SidePolicy(kind="sentinel", max_bytes=_MAX_BYTES, followed=TEMPORARY_REDIRECTS)


@dataclass(slots=True, kw_only=True)
class _Host:
    """What is known of one origin.

    ``pages`` counts those that came in this run, ``taken`` are those that were taken for content; ``is_suspect``: one
    of them looked like a placeholder page. ``probing`` is the task that asks it, None before and after; ``tries`` is less
    than 0 once it has answered. ``answers_any``: it answered any path before this
    run, too, and has pages of its own besides. ``probed_again``: it was asked because two known pages became the same.
    """

    pages: int = 0
    taken: TakenPages = field(default_factory=TakenPages)
    is_suspect: bool = False
    tries: int = 0
    probing: asyncio.Task[None] | None = None
    signature: Signature | None = None
    answers_any: bool = False
    has_own_pages: bool = False
    probed_again: bool = False


class _NoAnswer(Exception):
    """The host has no page for an unknown path: another status, no text, or it may not be asked."""


class PlaceholderPagePipeline:
    """Ends the visits of placeholder pages: those that their host answers to any path.

    A document without a page passes, and so does a file in an archive. A host is probed once one of its pages with new bytes
    looks like such an answer (``signs``): a new page, once there are LEAST_PAGES of the host, a known one at once, before its
    change is taken. Pages that came before that and are like the answer are judged again. The first visit of a home or of a
    start URL is content. Where the host answers the probe with no page, it is not repeated in this run, unless two known
    pages become one. ``robots`` is None where robots.txt is not obeyed.
    """

    def __init__(
        self,
        run: Run,
        side: SideRequests,
        robots: RobotsFiles | None,
        renderer: Renderer | None = None,
        probes: Probes | None = None,
    ) -> None:
        self._run = run
        self._probes = probes or Probes()
        self._side = side
        self._robots = robots
        self._renderer = renderer
        #: by last use; pages that a browser rendered are compared with what it makes of the answer to any path
        self._hosts: OrderedDict[tuple[str, bool], _Host] = OrderedDict()
        #: how many pages of all hosts are remembered
        self._kept = 0
        #: hosts of which ``_hosts`` has no place for any more, and the table is to know
        self._noted: list[str] = []
        self._starts = frozenset(read_start_urls(run.project, run.source))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PlaceholderPagePipeline:
        stages = stages_of(crawler)
        run, renderer = stages.get(Run), None
        if run.source.render.in_use:
            from searchcrawl.render.renderer import Renderer  # noqa: PLC0415  # other sources have no part of it

            renderer = stages.find(Renderer)
        return cls(run, stages.get(SideRequests), stages.find(RobotsFiles), renderer, stages.find(Probes))

    def process_document(self, item: Document) -> Document | Outcome | Awaitable[Document | Outcome]:
        """Returns the item, or the end of its visit; an awaitable of it if the host has to be asked first."""
        page = item.page
        if page is None or item.converter is None or _is_in_archive(item):
            return item
        key = urls.origin_of(item.claim.url), item.rendered is not None
        host = self._hosts.get(key)
        if not _is_text(item):
            return item if host is None else self._compare(host, item, page) or item
        if host is None:
            host = self._hosts[key] = _Host()
            if len(self._hosts) > _MAX_HOSTS:
                self._forget(*self._hosts.popitem(last=False))
        self._hosts.move_to_end(key)
        host.pages += 1
        if host.signature is not None:
            return self._compare(host, item, page) or item
        return self._look(host, item, page)

    def _look(self, host: _Host, item: Document, page: Page) -> Document | Outcome | Awaitable[Document | Outcome]:
        """Asks the host first where a page looks like a placeholder page, and else takes it."""
        claim = item.claim
        was_asked = host.tries < 0 or host.tries >= _MAX_TRIES
        if was_asked and not claim.has_document:
            return item
        outline = Outline.of(page.all_text, asked=claim.url)
        is_content = not claim.has_document and self._is_home(claim.url, None)
        taken = TakenPage(claim.url_id, claim.has_document, None if is_content else urls.key(claim.url), outline)
        if self._gives_reason(host, item, page, outline):
            host.probing = asyncio.ensure_future(self._probe(host, item))
        elif host.probing is None or not (claim.has_document or self._is_suspect(host, item, page, outline)):
            if self._probes.are_shared and not was_asked:
                return self._look_elsewhere(host, item, taken)
            self._keep(host, taken)
            return item
        return self._compare_later(host.probing, host, item, taken)

    async def _look_elsewhere(self, host: _Host, item: Document, taken: TakenPage) -> Document | Outcome:
        """Asks the host first where a page is like one that another process of the run has taken."""
        try:
            is_alike = await self._probes.note_taken(urls.origin_of(item.claim.url), taken)
        except StoreError as error:
            self._run.shutdown.fail(error)
            return item
        if is_alike and host.probing is None and 0 <= host.tries < _MAX_TRIES:
            host.probing = asyncio.ensure_future(self._probe(host, item))
        if is_alike and host.probing is not None:
            return await self._compare_later(host.probing, host, item, taken)
        ended = self._compare(host, item, item.page or Page())
        if ended is None:
            self._keep(host, taken)
        return ended or item

    def _gives_reason(self, host: _Host, item: Document, page: Page, outline: Outline) -> bool:
        """Whether the host is to be asked now."""
        if host.probing is not None or host.probed_again:
            return False
        claim = item.claim
        if host.tries < 0 or host.tries >= _MAX_TRIES:
            # A host may begin to answer any path during a run.
            host.probed_again = host.taken.has_alike(outline)
            return host.probed_again
        is_suspect = self._is_suspect(host, item, page, outline)
        host.is_suspect |= is_suspect
        is_urgent = is_suspect and (claim.has_document or claim.code == Code.SENTINEL)
        return is_urgent or (host.is_suspect and host.pages >= LEAST_PAGES)

    def _is_suspect(self, host: _Host, item: Document, page: Page, outline: Outline) -> bool:
        """Whether a page looks like a placeholder page: by itself, or as it is like another one of its host."""
        claim = item.claim
        if has_password_field(item.body[:_LOGIN_BYTES]) or claim.code == Code.SENTINEL:
            return True
        if self._is_home(claim.url, None) and not claim.has_document:
            return False
        if is_nearly_empty(page, is_known=claim.has_document) or looks_like_notice(page):
            return True
        return host.taken.has_alike(outline)

    def _keep(self, host: _Host, page: TakenPage) -> None:
        """Remembers a page that is taken for content."""
        self._kept += host.taken.add(page, most=_MOST_OF_HOST if self._kept < _MOST_KEPT else _LEAST_OF_HOST)

    async def close_spider(self) -> None:
        while self._hosts:
            self._forget(*self._hosts.popitem())
        noted = self._noted
        if not noted or self._run.shutdown.failure is not None:
            return
        try:
            await asyncio.to_thread(
                self._run.write, lambda transaction: host_table.note_answers_any(transaction, noted)
            )
        except (StoreError, LeaseLost) as error:
            self._run.shutdown.fail(error)

    def _forget(self, key: tuple[str, bool], host: _Host) -> None:
        self._kept -= len(host.taken)
        if host.has_own_pages and not host.answers_any:
            self._noted.append(urls.host_and_port(key[0]))

    def _is_home(self, url: str, signature: Signature | None) -> bool:
        parsed = urlsplit(url)
        home = parsed.path == "/" and not parsed.query
        return home or url in self._starts or (signature is not None and url == signature.landing)

    async def _compare_later(
        self, probing: asyncio.Task[None], host: _Host, document: Document, taken: TakenPage
    ) -> Document | Outcome:
        # If one page is cancelled, the others must still get the answer.
        await asyncio.shield(probing)
        page = document.page or Page()
        ended = self._compare(host, document, page)
        if ended is None:
            self._keep(host, taken)
        return ended or document

    def _compare(self, host: _Host, document: Document, page: Page) -> Outcome | None:
        """How the visit ends where ``page`` is no content; None where it is."""
        claim, signature = document.claim, host.signature
        if signature is None:
            return None
        if not signature.matches(page, asked=claim.url):
            host.has_own_pages = True
            return None
        # The page to which a host redirects unknown paths is content. But it is not if it was another page before, and
        # all pages have become this one.
        is_content = self._is_home(claim.url, signature) and (not claim.has_document or host.answers_any)
        if is_content and not has_password_field(document.body[:_LOGIN_BYTES]):
            return None
        self._withdraw(host, signature, Outline.of(page.all_text, asked=claim.url))
        return Outcome(
            claim=claim,
            code=Code.SENTINEL,
            rule=RULE,
            error=f"what {urls.origin_of(claim.url)} answers to any path: {document.base_url}",
            redirects=document.redirects,
        )

    def _withdraw(self, host: _Host, signature: Signature, outline: Outline) -> None:
        """Has the pages judged again that were taken before the host was known to answer any path, and are like its answer."""
        found = host.taken.take(lambda each: each.outline.is_alike(outline) and not signature.lands_on(each.place))
        self._kept -= len(found)
        if found:
            self._probes.withdraw(build_withdrawn(found))

    async def _probe(self, host: _Host, document: Document) -> None:
        """Finds out whether the host answers any path, and with which page; never raises."""
        url = document.claim.url
        try:
            found = await self._share_probe(host, document)
            host.signature, host.answers_any = found
            host.tries = -1
            if host.signature is None:
                # Of these alone more is asked.
                self._kept -= len(host.taken.take(lambda each: not each.is_known))
            else:
                self._withdraw(host, host.signature, host.signature.sample.outline)
        except StoreError as error:
            self._run.shutdown.fail(error)
        except Exception as error:
            # The outermost call of the stage: if a host cannot be probed, its pages are taken for content.
            host.tries += 1
            if not isinstance(error, SideRequestFailed):
                logger.exception("%s cannot be asked for a path that it does not have", urls.origin_of(url))
        finally:
            host.probing = None

    async def _share_probe(self, host: _Host, document: Document) -> ProbeResult:
        """What the host answers to any path, as one of the processes of the run has found out."""
        origin = urls.origin_of(document.claim.url)
        found = await self._probes.begin(origin, again=host.probed_again)
        if found is not None:
            return found
        try:
            found = await self._ask(document)
        finally:
            self._probes.end(origin, found)
        return found

    async def _ask(self, document: Document) -> ProbeResult:
        try:
            one, one_url = await self._fetch_sample(document)
            other, other_url = await self._fetch_sample(document)
        except _NoAnswer:
            return ProbeResult(None)
        signature = Signature.between(one, other, landing=one_url if one_url == other_url else None)
        if signature is None:
            return ProbeResult(None)
        origin, name = urls.origin_of(document.claim.url), urls.host_and_port(document.claim.url)
        logger.warning("%s answers any path with one page: pages that look like it are not taken", origin)
        answers_any = partial(host_table.answers_any, name=name)
        return ProbeResult(signature, await asyncio.to_thread(self._run.read, answers_any))

    async def _fetch_sample(self, document: Document) -> tuple[Sample, str]:
        """The answer to an unknown path beside that of ``document``, and its URL; raises _NoAnswer."""
        asked = probe_url(document.claim.url)
        if not self._run.boundary.decide(asked, document.claim.depth).allowed:
            raise _NoAnswer

        async def check(url: str) -> None:
            if self._run.source.fetch.sites and urls.host_and_port(url) != urls.host_and_port(asked):
                # With a cap on sites no other host is asked: it may have to wait for this one, which waits for the
                # answer.
                raise _NoAnswer
            if self._robots is None:
                return
            rules = await self._robots.get_rules(urls.origin_of(url))
            if not rules.decide(url).allowed:
                raise _NoAnswer

        try:
            answer = await self._side.fetch(asked, _POLICY, check=check)
        except SideRequestFailed as error:
            if error.code in ENDLESS or error.code == Code.OUTSIDE_BOUNDARY:
                raise _NoAnswer from None
            raise
        if answer.status not in PAGES:
            raise _NoAnswer
        page = await self._read(answer, rendered=document.rendered is not None)
        return Sample.of(page, asked=asked), answer.url

    async def _read(self, answer: SideAnswer, *, rendered: bool) -> Page:
        """The page of an answer; ``rendered``: as the browser shows it, since the shells of an application are all equal."""
        if self._renderer is None or not rendered:
            return await asyncio.to_thread(self._parse, answer)
        try:
            shown = await self._renderer.render(answer.url, None)
        except RenderFailed as error:
            raise SideRequestFailed(f"not rendered: {error}", code=error.code) from error
        if shown.status not in PAGES:
            raise _NoAnswer
        return await asyncio.to_thread(
            self._parse_html, shown.html.encode("utf-8", "replace"), answer.url, RENDERED_TYPE
        )

    def _parse(self, answer: SideAnswer) -> Page:
        try:
            body = answer.decoded_body(_MAX_BYTES)
        except BrokenCoding:
            raise _NoAnswer from None
        content_type = answer.header("Content-Type")
        charset = self._run.source.fetch.default_charset
        if content_type.lower().startswith("text/plain"):
            text, _ = decode(body, content_type=content_type, default_charset=charset)
            return Page(text=collapse_lines(text))
        return self._parse_html(body, answer.url, content_type)

    def _parse_html(self, body: bytes, url: str, content_type: str) -> Page:
        from searchcrawl.html.page import parse_html  # noqa: PLC0415  # a run without new pages does without

        headers = ((b"Content-Type", content_type.encode("latin-1", "replace")),)
        charset = self._run.source.fetch.default_charset
        return parse_html(body, ConversionContext(url=url, headers=headers, default_charset=charset))


def _is_text(document: Document) -> bool:
    return "html" in document.mimetype or document.mimetype.startswith("text/")


def _is_in_archive(document: Document) -> bool:
    """Whether an archive has answered and not the host, which has no folder at such a URL."""
    # A server may send any ETag.
    was_read_from_one = (document.etag or "").startswith(ARCHIVE_ETAG)
    return was_read_from_one and bool(list_archives(document.claim.url, in_archive=True))
