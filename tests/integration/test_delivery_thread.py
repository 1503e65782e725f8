"""The delivery thread knows when nothing is left to send (X-R13), and removes a copy whose survivor is in the index (F2, F3)."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import update

from searchcrawl.delivery import delivery_queue
from searchcrawl.delivery.delivery_extension import DeliveryThread
from searchcrawl.store.schema import documents
from searchcrawl.store.states import DocumentState
from tests.filled_store import CachedStore
from tests.redelivering import NAMES, Hurrying, Solid, away


def begin(cached: CachedStore, receiver: Any = None) -> DeliveryThread:
    return DeliveryThread(cached.run, receiver or cached.index, cached.cache, retry_seconds=0)


def wait_until_sent(delivery: DeliveryThread) -> bool:
    for _ in range(500):
        if delivery.has_sent():
            return True
        time.sleep(0.01)
    return False


def test_delivery_when_asked_whether_all_is_sent_then_sends_what_waits(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    delivery = begin(cached)

    sent = wait_until_sent(delivery)
    indexed = cached.indexed_urls()
    delivery.finish("finished")

    assert (sent, indexed) == (True, list(NAMES))


def test_delivery_when_the_writer_has_sealed_a_batch_and_not_submitted_it_then_not_all_is_sent(
    cached: CachedStore,
) -> None:
    delivery = begin(cached)
    assert wait_until_sent(delivery)
    cached.fetch(*NAMES)

    batch = delivery_queue.seal_batch(cached.run)
    assert batch is not None
    asked = [delivery.has_sent() for _ in range(3)]
    delivery.submit(batch)
    sent = wait_until_sent(delivery)
    delivery.finish("finished")

    assert (asked, sent) == ([False, False, False], True)


def test_delivery_when_the_index_is_away_then_nobody_waits_for_it(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    delivery = begin(cached, Solid(cached, before=away))

    sent = wait_until_sent(delivery)
    delivery.finish("finished")

    assert sent
    assert cached.run.delivery_failure is not None


def test_delivery_when_pages_are_fetched_no_more_then_the_index_may_hurry_and_not_before(cached: CachedStore) -> None:
    index = Hurrying(cached)
    cached.fetch(*NAMES[:2])
    delivery = begin(cached, index)
    assert wait_until_sent(delivery)
    before = list(index.hurried)
    cached.fetch(*NAMES[2:])

    delivery.finish("finished")

    assert (before, index.hurried) == ([], [2])
    assert cached.indexed_urls() == list(NAMES)


def test_delivery_when_a_process_died_before_a_copy_was_removed_then_the_next_one_removes_it(
    cached: CachedStore,
) -> None:
    cached.fetch("/a", "/copy")
    cached.send()
    with cached.database.write_once() as transaction:
        copy = {"state": int(DocumentState.WITHHELD), "code": 909, "duplicate_of": cached.ids["/a"], "batch_id": None}
        transaction.execute(update(documents).where(documents.c.url_id == cached.ids["/copy"]).values(copy))

    begin(cached).finish("finished")

    assert cached.indexed_urls() == ["/a"]
    assert cached.run.shutdown.failure is None
