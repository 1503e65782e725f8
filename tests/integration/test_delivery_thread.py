"""The delivery thread knows when nothing is left to send (X-R13)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.delivery import delivery_queue
from searchcrawl.delivery.delivery_extension import DeliveryThread
from tests.filled_store import CachedStore
from tests.redelivering import NAMES, Hurrying, Solid, away


@pytest.fixture
def filled(tmp_path: Path, store_url: str) -> Iterator[CachedStore]:
    store = CachedStore(tmp_path, store_url)
    yield store
    store.close()


def begin(filled: CachedStore, receiver: Any = None) -> DeliveryThread:
    cache = DocumentCache(SegmentFolder(filled.project.cache_dir / "demo"))
    return DeliveryThread(filled.run, receiver or filled.index, cache, retry_seconds=0)


def wait_until_sent(delivery: DeliveryThread) -> bool:
    for _ in range(500):
        if delivery.has_sent():
            return True
        time.sleep(0.01)
    return False


def test_delivery_when_asked_whether_all_is_sent_then_sends_what_waits(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    delivery = begin(filled)

    sent = wait_until_sent(delivery)
    indexed = filled.indexed_urls()
    delivery.finish("finished")

    assert (sent, indexed) == (True, list(NAMES))


def test_delivery_when_the_writer_has_sealed_a_batch_and_not_submitted_it_then_not_all_is_sent(
    filled: CachedStore,
) -> None:
    delivery = begin(filled)
    assert wait_until_sent(delivery)
    filled.fetch(*NAMES)

    batch = delivery_queue.seal_batch(filled.run)
    assert batch is not None
    asked = [delivery.has_sent() for _ in range(3)]
    delivery.submit(batch)
    sent = wait_until_sent(delivery)
    delivery.finish("finished")

    assert (asked, sent) == ([False, False, False], True)


def test_delivery_when_the_index_is_away_then_nobody_waits_for_it(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    delivery = begin(filled, Solid(filled, before=away))

    sent = wait_until_sent(delivery)
    delivery.finish("finished")

    assert sent
    assert filled.run.delivery_failure is not None


def test_delivery_when_pages_are_fetched_no_more_then_the_index_may_hurry_and_not_before(filled: CachedStore) -> None:
    index = Hurrying(filled)
    filled.fetch(*NAMES[:2])
    delivery = begin(filled, index)
    assert wait_until_sent(delivery)
    before = list(index.hurried)
    filled.fetch(*NAMES[2:])

    delivery.finish("finished")

    assert (before, index.hurried) == ([], [2])
    assert filled.indexed_urls() == list(NAMES)
