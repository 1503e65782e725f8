"""Writes deltas: what has changed in the index since the last delta of a feed, removals included (K4).

A delta is the difference between the index and what all deltas before it add up to, by the version of each document, so it
does not matter which command changed the index, or how often a run was killed: ``feed_table`` has the steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from searchcrawl import clock, urls
from searchcrawl.cache.opening import open_cache
from searchcrawl.delivery.documents import read_indexed
from searchcrawl.delivery.export import open_part, open_writer, path_of_part, show, sync
from searchcrawl.delivery.file_formats import DELETED, Writer
from searchcrawl.durable import sync_folder
from searchcrawl.failpoints import reach
from searchcrawl.items import IndexedDocument
from searchcrawl.run import Run
from searchcrawl.sources.feeds_table import FeedFile
from searchcrawl.store.documents import export_table, feed_table
from searchcrawl.store.documents.feed_table import FeedDocument, FeedRow


class Delta(NamedTuple):
    """What a delta has, and how many changes are not in it; ``path`` is None where nothing has changed."""

    path: Path | None
    changed: int
    removed: int
    lost: int


def list_known(run: Run) -> list[FeedRow]:
    """All feeds of a source that have deltas."""
    return run.read(partial(feed_table.list_feeds, source_id=run.source_id))


def finish_delta(run: Run, feed: FeedRow) -> None:
    """Gives a delta that counts its name, unless it has it or was taken away, and takes over what it says.

    A feed that the source file has no more is forgotten then. Raises OSError, StoreError.
    """
    _finish(run, feed)
    named = run.source.feeds.get(feed.name)
    if named is None or not named.delta:
        while run.write(partial(feed_table.drop_page, source_id=run.source_id, feed_id=feed.id)):
            pass


def drop_parts(run: Run, feed: FeedFile) -> None:
    """Removes files of a feed that a process began and that will never count."""
    kept = {path_of_part(run.project.path(each.file)) for each in list_known(run) if each.file is not None}
    for path in run.project.path(feed.name).parent.iterdir():
        begun = path.with_name(path.name.removeprefix(".").removesuffix(".part"))
        if (
            path == path_of_part(begun)
            and feed.find_number(run.source.name, begun.name) is not None
            and path not in kept
        ):
            path.unlink(missing_ok=True)


def write_delta(run: Run, feed: FeedFile) -> Delta:
    """Writes the next delta of a feed; raises OSError, CacheError, StoreError. Then the next run writes what this one did not."""
    row = run.write(partial(feed_table.find_or_add, source_id=run.source_id, name=feed.name))
    # First of all: what is staged is that of this file, if there is one.
    _finish(run, row)
    while run.write(partial(feed_table.unstage_page, source_id=run.source_id, feed_id=row.id)):
        pass
    _move(run, row)
    # Also above those of a feed that was forgotten since: none is overwritten.
    there = [path.name for path in run.project.path(feed.name).parent.iterdir()]
    number = max([row.number, *(feed.find_number(run.source.name, name) or 0 for name in there)]) + 1
    file = feed.render(run.source.name, clock.now(), number)
    path = run.project.path(file)
    part = path_of_part(path)
    with open_part(part) as opened:
        with open_writer(run, opened, feed.format, delta=True) as writer:
            removed = sum(_write_removals(run, row, writer))
            changed, lost = _write_changes(run, row, writer)
        sync(opened)
        reach("feed.written")
    if not changed and not removed:
        part.unlink()
        return Delta(None, 0, 0, lost)
    # The name of the file that is written is to be there before the delta counts.
    sync_folder(path.parent)
    run.write(partial(feed_table.note_file, feed_id=row.id, file=file, number=number))
    reach("feed.noted")
    _finish(run, row._replace(file=file))
    return Delta(path, changed, removed, lost)


def _move(run: Run, feed: FeedRow) -> None:
    after: tuple[int, int] | None = (0, 0)
    move = partial(feed_table.move_page, source_id=run.source_id, feed_id=feed.id)
    while after is not None:
        after = run.write(partial(move, after=after))


def _write_removals(run: Run, feed: FeedRow, writer: Writer) -> Iterator[int]:
    after = (0, 0)
    find = partial(feed_table.find_gone, source_id=run.source_id, feed_id=feed.id)
    while gone := run.read(partial(find, after=after)):
        after = gone[-1].url_id, gone[-1].url_key
        for each in gone:
            writer.write({"id": f"{run.source.name}:{each.digest.hex()}", DELETED: True})
        _stage(run, feed, gone)
        yield len(gone)


def _write_changes(run: Run, feed: FeedRow, writer: Writer) -> tuple[int, int]:
    """Writes the documents that the deltas so far do not have like this; returns how many, and how many it cannot."""
    changed = 0
    lost = run.read(partial(export_table.count_unreadable, source_id=run.source_id, feed_id=feed.id))
    cache = open_cache(run.project, run.source.name)
    for part in read_indexed(run, cache, feed_id=feed.id):
        for _, document in part.documents:
            writer.write(show(document, [(DELETED, False)]))
        _stage(run, feed, [_describe(url_id, document) for url_id, document in part.documents])
        changed += len(part.documents)
        lost += len(part.lost)
    return changed, lost


def _describe(url_id: int, document: IndexedDocument) -> FeedDocument:
    digest = bytes.fromhex(document.id.rpartition(":")[2])
    return FeedDocument(url_id, urls.key(document.fields["access_url"]), digest, document.fields["crawl_version"])


def _stage(run: Run, feed: FeedRow, found: list[FeedDocument]) -> None:
    run.write(partial(feed_table.stage, source_id=run.source_id, feed_id=feed.id, found=found))
    reach("feed.staged")


def _finish(run: Run, feed: FeedRow) -> None:
    if feed.file is None:
        return
    path = run.project.path(feed.file)
    part = path_of_part(path)
    if part.exists():
        part.replace(path)
        sync_folder(path.parent)
    reach("feed.named")
    while run.write(partial(feed_table.settle_page, source_id=run.source_id, feed_id=feed.id)):
        reach("feed.settled")
