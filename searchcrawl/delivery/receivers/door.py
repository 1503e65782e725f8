"""A receiver besides the index, as it is called: each error of it is one of delivery, and names it (L14)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from searchcrawl import clock
from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.exceptions import ConfigurationError, DeliveryError, IndexMisconfigured, IndexUnavailable
from searchcrawl.index.opening import open_receiver
from searchcrawl.index.receiver import Batch, Receipt, Receiver, SearchIndex
from searchcrawl.items import IndexedDocument, Removal
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.secrets import redact
from searchcrawl.terminal import to_one_line
from searchcrawl.user_code import UserCodeError, name_error, ordinary_errors

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Door:
    """One receiver of a project by its name; it is made by the first call that needs it.

    Calls that fail because it is away are repeated as ``retry`` says. Raises IndexUnavailable, IndexMisconfigured.
    """

    def __init__(self, project: Project, name: str, retry: IndexRetry) -> None:
        self.name = name
        self.retry = retry
        #: when the call under way began (clock.monotonic); None: none is
        self.called_at: float | None = None
        self._project = project
        self._receiver: Receiver | None = None
        self._began = False

    def find_index(self) -> SearchIndex | None:
        """The receiver, if it can be searched and compared."""
        receiver = self.call(self._get)
        return receiver if isinstance(receiver, SearchIndex) else None

    def begin(self, source: str, run: int) -> None:
        """Tells it that deliveries of a run begin."""
        if not self._began:
            self.call(lambda: self._get().begin(source, run))
            self._began = True

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        """Hands documents or removals over; returns a receipt for each."""
        return self.call(lambda: self._check_receipts(batch, self._get().deliver(batch)))

    def end(self, outcome: str) -> None:
        """Tells it how the run ended, if it was told of its beginning, and closes it."""
        try:
            if self._began:
                self._began = False
                self._once(lambda: self._get().end(outcome))
        finally:
            receiver, self._receiver = self._receiver, None
            if isinstance(receiver, SearchIndex):
                receiver.close()

    def call(self, work: Callable[[], T]) -> T:
        """What ``work`` answers, repeated while the receiver is away."""
        return self.retry.attempt(lambda: self._once(work))

    def _once(self, work: Callable[[], T]) -> T:
        self.called_at = clock.monotonic()
        try:
            return _call_user_code(work)
        except IndexUnavailable as error:
            raise IndexUnavailable(self._name_place(error), retry_after_seconds=error.retry_after_seconds) from error
        except (DeliveryError, ConfigurationError) as error:
            raise IndexMisconfigured(self._name_place(error)) from error
        except Exception as error:
            # The class is one of a user's own, and may raise anything, or its disk is full: nothing that it was given counts.
            logger.debug("%s", self._place, exc_info=True)
            raise IndexUnavailable(self._name_place(name_error(error))) from error
        finally:
            self.called_at = None

    def _check_receipts(self, batch: Batch, answer: Any) -> list[Receipt]:
        """The receipts of a batch, if they are that; raises IndexMisconfigured."""
        receipts = list(answer)
        given: list[IndexedDocument | Removal] = [*batch.documents, *batch.removals]
        if len(receipts) != len(given):
            raise IndexMisconfigured(f"it gave {len(receipts)} receipts for {len(given)}")
        checked: list[Receipt] = []
        for entry, receipt in zip(given, receipts, strict=True):
            if not isinstance(receipt, Receipt) or not isinstance(receipt.accepted, bool):
                raise IndexMisconfigured(f"it gave a {type(receipt).__name__} in place of a Receipt")
            if receipt.id != entry.id:
                raise IndexMisconfigured("its receipts are not in the order of what it was given")
            error = None if receipt.error is None else _clean(receipt.error)
            checked.append(Receipt(entry.id, accepted=receipt.accepted, error=error))
        return checked

    @property
    def _place(self) -> str:
        return f"{FILE}: receivers.{self.name}"

    def _name_place(self, error: object) -> str:
        """The text of an error on one line; that of an index names the table ``[index]``."""
        text = _clean(error).replace(f"{FILE}: index.", f"{self._place}.", 1)
        return text if text.startswith(self._place) else f"{self._place}: {text}"

    def _get(self) -> Receiver:
        if self._receiver is None:
            self._receiver = open_receiver(self._project, self.name)
        return self._receiver


def _call_user_code(work: Callable[[], T]) -> T:
    """What ``work`` answers; whatever it raises is an Exception, but for Ctrl-C in the main thread, where signals come."""
    try:
        with ordinary_errors():
            return work()
    except KeyboardInterrupt as error:
        if threading.current_thread() is threading.main_thread():
            raise
        raise UserCodeError(error) from error


def _clean(error: object) -> str:
    """A text as a store can have it and a command may show it, on one line: it may quote the address of a server."""
    text = redact(str(error)).encode("utf-8", "backslashreplace").decode("utf-8")
    return to_one_line(text.replace("\0", "\\0"))
