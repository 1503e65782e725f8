"""Writes the files of ``[feeds]`` and of ``crawl -o`` at the end of a run, under its lease: no other command writes the index.

A file that cannot be written costs neither the run nor the other files; the next run writes it.

A delta is what has changed in the index since the last one of its feed, removals included (K4). It is what lies between two
places in the change log: a feed is a receiver that writes files. Once the content of a file is on the disk one transaction
notes the file and the place; then the file gets its name. Before that it means nothing.

At the end of a crawl in a helper thread, once the delivery thread has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from searchcrawl import clock, urls
from searchcrawl.cache.opening import open_cache
from searchcrawl.delivery.documents import DocumentReader
from searchcrawl.delivery.export import DELETED, Writer, export, open_part, open_writer, path_of_part, show, sync
from searchcrawl.delivery.receivers.sending import note_receivers
from searchcrawl.durable import sync_folder
from searchcrawl.exceptions import CacheError, LeaseLost, StoreError
from searchcrawl.failpoints import reach
from searchcrawl.run import Run
from searchcrawl.sources.project import TRIAL_INDEX
from searchcrawl.sources.receivers import list_feeds
from searchcrawl.sources.receivers_table import FeedFile
from searchcrawl.store import log_table, receiver_table, source_table
from searchcrawl.store.log_table import LoggedDocument, LogPlace
from searchcrawl.store.receiver_table import Fault, ReceiverRow
from searchcrawl.store.states import DELIVERED, DocumentState
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
    for row in run.read(receiver_table.load, source_id=run.source_id):
        _try(run, f"the feed {row.name}", partial(_finish_delta, run, row))
    # Those that are in no file any more are forgotten now.
    note_receivers(run)
    for feed in list_feeds(run.project, run.source):
        if feed.delta and not _is_paused(run, feed):
            _try(run, f"the feed {feed.name}", partial(_write_delta, run, feed))


def _is_paused(run: Run, feed: FeedFile) -> bool:
    return run.read(receiver_table.require, source_id=run.source_id, name=feed.receiver).is_paused


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
    _drop_parts(run, feed)
    path = run.project.path(feed.render(run.source.name, clock.now(), 0))
    last = run.read(source_table.find, run.source_id, "log_seq")
    written, lost = export(run, path, feed.format)
    note = partial(
        receiver_table.note_file, source_id=run.source_id, name=feed.receiver, file=None, number=0, faults={}
    )
    run.write(note, place=LogPlace(last, _ALL_ROWS))
    logger.info("documents in %s: %d", path, written)
    _warn_of_lost(feed, lost)


def _warn_of_lost(feed: FeedFile, lost: int) -> None:
    if lost:
        logger.warning("documents that are not in the feed %s: %d: %s", feed.name, lost, _LOST)


def _write_asked(run: Run, path: Path, kind: str) -> None:
    written, lost = export(run, path, kind)
    run.files.notes.append(f"{counted(written, 'document', 'documents')} in {path}")
    if lost:
        run.files.notes.append(f"{counted(lost, 'is', 'are')} not in it: {_LOST} (cache.max_gb, cache.preserve)")


#: So many that could not be written before are tried again.
_MOST_LATER: Final = 10_000
#: The index has the document as its row and its record say, or gets it once it is there again.
_IN_INDEX: Final = DELIVERED | {DocumentState.SENDING}


@dataclass(slots=True)
class _Written:
    """What was written so far, and how far the log was read."""

    place: LogPlace
    #: the ids of documents whose rows are gone, and that did not come again
    gone: set[str] = field(default_factory=set)
    #: rows that could not be written before
    later: list[int] = field(default_factory=list)
    changed: int = 0
    removed: int = 0
    faults: dict[int, Fault] = field(default_factory=dict)


def _finish_delta(run: Run, row: ReceiverRow) -> None:
    """Gives a delta that counts its name, unless it has it or was taken away. Raises OSError, StoreError."""
    if row.file is None:
        return
    path = run.project.path(row.file)
    part = path_of_part(path)
    if part.exists():
        part.replace(path)
        sync_folder(path.parent)
    reach("feed.named")
    run.write(receiver_table.note, source_id=run.source_id, name=row.name, file=None)


def _drop_parts(run: Run, feed: FeedFile) -> None:
    """Removes files of a feed that a process began and that will never count."""
    rows = run.read(receiver_table.load, source_id=run.source_id)
    kept = {path_of_part(run.project.path(each.file)) for each in rows if each.file is not None}
    for path in run.project.path(feed.name).parent.iterdir():
        begun = path.with_name(path.name.removeprefix(".").removesuffix(".part"))
        if (
            path == path_of_part(begun)
            and feed.find_number(run.source.name, begun.name) is not None
            and path not in kept
        ):
            path.unlink(missing_ok=True)


def _write_delta(run: Run, feed: FeedFile) -> None:
    """Writes the next delta of a feed; raises OSError, CacheError, StoreError. Then the next run writes what this one did not."""
    _drop_parts(run, feed)
    row = run.read(receiver_table.require, source_id=run.source_id, name=feed.receiver)
    _finish_delta(run, row)
    # Also above those of a feed that was forgotten since: none is overwritten.
    there = [path.name for path in run.project.path(feed.name).parent.iterdir()]
    number = max([row.number, *(feed.find_number(run.source.name, name) or 0 for name in there)]) + 1
    file = feed.render(run.source.name, clock.now(), number)
    path = run.project.path(file)
    part = path_of_part(path)
    with open_part(part) as opened:
        with open_writer(run, opened, feed.format, delta=True) as writer:
            written = _write_entries(run, row, writer)
        sync(opened)
        reach("feed.written")
    note = partial(
        receiver_table.note_file,
        source_id=run.source_id,
        name=row.name,
        place=written.place,
        faults=written.faults,
        later=written.later,
    )
    if written.changed or written.removed:
        # The name of the file that is written is to be there before the delta counts.
        sync_folder(path.parent)
        run.write(note, file=file, number=number)
        reach("feed.noted")
        _finish_delta(run, replace(row, file=file))
        logger.info("documents in %s: %d changed, %d removed", path, written.changed, written.removed)
    else:
        part.unlink()
        run.write(note, file=None, number=row.number)
    _warn_of_lost(feed, len(written.faults))


def _write_entries(run: Run, row: ReceiverRow, writer: Writer) -> _Written:
    """Writes what the log has after the place of a feed."""
    written, last = _Written(row.place), row.place
    for tombstone in run.read(log_table.find_tombstones, source_id=run.source_id, after=row.place.seq, up_to=None):
        # What came and went since the last delta is in none.
        if tombstone.first_seq is None or tombstone.first_seq <= row.place.seq:
            written.gone.add(f"{run.source.name}:{tombstone.digest.hex()}")
        last = LogPlace(tombstone.seq)
    reader = DocumentReader(run, open_cache(run.project, run.source.name))
    later = run.read(log_table.find_later, source_id=run.source_id, name=row.name, limit=_MOST_LATER)
    _write_documents(run, row, later, reader, writer, written)
    written.later = [each.row.url_id for each in later if each.row.url_id not in written.faults]
    while page := run.read(log_table.find_page, source_id=run.source_id, after=written.place):
        _write_documents(run, row, page, reader, writer, written)
        _write_removals(run, row, page, writer, written)
        written.place = page[-1].place
    for document_id in sorted(written.gone):
        writer.write({"id": document_id, DELETED: True})
        written.removed += 1
    written.place = max(written.place, last)
    return written


def _write_documents(
    run: Run,
    row: ReceiverRow,
    page: Sequence[LoggedDocument],
    reader: DocumentReader,
    writer: Writer,
    written: _Written,
) -> None:
    there = {each.row.url_id: each for each in page if each.is_shown}
    readable = [each for each in there.values() if each.can_be_sent and each.state in _IN_INDEX]
    lost = there.keys() - {each.row.url_id for each in readable}
    for part in reader.read([each.row for each in readable]):
        lost |= set(part.lost)
        for url_id, document in part.documents:
            version = {"crawl_version": there[url_id].indexed_version}
            writer.write(show(replace(document, fields={**document.fields, **version}), [(DELETED, False)]))
            written.gone.discard(document.id)
            written.changed += 1
    find = partial(receiver_table.find_unknown, source_id=run.source_id, name=row.name, url_ids=sorted(lost))
    never = run.read(find) if lost else set()
    for url_id in lost:
        known = there[url_id].is_known_at(row.place) and url_id not in never
        written.faults[url_id] = Fault(there[url_id].seq, log_table.NOT_NOW, known)


def _write_removals(
    run: Run, row: ReceiverRow, page: Sequence[LoggedDocument], writer: Writer, written: _Written
) -> None:
    """Writes what has gone and is in the deltas so far: not what came and went since, or never was in one."""
    gone = [each for each in page if not each.is_shown and (each.first_seq is None or each.is_known_at(row.place))]
    never = run.read(
        receiver_table.find_unknown, source_id=run.source_id, name=row.name, url_ids=[each.row.url_id for each in gone]
    )
    for each in gone:
        if each.row.url_id not in never:
            document_id = urls.document_id(run.source.name, each.row.url)
            writer.write({"id": document_id, DELETED: True})
            written.gone.discard(document_id)
            written.removed += 1
