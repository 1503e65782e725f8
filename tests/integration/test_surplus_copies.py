"""A copy whose survivor is in the index leaves it, also where a process died before it came to that (F2, F3)."""

from __future__ import annotations

from sqlalchemy import update

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.delivery.delivery_extension import DeliveryThread
from searchcrawl.store.schema import documents
from searchcrawl.store.states import DocumentState
from tests.filled_store import CachedStore


def test_delivery_when_a_process_died_before_a_copy_was_removed_then_the_next_one_removes_it(
    cached: CachedStore,
) -> None:
    cached.fetch("/a", "/copy")
    cached.send()
    with cached.database.write_once() as transaction:
        copy = {"state": int(DocumentState.WITHHELD), "code": 909, "duplicate_of": cached.ids["/a"], "batch_id": None}
        transaction.execute(update(documents).where(documents.c.url_id == cached.ids["/copy"]).values(copy))

    delivery = DeliveryThread(
        cached.run, cached.index, DocumentCache(SegmentFolder(cached.project.cache_dir / "demo")), retry_seconds=0
    )
    delivery.finish("finished")

    assert cached.indexed_urls() == ["/a"]
    assert cached.run.shutdown.failure is None
