"""The item pipeline that calls what users wrote for documents: methods of a spider, item pipelines, a document service (K4).

It is there only where a source has any of them. Here is also what becomes of documents at which they failed, and when a run
ends because of it (X-S11).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from scrapy import signals
from scrapy.exceptions import DropItem
from scrapy.utils.defer import ensure_awaitable
from twisted.python.failure import Failure

from searchcrawl import clock, plugins
from searchcrawl.codes import Code
from searchcrawl.documents.shown_document import show, take_over
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.http.visit_end import join_lines
from searchcrawl.items import Claim, Document, Hop, Outcome, Page, copy_with
from searchcrawl.run import Shutdown
from searchcrawl.sources.source_settings import PluginLimits
from searchcrawl.store.states import EndReason
from searchcrawl.user_code import name_error, read_text, wait_for_user_code

logger = logging.getLogger(__name__)

#: Sends a signal of Scrapy, with these values.
Tell = Callable[..., Awaitable[object]]


class PluginCall(Protocol):
    """One call of a plug-in."""

    #: as errors and the log name it
    name: str
    #: as the rule of a document that it drops: the key of the source, and the plug-in
    rule: str
    #: whether it is called for documents that are not to be indexed, and whose links are followed
    for_refused: bool

    async def apply(self, document: Document, page: Page) -> Document:
        """The document after the call; raises DropItem where it is not to be indexed, and whatever the plug-in raises."""


class UserPipeline:
    """Calls the steps one after the other for each document that was read.

    A step that fails, or gives no answer within ``seconds`` (None: it is waited for), costs the document (903); one that
    drops it keeps it out of the index (952), and its links are followed; one that says not yet has its page read again later.
    """

    def __init__(
        self,
        steps: Sequence[PluginCall],
        errors: PluginErrors,
        *,
        seconds: float | None = None,
        tell: Tell | None = None,
    ) -> None:
        self._steps = tuple(steps)
        self._errors = errors
        self._seconds = seconds
        self._tell = tell

    def process_document(self, item: Document) -> Document | Awaitable[Document | Outcome]:
        return self._apply(item) if item.page is not None else item

    async def _apply(self, document: Document) -> Document | Outcome:
        for step in self._steps:
            page = document.page
            if page is None or (document.refusal is not None and not step.for_refused):
                continue
            try:
                document = await wait_for_user_code(step.apply(document, page), self._seconds)
            except DropItem as dropped:
                reason = join_lines(read_text(dropped))
                document = copy_with(document, refusal=f"{step.rule}: {reason}" if reason else step.rule)
                await self._send(step, document, page, signals.item_dropped, exception=dropped)
            except Exception as error:  # noqa: BLE001 - it costs one document
                if isinstance(error, plugins.NotYet) and _is_moment(error.until):
                    return _put_off(step, document, error)
                return await self._fail(step, document, page, error)
            self._errors.note_good(step.name)
        return document

    async def _fail(self, step: PluginCall, document: Document, page: Page, error: Exception) -> Outcome:
        outcome = self._errors.note_error(step.name, document.claim, error, redirects=document.redirects)
        await self._send(step, document, page, signals.item_error, failure=Failure(error))  # type: ignore[no-untyped-call]
        return outcome

    async def _send(self, step: PluginCall, document: Document, page: Page, signal: object, **values: Any) -> None:
        """Sends what Scrapy sends for an item pipeline, with the document as it was before."""
        if self._tell is not None and isinstance(step, PipelineStep):
            await self._tell(signal=signal, item=show(document, page), response=None, **values)


def _is_moment(until: object) -> bool:
    return until is None or (isinstance(until, datetime) and until.utcoffset() is not None)


def _put_off(step: PluginCall, document: Document, error: plugins.NotYet) -> Outcome:
    reason = join_lines(f"{step.name}: not yet: {read_text(error)}").removesuffix(": ")
    until = 0 if error.until is None else clock.cap_ms(error.until)
    return Outcome(claim=document.claim, code=document.claim.code, error=reason, not_before_ms=until)


class _DocumentStep:
    """What takes a document of ``plugins``, and returns it; None in its place drops it where ``none_drops``."""

    for_refused = False
    none_drops = False

    def __init__(self, name: str, rule: str, process: Callable[[plugins.Document], Any]) -> None:
        self.name = name
        self.rule = rule
        self._process = process

    async def apply(self, document: Document, page: Page) -> Document:
        found = await ensure_awaitable(self._process(show(document, page)), _warn=self.name)
        if found is None and self.none_drops:
            raise DropItem("")
        if not isinstance(found, plugins.Document):
            raise TypeError(f"returned {'None' if found is None else f'a {type(found).__name__}'}, not the document")
        return take_over(document, page, found)


class PipelineStep(_DocumentStep):
    """An item pipeline of a user; ``process_item`` is its method, which takes the document alone."""

    def __init__(self, name: str, process_item: Callable[[plugins.Document], Any]) -> None:
        super().__init__(f"pipeline {name}", f"settings.ITEM_PIPELINES: {name}", process_item)


class ServiceStep(_DocumentStep):
    """The ``document_service`` of a source."""

    none_drops = True

    def __init__(self, name: str, service: plugins.DocumentService) -> None:
        super().__init__(f"document_service {name}", f"document_service: {name}", service.process)


#: So many errors of a plug-in are logged in a run; all are counted.
_MOST_LOGGED: Final = 20


class PluginErrors:
    """Counts the errors of the plug-ins of a run by name; ends it where one fails past its limits."""

    def __init__(self, shutdown: Shutdown, limits: PluginLimits, *, count: Callable[[str], None]) -> None:
        self._shutdown = shutdown
        self._limits = limits
        self._count = count
        self._documents: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._ended = False

    def note_good(self, name: str, documents: int = 1) -> None:
        """Notes a document, or several, that a plug-in did not fail at."""
        self._documents[name] += documents
        self._in_a_row[name] = 0

    def note_error(self, name: str, claim: Claim, error: BaseException, *, redirects: tuple[Hop, ...]) -> Outcome:
        """Notes a visit that a plug-in failed at; the end of it. A document that the store knows stays."""
        text = join_lines(f"{name}: {name_error(error)}")
        self.add_error(name, claim.url, text)
        code = error.code if isinstance(error, ConversionFailed) else Code.CONVERSION_FAILED
        return Outcome(claim=claim, code=code, error=text, redirects=redirects)

    def add_error(self, name: str, url: str, text: str) -> None:
        """Counts an error, and logs what it says; ends the run where it was one too many."""
        self._documents[name] += 1
        self._errors[name] += 1
        self._in_a_row[name] += 1
        self._log(name, url, text)
        self._count(f"searchcrawl/plugin_errors/{name}")
        self._end_past_limits(name)

    def _log(self, name: str, url: str, text: str) -> None:
        errors = self._errors[name]
        if errors <= _MOST_LOGGED:
            more = " (its further errors are counted only)" if errors == _MOST_LOGGED else ""
            logger.warning("%s (%s)%s", text, url, more)

    def _end_past_limits(self, name: str) -> None:
        why = self._limits.find_passed(
            errors=self._errors[name], in_a_row=self._in_a_row[name], documents=self._documents[name]
        )
        if why is None or self._ended:
            return
        self._ended = True
        logger.error("the run ends: %s failed at %s (SEARCHCRAWL_PLUGIN_ERRORS)", name, why)
        self._shutdown.stop(EndReason.PLUGIN_ERRORS)
