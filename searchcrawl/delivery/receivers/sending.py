"""The receivers of a source besides the index: each gets its part in a thread of its own, and holds up nothing (L14)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from searchcrawl import clock
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.delivery.receivers.door import Door
from searchcrawl.delivery.receivers.stream import Stream
from searchcrawl.exceptions import DeliveryError, IndexMisconfigured, IndexUnavailable, SearchcrawlError
from searchcrawl.run import Run
from searchcrawl.sources.project import FILE, TRIAL_INDEX
from searchcrawl.sources.receivers import list_feeds, list_receivers
from searchcrawl.store import receiver_table
from searchcrawl.user_code import name_error

logger = logging.getLogger(__name__)

#: A call that takes longer, once nothing else is left to do, is not waited for any more; or the patience with an index.
_LEAST_WAIT_SECONDS: Final = 10.0
_LEAST_WAIT_OF_INDEX_SECONDS: Final = 120.0
_PUSH: Final = "push"
_ALL: Final = "all"


class _Sending:
    """One receiver: a thread hands it what is new whenever it is woken, and the rest at the end."""

    def __init__(self, run: Run, cache: DocumentCache, name: str, *, retry_seconds: float, is_crawl: bool) -> None:
        self.name = name
        self.sent = 0
        self._run = run
        self._table = run.project.receivers[name]
        self._reports = is_crawl and self._table.report == _ALL
        self._retry = IndexRetry(retry_seconds)
        self._stream = Stream(run, Door(run.project, name, self._retry), cache)
        # Indexes have time limits of their own.
        least = _LEAST_WAIT_SECONDS if self._table.class_ is not None else _LEAST_WAIT_OF_INDEX_SECONDS
        self._wait_seconds = max(least, 2 * retry_seconds)
        self._woken = threading.Event()
        self._outcome: str | None = None
        self._thread = threading.Thread(target=self._work, name=f"receiver {name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Tells it that something is new."""
        self._woken.set()

    def begin_end(self, outcome: str) -> None:
        """Tells it that nothing more comes, and how the run ended."""
        self._outcome = outcome
        self._retry.limit_to_end()
        self._woken.set()

    def wait(self) -> None:
        """Waits for its end; not for a call that does not come back."""
        while self._thread.is_alive():
            self._thread.join(0.2)
            called_at = self._stream.door.called_at
            if called_at is not None and clock.monotonic() - called_at > self._wait_seconds:
                logger.error("the receiver %s does not answer: it is left behind", self.name)
                self._stream.note_error(IndexUnavailable(f"{FILE}: receivers.{self.name}: it does not answer"))
                return

    def _work(self) -> None:
        try:
            while self._outcome is None:
                self._woken.wait()
                self._woken.clear()
                if self._outcome is None and self._table.mode == _PUSH:
                    self._send()
            self._end(self._outcome)
        except DeliveryError as error:
            self._leave(error)
        except SearchcrawlError as error:
            logger.warning("the delivery to the receiver %s stops: %s", self.name, error)
            self._run.shutdown.fail(error)
        except Exception as error:
            # An error of ours, and not of the receiver: it is no reason to end the run.
            logger.exception("the delivery to the receiver %s stops", self.name)
            self._leave(IndexMisconfigured(f"{FILE}: receivers.{self.name}: {name_error(error)}"))

    def _send(self, *, looks: bool = False) -> None:
        self.sent += self._stream.send(is_over=lambda: self._run.shutdown.failure is not None, looks=looks)

    def _end(self, outcome: str) -> None:
        stream = self._stream
        if self._run.shutdown.failure is None:
            self._send(looks=True)
        if outcome == "finished" and self._reports:
            stream.report_unchanged()
        stream.door.end(outcome)

    def _leave(self, error: DeliveryError) -> None:
        """It is away, or no receiver: the next run goes on where this one was."""
        logger.warning("the receiver %s gets the rest later: %s", self.name, error)
        try:
            self._stream.note_error(error)
            self._stream.door.end("failed")
        except DeliveryError as again:
            logger.debug("the receiver %s: %s", self.name, again)
        except SearchcrawlError as failed:
            self._run.shutdown.fail(failed)


class Receivers:
    """All receivers of a run besides the index; any thread may call the methods.

    Only at the end of a crawl documents are reported that have not changed.
    """

    def __init__(
        self, run: Run, cache: DocumentCache, names: Sequence[str], *, retry_seconds: float, is_crawl: bool
    ) -> None:
        self._sendings = [_Sending(run, cache, name, retry_seconds=retry_seconds, is_crawl=is_crawl) for name in names]

    def wake(self) -> None:
        """Tells them that something is new."""
        for sending in self._sendings:
            sending.wake()

    def finish(self, outcome: str) -> int:
        """Has each get the rest, and waits for it; one that is away gets it in the next run. Returns how much they took."""
        for sending in self._sendings:
            sending.begin_end(outcome)
        for sending in self._sendings:
            sending.wait()
        return sum(sending.sent for sending in self._sendings)


def note_receivers(run: Run) -> tuple[str, ...]:
    """The receivers of a run's source besides its feeds; those that it has no more lose their place.

    None in a run that delivers nothing.
    """
    if not run.delivers or run.project.index.type == TRIAL_INDEX:
        return ()
    names = list_receivers(run.project, run.source)
    feeds = [feed.receiver for feed in list_feeds(run.project, run.source)]
    known = {row.name for row in run.read(receiver_table.load, source_id=run.source_id)}
    if known != {*names, *feeds}:
        run.write(receiver_table.keep, source_id=run.source_id, names=[*names, *feeds])
    return names


def send_rest(run: Run, cache: DocumentCache) -> int:
    """Hands the receivers of a source what they do not have, after a command between crawls; returns how much they took.

    The command is about something else: one that is away is not waited for, and gets it later. Raises StoreError, LeaseLost,
    CacheError.
    """
    names = note_receivers(run)
    if not names:
        return 0
    sent = Receivers(run, cache, names, retry_seconds=0, is_crawl=False).finish("finished")
    if run.shutdown.failure is not None:
        raise run.shutdown.failure
    return sent


@contextmanager
def open_stream(run: Run, cache: DocumentCache, name: str, *, retry_seconds: float) -> Iterator[Stream]:
    """What one receiver gets, for a command between crawls; the receiver is told how it ended."""
    retry = IndexRetry(retry_seconds)
    retry.limit_to_end()
    stream = Stream(run, Door(run.project, name, retry), cache)
    outcome = "failed"
    try:
        yield stream
        outcome = "finished"
    finally:
        try:
            stream.door.end(outcome)
        except DeliveryError as error:
            logger.warning("the receiver %s: %s", name, error)
