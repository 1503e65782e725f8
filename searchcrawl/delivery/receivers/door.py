"""A receiver besides the index, as it is called: each error of it is one of delivery, and names it (L14)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.exceptions import ConfigurationError, DeliveryError, DiskFull, IndexMisconfigured, IndexUnavailable
from searchcrawl.index.opening import open_receiver
from searchcrawl.index.receiver import Batch, HurryingReceiver, Receipt, Receiver, SearchIndex
from searchcrawl.own_code import name_error, ordinary_errors
from searchcrawl.sources.project import FILE, Project

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Door:
    """One receiver of a project by its name; it is made by the first call that needs it.

    Calls that fail because it is away are repeated as ``retry`` says. Raises IndexUnavailable, IndexMisconfigured.
    """

    def __init__(self, project: Project, name: str, retry: IndexRetry) -> None:
        self.name = name
        self.retry = retry
        self._project = project
        self._receiver: Receiver | None = None
        self._began = False

    @property
    def index(self) -> SearchIndex | None:
        """The receiver, if it can be searched and compared."""
        receiver = self._get()
        return receiver if isinstance(receiver, SearchIndex) else None

    def begin(self, source: str, run: int) -> None:
        """Tells it that deliveries of a run begin."""
        if not self._began:
            self.call(lambda: self._get().begin(source, run))
            self._began = True

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        """Hands documents or removals over; returns a receipt for each."""
        receipts = self.call(lambda: list(self._get().deliver(batch)))
        expected = len(batch.documents) + len(batch.removals)
        if len(receipts) != expected:
            raise IndexMisconfigured(f"{self._place}: it gave {len(receipts)} receipts for {expected}")
        return receipts

    def hurry(self) -> None:
        """Tells it that only deliveries are left."""
        receiver = self._get()
        if isinstance(receiver, HurryingReceiver):
            receiver.hurry()

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
        try:
            with ordinary_errors():
                return work()
        except IndexUnavailable as error:
            raise IndexUnavailable(self._name_place(error), retry_after_seconds=error.retry_after_seconds) from error
        except (DeliveryError, ConfigurationError) as error:
            raise IndexMisconfigured(self._name_place(error)) from error
        except DiskFull:
            raise
        except Exception as error:
            # The class is one of a user's own, and may raise anything: nothing that it was given counts.
            logger.debug("%s", self._place, exc_info=True)
            raise IndexUnavailable(f"{self._place}: {name_error(error)}") from error

    @property
    def _place(self) -> str:
        return f"{FILE}: receivers.{self.name}"

    def _name_place(self, error: Exception) -> str:
        """The text of an error, which for an index names the table ``[index]``."""
        text = str(error).replace(f"{FILE}: index.", f"{self._place}.", 1)
        return text if text.startswith(self._place) else f"{self._place}: {text}"

    def _get(self) -> Receiver:
        if self._receiver is None:
            self._receiver = open_receiver(self._project, self.name)
        return self._receiver
