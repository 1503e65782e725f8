"""What waits, or everything again, pushed to the index between runs: a real store, cache and local index (E2, E7)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from searchcrawl import clock, urls
from searchcrawl.answers import approval, redelivery
from searchcrawl.answers.listing import Wanted, url_rows
from searchcrawl.answers.overview import status_of
from searchcrawl.answers.verification import verify
from searchcrawl.exceptions import IndexUnavailable, SourceBusy
from searchcrawl.index.receiver import Batch, IndexEntry, Receipt
from searchcrawl.store import batch_table, document_table, lease, resend_table
from searchcrawl.store.batch_table import SealedBatch
from tests.answer_store import SITE, CachedStore

NAMES = ("/a", "/b", "/c", "/d")


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[CachedStore]:
    store = CachedStore(tmp_path)
    yield store
    store.close()


class Watched:
    """The local index behind a receiver that notes what it gets; ``before`` may raise for a delivery."""

    def __init__(self, filled: CachedStore, before: Callable[[Batch], None] = lambda _: None) -> None:
        self._index = filled.index
        self._before = before
        self.batches: list[Batch] = []
        self.ended: list[str] = []
        self.commits = 0

    def begin(self, source: str, run: int) -> None:
        pass

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        self._before(batch)
        self.batches.append(batch)
        return self._index.deliver(batch)

    def end(self, outcome: str) -> None:
        self.ended.append(outcome)


class Solid(Watched):
    """One whose commits count as well."""

    def ping(self) -> None:
        pass

    def commit(self) -> None:
        self.commits += 1

    def close(self) -> None:
        pass

    def purge(self) -> int:
        return 0

    def scan(self, source: str | None) -> Iterator[IndexEntry]:
        return self._index.scan(source)

    def search(self, query: Any) -> Any:
        return self._index.search(query)


def away(_: Batch) -> None:
    raise IndexUnavailable("connection refused")


def flush(filled: CachedStore, receiver: Any = None) -> dict[str, Any]:
    return redelivery.flush(
        filled.project, filled.source, filled.database, receiver or filled.index, patience_seconds=0
    )


def resend(filled: CachedStore, receiver: Any = None) -> dict[str, Any]:
    return redelivery.resend(
        filled.project, filled.source, filled.database, receiver or filled.index, patience_seconds=0
    )


def sent(documents: int, removed: int = 0, failed: int = 0) -> dict[str, Any]:
    return {"source": "demo", "documents": documents, "removed": removed, "failed": failed}


def status(filled: CachedStore) -> dict[str, Any]:
    return status_of(filled.source, filled.database, {})


def verified(filled: CachedStore) -> dict[str, Any]:
    return verify(filled.database, filled.index, ["demo"], only=None)


def states(filled: CachedStore) -> dict[str, str]:
    rows = url_rows(filled.database, filled.source, Wanted())
    return {row["url"].removeprefix(SITE): row["state"] for row in rows}


def seal(filled: CachedStore) -> SealedBatch:
    with filled.database.write() as transaction:
        batch = batch_table.seal_documents(transaction, filled.run.source_id, filled.run.id, clock.now_ms())
    assert batch is not None
    return batch


def empty_the_index(filled: CachedStore) -> None:
    filled.index.close()
    shutil.rmtree(filled.project.index_dir)


def with_threshold(filled: CachedStore, threshold_mb: float) -> None:
    cache = filled.project.cache.model_copy(update={"threshold_mb": threshold_mb})
    filled.project = filled.project.model_copy(update={"cache": cache})


def test_flush_when_documents_wait_then_they_are_sent_and_the_counts_of_the_run_stay(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.end(exit_code=6)

    done = flush(filled)

    assert done == sent(4)
    assert filled.indexed_urls() == list(NAMES)
    assert (status(filled)["waiting"], status(filled)["counts"]["indexed"]) == (0, 0)
    assert verified(filled)["ok"]


def test_flush_when_a_run_was_cut_off_then_what_is_sent_counts_in_it(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.run.write_counted(lambda _: {"fetched": 4})
    release(filled)

    flush(filled)

    assert (status(filled)["counts"]["indexed"], status(filled)["counts"]["fetched"]) == (4, 4)


def test_flush_when_nothing_waits_then_the_index_is_not_asked(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    flush(filled)
    receiver = Watched(filled, away)

    done = flush(filled, receiver)

    assert done == sent(0)
    assert receiver.ended == []


def test_flush_when_a_source_never_ran_then_there_is_nothing_to_send(filled: CachedStore) -> None:
    other = filled.source.model_copy(update={"name": "other"})

    done = redelivery.flush(filled.project, other, filled.database, filled.index)

    assert done == {**sent(0), "source": "other"}


@pytest.mark.parametrize("act", [flush, resend])
def test_redelivery_when_the_source_is_being_crawled_then_it_is_busy(
    filled: CachedStore, act: Callable[[CachedStore], Any]
) -> None:
    filled.fetch("/a")

    with pytest.raises(SourceBusy):
        act(filled)

    assert filled.indexed_urls() == []


@pytest.mark.parametrize("act", [flush, resend])
def test_redelivery_when_the_index_is_away_then_documents_wait_and_go_in_later(
    filled: CachedStore, act: Callable[..., Any]
) -> None:
    filled.fetch(*NAMES)
    filled.end(exit_code=6)
    receiver = Watched(filled, away)

    with pytest.raises(IndexUnavailable):
        act(filled, receiver)

    assert receiver.ended == ["failed"]
    assert status(filled)["waiting"] == 4
    assert flush(filled) == sent(4)
    assert verified(filled)["ok"]


def test_flush_when_a_dead_process_left_batches_then_they_are_sent_and_committed(filled: CachedStore) -> None:
    filled.fetch("/a", "/b")
    sealed = seal(filled)
    filled.fetch("/c")
    acknowledged = seal(filled)
    with filled.database.write() as transaction:
        batch_table.accept(transaction, acknowledged, [filled.ids["/c"]])
        batch_table.set_state(transaction, acknowledged.number, batch_table.BatchState.ACKNOWLEDGED)
    filled.end(exit_code=6)
    receiver = Solid(filled)

    done = flush(filled, receiver)

    assert done == sent(2)
    assert [batch.crawl_version for batch in receiver.batches] == [sealed.crawl_version]
    assert receiver.commits == 2


def test_flush_when_removals_were_under_way_then_they_are_finished_and_undecided_ones_wait(
    filled: CachedStore,
) -> None:
    filled.fetch(*NAMES)
    filled.send()
    with filled.database.write() as transaction:
        document_table.mark_leaving(transaction, [filled.ids["/a"], filled.ids["/b"]])
        batch_table.seal_removals(transaction, filled.run.source_id, filled.run.id, clock.now_ms(), [filled.ids["/a"]])
    filled.end(exit_code=6)

    done = flush(filled)

    assert done == sent(0, removed=1)
    assert filled.indexed_urls() == ["/b", "/c", "/d"]


def test_resend_when_the_index_was_emptied_then_the_same_documents_are_in_with_new_versions(
    filled: CachedStore,
) -> None:
    filled.fetch(*NAMES)
    version = filled.send()
    filled.end()
    empty_the_index(filled)
    before = verified(filled)

    done = resend(filled)

    assert len(before["missing"]) == 4
    assert done == sent(4)
    assert verified(filled)["ok"]
    assert {entry.crawl_version for entry in filled.index.scan(None)}.isdisjoint({version})
    assert status(filled)["counts"]["indexed"] == 0
    assert states(filled) == dict.fromkeys(NAMES, "indexed")


def test_resend_when_the_index_holds_more_then_what_the_table_does_not_know_stays(filled: CachedStore) -> None:
    filled.fetch("/a")
    filled.send()
    filled.put([filled.document(f"{SITE}/stale", checksum="00")], 1)
    filled.end()

    done = resend(filled)

    assert done == sent(1)
    assert [entry["url"].removeprefix(SITE) for entry in verified(filled)["extra"]] == ["/stale"]


def test_resend_when_deletions_wait_then_their_documents_go_in_and_still_wait(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.hold_back("/a", "/b")
    with filled.database.write() as transaction:
        document_table.mark_leaving(transaction, [filled.ids["/c"]])
    filled.end(exit_code=9)
    empty_the_index(filled)

    done = resend(filled)

    assert done == sent(4)
    assert filled.indexed_urls() == list(NAMES)
    assert verified(filled)["ok"]
    assert [row["url"].removeprefix(SITE) for row in approval.held_back(filled.database, filled.source)] == [
        "/a",
        "/b",
    ]
    with filled.database.read() as transaction:
        assert [row.url_id for row in batch_table.leaving(transaction, filled.run.source_id)] == [filled.ids["/c"]]


def test_resend_when_the_index_had_refused_a_document_then_it_is_tried_again(filled: CachedStore) -> None:
    filled.fetch("/a", "/b")
    refuse(filled, "/b")
    filled.end()

    assert status(filled)["warnings"][-1]["code"] == "refused"
    assert flush(filled) == sent(0)
    assert resend(filled) == sent(2)
    assert (filled.indexed_urls(), status(filled)["warnings"]) == (["/a", "/b"], [])


def test_resend_when_the_index_refuses_a_document_again_then_it_failed_and_is_not_sent_for_ever(
    filled: CachedStore,
) -> None:
    filled.fetch("/a", "/b")
    filled.send()
    filled.end()
    receiver = Refusing(filled, "/b")

    done = resend(filled, receiver)

    assert done == sent(1, failed=1)
    assert [len(batch.documents) for batch in receiver.batches] == [2]
    assert states(filled) == {"/a": "indexed", "/b": "failed"}
    assert filled.indexed_urls() == ["/a", "/b"]


def test_resend_when_the_cache_has_lost_records_then_these_are_counted(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    with filled.database.write() as transaction:
        batch_table.forget_segment(transaction, filled.run.source_id, 1)

    done = resend(filled)

    assert done == sent(0, failed=4)
    assert states(filled) == dict.fromkeys(NAMES, "indexed")


def test_resend_when_a_record_is_damaged_then_its_page_is_fetched_again(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    place = filled.places["/b"]
    path = filled.project.cache_dir / "demo" / "00000001.warc.gz"
    whole = bytearray(path.read_bytes())
    whole[place.offset + place.response_bytes + 20] ^= 0xFF
    path.write_bytes(whole)

    done = resend(filled)

    assert done == sent(3, failed=1)
    assert states(filled) == {"/a": "indexed", "/b": "todo", "/c": "indexed", "/d": "indexed"}
    assert filled.indexed_urls() == list(NAMES)


def test_resend_when_cut_off_then_a_flush_sends_the_rest_alone(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    empty_the_index(filled)
    with_threshold(filled, 0.00005)
    receiver = Watched(filled, failing_after(2))

    with pytest.raises(IndexUnavailable):
        resend(filled, receiver)
    warned = [warning["code"] for warning in status(filled)["warnings"]]
    rest = Watched(filled)
    done = flush(filled, rest)

    assert [len(batch.documents) for batch in receiver.batches] == [1, 1]
    assert warned == ["waiting", "resend"]
    assert done == sent(2)
    assert [document.fields["url"].removeprefix(SITE) for batch in rest.batches for document in batch.documents] == [
        "/c",
        "/d",
    ]
    assert verified(filled)["ok"]
    assert flush(filled, Watched(filled, away)) == sent(0)


def test_resend_when_the_cache_preserves_nothing_then_nothing_is_given_up_before_its_end(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    with_threshold(filled, 0.00005)
    cache = filled.project.cache.model_copy(update={"preserve": False})
    filled.project = filled.project.model_copy(update={"cache": cache})

    done = resend(filled)

    assert done == sent(4)
    assert list(filled.cache.segments()) == []
    with filled.database.read() as transaction:
        assert resend_table.without_record(transaction, filled.run.source_id) == 4


def test_redelivery_when_told_of_its_progress_then_hears_how_many_of_how_many(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.fetch("/e")
    filled.end()
    heard: list[tuple[int, int]] = []

    redelivery.resend(
        filled.project, filled.source, filled.database, filled.index, told=lambda *numbers: heard.append(numbers)
    )

    assert heard == [(1, 5), (5, 5)]


class Refusing(Watched):
    """Refuses one document."""

    def __init__(self, filled: CachedStore, path: str) -> None:
        super().__init__(filled)
        self._refused = urls.document_id("demo", SITE + path)

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        self.batches.append(batch)
        good = replace(batch, documents=[each for each in batch.documents if each.id != self._refused])
        self._index.deliver(good)
        return [Receipt(each.id, each.id != self._refused, "immense") for each in batch.documents]


def failing_after(deliveries: int) -> Callable[[Batch], None]:
    left = deliveries

    def before(batch: Batch) -> None:
        nonlocal left
        if left == 0:
            away(batch)
        left -= 1

    return before


def refuse(filled: CachedStore, path: str) -> None:
    """Sends what is cached; the index refuses one document."""
    batch = seal(filled)
    with filled.database.write() as transaction:
        batch_table.refuse(transaction, batch, [(filled.ids[path], "immense")])
        shipments = batch_table.shipments(transaction, batch.number, after=0, limit=10)
        filled.put([filled.document(row.url, checksum=row.fields_digest.hex()) for row in shipments], batch[1])
        batch_table.accept(transaction, batch, [row.url_id for row in shipments])
        batch_table.set_state(transaction, batch.number, batch_table.BatchState.COMMITTED)


def release(filled: CachedStore) -> None:
    """Gives the lease back as if the process had died."""
    with filled.database.write() as transaction:
        lease.release(transaction, filled.run.lease)
