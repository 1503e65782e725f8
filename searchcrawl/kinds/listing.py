"""Lists what there is beside the crawl of a kind that is listed: a thread walks containers, the writer compares them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from searchcrawl.codes import describe_code
from searchcrawl.commit.part_sender import PartSender
from searchcrawl.counters import FAILED_LISTINGS
from searchcrawl.exceptions import CrawlEnds, SearchcrawlError
from searchcrawl.kind import load_named
from searchcrawl.listing.model import ListedPart, Lister, ListingEnd
from searchcrawl.run import Run
from searchcrawl.store import listing_table
from searchcrawl.store.listing_table import ROOTS

logger = logging.getLogger(__name__)


class StoredMarks:
    """What the store knows of the containers of a run (``listing.model.Marks``); of any thread."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def find_mark(self, url: str) -> str | None:
        """What its lister noted of a container."""
        return self._run.read(listing_table.find_mark, self._run.source_id, url)

    def has_entries(self, url: str) -> bool:
        """Whether rows are known that a container lists, or one below it."""
        return self._run.read(listing_table.has_entries, self._run.source_id, url)


class Listing:
    """The listing of one run: a thread that hands parts to the writer, no faster than they are written.

    ``hold`` keeps the crawl from ending until the returned function is called: once the last part is in the store.
    """

    def __init__(
        self, run: Run, *, submit: Callable[[ListedPart], bool], hold: Callable[[], Callable[[], None]]
    ) -> None:
        self._run = run
        self._hold = hold
        self._release: Callable[[], None] | None = None
        self._sender = PartSender(submit, lambda part: len(part.entries) + len(part.children))
        self._stopping = threading.Event()
        self._waiting = 0
        self._is_walked = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="listing", daemon=True)

    def hold(self) -> None:
        """Keeps the crawl from ending until everything is listed."""
        self._release = self._hold()

    def start(self) -> None:
        """Begins to list."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the listing; blocks. What was not listed to its end is listed by the next run."""
        self._stopping.set()
        self._sender.stop()
        if self._thread.ident is not None:
            self._thread.join()

    def on_committed(self, part: ListedPart) -> None:
        """Notes that a part is in the store; called by the writer thread."""
        self._sender.on_committed(part)
        with self._lock:
            self._waiting -= 1
        self._end_if_done()

    def _work(self) -> None:
        run = self._run
        try:
            lister: Lister = load_named(run.source.kind.lister)(
                run.source, run.project, StoredMarks(run), self._stopping.is_set
            )
            # What is no root any more is gone with all below, as any container that is not named.
            self._send(ListedPart(url=ROOTS, children=tuple(lister.list_roots()), end=ListingEnd(code=200, whole=True)))
            for part in lister.walk():
                self._send(part)
        except CrawlEnds:
            return
        except SearchcrawlError as error:
            run.shutdown.fail(error)
            return
        except Exception:
            # The edge of the thread: an error of the program ends no crawl, and says nothing about what is there.
            logger.exception("the listing stops")
            run.count(**{FAILED_LISTINGS: 1})
        with self._lock:
            self._is_walked = not self._stopping.is_set()
        self._end_if_done()

    def _send(self, part: ListedPart) -> None:
        if self._stopping.is_set():
            raise CrawlEnds
        end = part.end
        if end is not None and end.is_failure:
            logger.warning("%s cannot be listed (%s): %s", part.url, describe_code(end.code), end.error)
        with self._lock:
            self._waiting += 1
        self._sender.send(part)

    def _end_if_done(self) -> None:
        with self._lock:
            if not self._is_walked or self._waiting or self._release is None:
                return
            release, self._release = self._release, None
        release()
