"""Writes the files of ``[feeds]`` and of ``crawl -o`` at the end of a run, under its lease: no other command writes the index.

A file that cannot be written costs neither the run nor the other files; the next run writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from searchcrawl import clock
from searchcrawl.delivery.deltas import drop_parts, finish_delta, write_delta
from searchcrawl.delivery.export import export
from searchcrawl.delivery.receivers.sending import note_receivers
from searchcrawl.exceptions import CacheError, LeaseLost, StoreError
from searchcrawl.run import Run
from searchcrawl.sources.feed_files import list_feeds
from searchcrawl.sources.feeds_table import FeedFile
from searchcrawl.sources.project import TRIAL_INDEX
from searchcrawl.store.receivers import log_counter, receiver_table
from searchcrawl.store.receivers.log_table import Place
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

#: The place after all entries with a number.
_ALL_ROWS: Final = (1 << 63) - 1
_LOST: Final = "the cache does not have what the index has"


def write_files(run: Run) -> None:
    """Writes all files of a run that has delivered; notes and a failure are in ``run.files``, and no error is raised."""
    if run.project.index.type == TRIAL_INDEX:
        return
    if run.shutdown.failure is not None or not run.delivers:
        _report_waiting(run, list_feeds(run.project, run.source))
        return
    try:
        if run.is_index_away:
            write_deltas(run)
            _report_waiting(run, [feed for feed in list_feeds(run.project, run.source) if not feed.delta])
            return
        write_feeds(run)
        for path, kind in run.files.asked:
            _try(run, str(path), partial(_write_asked, run, path, kind))
    except (StoreError, LeaseLost) as error:
        logger.warning("the files of documents cannot be written: %s", error)
        run.shutdown.fail(error)


def write_feeds(run: Run) -> None:
    """Writes the feeds of a source; a failure of a file is in ``run.files``. Raises StoreError, LeaseLost."""
    write_deltas(run)
    for feed in list_feeds(run.project, run.source):
        if not feed.delta and not _is_paused(run, feed):
            _try(run, f"the feed {feed.name}", partial(_write_feed, run, feed))


def write_deltas(run: Run) -> None:
    """The same, of feeds that are deltas."""
    for row in run.read(partial(receiver_table.load, source_id=run.source_id)):
        _try(run, f"the feed {row.name}", partial(finish_delta, run, row))
    # Those that are in no file any more are forgotten now.
    note_receivers(run)
    for feed in list_feeds(run.project, run.source):
        if feed.delta and not _is_paused(run, feed):
            _try(run, f"the feed {feed.name}", partial(_write_delta, run, feed))


def _is_paused(run: Run, feed: FeedFile) -> bool:
    find = partial(receiver_table.require, source_id=run.source_id, name=feed.receiver)
    return run.read(find).is_paused


def _report_waiting(run: Run, feeds: Iterable[FeedFile]) -> None:
    """The index may have something else than the table says, or gets nothing of this run: whole files stay as they are."""
    for path, _ in run.files.asked:
        run.files.notes.append(f"{path} is not written: documents wait for the index")
    for feed in feeds:
        logger.warning("the feed %s is not written: documents wait for the index", feed.name)


def _try(run: Run, name: str, write: Callable[[], None]) -> None:
    try:
        write()
    except (StoreError, LeaseLost):
        raise
    except Exception as error:
        # What a format cannot hold must not cost the end of the run, which is written next.
        logger.error("%s cannot be written: %s", name, error, exc_info=not isinstance(error, OSError | CacheError))
        run.files.notes.append(f"{name} cannot be written: {error}")
        run.files.failure = run.files.failure or error


def _write_feed(run: Run, feed: FeedFile) -> None:
    drop_parts(run, feed)
    path = run.project.path(feed.render(run.source.name, clock.now(), 0))
    last = run.read(partial(log_counter.find_last, source_id=run.source_id))
    written, lost = export(run, path, feed.format)
    note = partial(
        receiver_table.note_file, source_id=run.source_id, name=feed.receiver, file=None, number=0, faults={}
    )
    run.write(partial(note, place=Place(last, _ALL_ROWS)))
    logger.info("documents in %s: %d", path, written)
    _warn_of_lost(feed, lost)


def _write_delta(run: Run, feed: FeedFile) -> None:
    drop_parts(run, feed)
    delta = write_delta(run, feed)
    if delta.path is not None:
        logger.info("documents in %s: %d changed, %d removed", delta.path, delta.changed, delta.removed)
    _warn_of_lost(feed, delta.lost)


def _warn_of_lost(feed: FeedFile, lost: int) -> None:
    if lost:
        logger.warning("documents that are not in the feed %s: %d: %s", feed.name, lost, _LOST)


def _write_asked(run: Run, path: Path, kind: str) -> None:
    written, lost = export(run, path, kind)
    run.files.notes.append(f"{counted(written, 'document', 'documents')} in {path}")
    if lost:
        run.files.notes.append(f"{counted(lost, 'is', 'are')} not in it: {_LOST} (cache.max_gb, cache.preserve)")
