"""A process that was frozen, and lost its source meanwhile, writes into no segment of the one that took over (D7)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from searchcrawl.admission.admit import Admission
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.cache.segment import SegmentWriter
from searchcrawl.commit import document_rows
from searchcrawl.commit.group_commit import GroupCommit, Listeners, WriterQueue
from searchcrawl.commit.review import Review
from searchcrawl.delivery.cache_space import CacheSpace
from searchcrawl.items import Document
from searchcrawl.store.documents import segment_table
from tests.factories import claim, document
from tests.filled_store import SITE, FilledStore


@pytest.fixture
def cache(filled: FilledStore) -> Iterator[DocumentCache]:
    cache = DocumentCache(SegmentFolder(filled.project.cache_dir / "demo"), filled.project.cache_dir)
    yield cache
    cache.close()


@pytest.fixture
def frozen(cache: DocumentCache) -> Iterator[SegmentWriter]:
    """The segment as the process has it that was frozen before its first group was committed."""
    writer = cache.open_writer(1, 0)
    yield writer
    writer.close()


def taken_over(filled: FilledStore, cache: DocumentCache, waiting: WriterQueue) -> GroupCommit:
    run = filled.run

    def failed(error: Exception) -> None:
        run.shutdown.failure = error

    admission = Admission(source_id=run.source_id, boundary=run.boundary, max_urls=0, known_urls=0)
    return GroupCommit(
        run,
        cache,
        admission,
        waiting,
        traps=TrapWatch(run.source_id, trap_after=0, max_urls_per_pattern=0),
        review=Review(run, admission, lambda: lambda: None),
        listeners=Listeners(
            in_flight=lambda: 0,
            hold=lambda: lambda: None,
            on_commit=lambda visits, hosts: None,
            on_part=lambda _: None,
            on_batch=lambda _: None,
            on_failure=failed,
        ),
    )


def visited(filled: FilledStore, path: str) -> Document:
    filled.admit(path)
    return document(f"page {path}", claim=claim(filled.ids[path], url=SITE + path))


def body_of(filled: FilledStore, cache: DocumentCache, path: str) -> bytes:
    place = filled.find_place(path)
    assert place is not None
    return cache.read_page(place, url=SITE + path).body


def test_record_when_a_frozen_process_goes_on_writing_then_it_is_whole(
    filled: FilledStore, cache: DocumentCache, frozen: SegmentWriter
) -> None:
    waiting = WriterQueue()
    writer = taken_over(filled, cache, waiting)
    waiting.submit(visited(filled, "/taken-over"))
    writer.finish()

    for number in range(3):
        frozen.append(document_rows.build_record(visited(filled, f"/frozen-{number}")))
    frozen.sync()

    assert body_of(filled, cache, "/taken-over") == b"page /taken-over"
    assert filled.run.shutdown.failure is None


def test_segment_when_it_is_begun_in_place_of_another_then_it_is_not_given_up(
    filled: FilledStore, cache: DocumentCache, frozen: SegmentWriter
) -> None:
    project = filled.run.project
    without_preserve = project.cache.model_copy(update={"preserve": False})
    filled.run.project = project.model_copy(update={"cache": without_preserve})
    waiting = WriterQueue()
    writer = taken_over(filled, cache, waiting)

    # An earlier batch was delivered before the first page came.
    CacheSpace(filled.run, cache).free()
    waiting.submit(visited(filled, "/page"))
    writer.finish()

    assert body_of(filled, cache, "/page") == b"page /page"
    assert filled.database.read(segment_table.find_open, filled.run.source_id)[0] == 2
