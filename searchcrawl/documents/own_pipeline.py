"""The item pipeline that calls what users wrote for documents: methods of a spider, item pipelines, a document service (K4).

It is there only where a source has any of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from scrapy import signals
from scrapy.exceptions import DropItem
from scrapy.utils.defer import ensure_awaitable
from twisted.python.failure import Failure

from searchcrawl import clock, plugins
from searchcrawl.documents.plugin_errors import PluginErrors
from searchcrawl.documents.shown_document import show, take_over
from searchcrawl.http.visit_end import join_lines
from searchcrawl.items import Document, Outcome, Page, copy_with
from searchcrawl.own_code import read_text, wait_for_own

#: Sends a signal of Scrapy, with these values.
Tell = Callable[..., Awaitable[object]]


class Step(Protocol):
    """One call of a plug-in."""

    #: as errors and the log name it
    name: str
    #: as the rule of a document that it drops: the key of the source, and the plug-in
    rule: str
    #: whether it is called for documents that are not to be indexed, and whose links are followed
    for_refused: bool

    async def apply(self, document: Document, page: Page) -> Document:
        """The document after the call; raises DropItem where it is not to be indexed, and whatever the plug-in raises."""


class OwnPipeline:
    """Calls the steps one after the other for each document that was read.

    A step that fails, or gives no answer within ``seconds`` (None: it is waited for), costs the document (903); one that
    drops it keeps it out of the index (952), and its links are followed; one that says not yet has its page read again later.
    """

    def __init__(
        self, steps: Sequence[Step], errors: PluginErrors, *, seconds: float | None = None, tell: Tell | None = None
    ) -> None:
        self._steps = tuple(steps)
        self._errors = errors
        self._seconds = seconds
        self._tell = tell

    def process_item(self, item: object) -> object:
        return self._apply(item) if isinstance(item, Document) and item.page is not None else item

    async def _apply(self, document: Document) -> Document | Outcome:
        for step in self._steps:
            page = document.page
            if page is None or (document.refusal is not None and not step.for_refused):
                continue
            try:
                document = await wait_for_own(step.apply(document, page), self._seconds)
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

    async def _fail(self, step: Step, document: Document, page: Page, error: Exception) -> Outcome:
        outcome = self._errors.note_error(step.name, document.claim, error, redirects=document.redirects)
        await self._send(step, document, page, signals.item_error, failure=Failure(error))  # type: ignore[no-untyped-call]
        return outcome

    async def _send(self, step: Step, document: Document, page: Page, signal: object, **values: Any) -> None:
        """Sends what Scrapy sends for an item pipeline, with the document as it was before."""
        if self._tell is not None and isinstance(step, PipelineStep):
            await self._tell(signal=signal, item=show(document, page), response=None, **values)


def _is_moment(until: object) -> bool:
    return until is None or (isinstance(until, datetime) and until.utcoffset() is not None)


def _put_off(step: Step, document: Document, error: plugins.NotYet) -> Outcome:
    reason = join_lines(f"{step.name}: not yet: {read_text(error)}").removesuffix(": ")
    until = 0 if error.until is None else clock.cap_ms(error.until)
    return Outcome(claim=document.claim, code=document.claim.code, error=reason, not_before_ms=until)


class PipelineStep:
    """An item pipeline of a user; ``process_item`` is its method, which takes the document alone."""

    for_refused = False

    def __init__(self, name: str, process_item: Callable[[plugins.Document], Any]) -> None:
        self.name = f"pipeline {name}"
        self.rule = f"settings.ITEM_PIPELINES: {name}"
        self._process_item = process_item

    async def apply(self, document: Document, page: Page) -> Document:
        found = await ensure_awaitable(self._process_item(show(document, page)), _warn=self.name)
        if not isinstance(found, plugins.Document):
            raise TypeError(f"returned {_describe(found)}, not the document")
        return take_over(document, page, found)


class ServiceStep:
    """The ``document_service`` of a source."""

    for_refused = False

    def __init__(self, name: str, service: plugins.DocumentService) -> None:
        self.name = f"document_service {name}"
        self.rule = f"document_service: {name}"
        self._service = service

    async def apply(self, document: Document, page: Page) -> Document:
        found: object = await ensure_awaitable(self._service.process(show(document, page)), _warn=self.name)
        if found is None:
            raise DropItem("")
        if not isinstance(found, plugins.Document):
            raise TypeError(f"returned {_describe(found)}, not the document")
        return take_over(document, page, found)


def _describe(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
