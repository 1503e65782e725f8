"""A copy whose survivor is in the index leaves it, also where a process died before it came to that (F2, F3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.delivery.delivery_extension import DeliveryThread
from searchcrawl.store.schema import documents
from searchcrawl.store.states import DocumentState
from tests.filled_store import CachedStore


@pytest.fixture
def filled(tmp_path: Path, store_url: str) -> Iterator[CachedStore]:
    store = CachedStore(tmp_path, store_url)
    yield store
    store.close()


def test_delivery_when_a_process_died_before_a_copy_was_removed_then_the_next_one_removes_it(
    filled: CachedStore,
) -> None:
    filled.fetch("/a", "/copy")
    filled.send()
    with filled.database.write_once() as transaction:
        copy = {"state": int(DocumentState.WITHHELD), "code": 909, "duplicate_of": filled.ids["/a"], "batch_id": None}
        transaction.execute(update(documents).where(documents.c.url_id == filled.ids["/copy"]).values(copy))

    delivery = DeliveryThread(
        filled.run, filled.index, DocumentCache(SegmentFolder(filled.project.cache_dir / "demo")), retry_seconds=0
    )
    delivery.finish("finished")

    assert filled.indexed_urls() == ["/a"]
    assert filled.run.shutdown.failure is None
