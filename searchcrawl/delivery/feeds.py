"""Writes the files of ``[feeds]`` and of ``crawl -o`` at the end of a run, under its lease: no other command writes the index.

A file that cannot be written costs neither the run nor the other files; the next run writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from searchcrawl import clock
from searchcrawl.delivery.deltas import drop_parts, finish_delta, list_known, write_delta
from searchcrawl.delivery.export import export
from searchcrawl.exceptions import CacheError, LeaseLost, StoreError
from searchcrawl.run import Run
from searchcrawl.sources.feeds_table import FeedFile, list_files
from searchcrawl.sources.project import TRIAL_INDEX
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

_LOST: Final = "the cache does not have what the index has"


def write_files(run: Run) -> None:
    """Writes all files of a run that has delivered; notes and a failure are in ``run.files``, and no error is raised."""
    if run.project.index.type == TRIAL_INDEX:
        return
    if run.shutdown.failure is not None or run.delivery_failure is not None or not run.delivers:
        _report_waiting(run)
        return
    try:
        write_feeds(run)
        for path, kind in run.files.asked:
            _try(run, str(path), partial(_write_asked, run, path, kind))
    except (StoreError, LeaseLost) as error:
        logger.warning("the files of documents cannot be written: %s", error)
        run.shutdown.fail(error)


def write_feeds(run: Run) -> None:
    """Writes the feeds of a source; a failure of a file is in ``run.files``. Raises StoreError, LeaseLost."""
    # First of all: until then what they have staged is that of their files.
    for known in list_known(run):
        _try(run, f"the feed {known.name}", partial(finish_delta, run, known))
    for feed in list_files(run.source.feeds):
        _try(run, f"the feed {feed.name}", partial(_write_feed, run, feed))


def _report_waiting(run: Run) -> None:
    """The index may have something else than the table says, or gets nothing of this run: files stay as they are."""
    for path, _ in run.files.asked:
        run.files.notes.append(f"{path} is not written: documents wait for the index")
    for name in run.source.feeds:
        logger.warning("the feed %s is not written: documents wait for the index", name)


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
    if not feed.delta:
        path = run.project.path(feed.render(run.source.name, clock.now(), 0))
        written, lost = export(run, path, feed.format)
        logger.info("documents in %s: %d", path, written)
    else:
        delta = write_delta(run, feed)
        lost = delta.lost
        if delta.path is not None:
            logger.info("documents in %s: %d changed, %d removed", delta.path, delta.changed, delta.removed)
    if lost:
        logger.warning("documents that are not in the feed %s: %d: %s", feed.name, lost, _LOST)


def _write_asked(run: Run, path: Path, kind: str) -> None:
    written, lost = export(run, path, kind)
    run.files.notes.append(f"{counted(written, 'document', 'documents')} in {path}")
    if lost:
        run.files.notes.append(f"{counted(lost, 'is', 'are')} not in it: {_LOST} (cache.max_gb, cache.preserve)")
