"""Flush and resend over a store filled by hand: receivers that watch them, and what store and index say afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchcrawl import clock, urls
from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.receiver import Batch, IndexEntry, Receipt
from searchcrawl.operations import redelivery
from searchcrawl.store import batch_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.runs import lease
from tests.filled_store import SITE, CachedStore, FilledStore

NAMES = ("/a", "/b", "/c", "/d")


class Watched:
    """The local index behind a receiver that notes what it gets; ``before`` may raise for a delivery."""

    def __init__(self, filled: FilledStore, before: Callable[[Batch], None] = lambda _: None) -> None:
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

    def find_versions(self, ids: Collection[str]) -> Mapping[str, int]:
        return self._index.find_versions(ids)

    def find_last_versions(self, ids: Collection[str]) -> Mapping[str, int]:
        return self._index.find_last_versions(ids)

    def find_highest_version(self, source: str) -> int:
        return self._index.find_highest_version(source)

    def search(self, query: Any) -> Any:
        return self._index.search(query)


class Hurrying(Solid):
    """One that notes how many documents it had when it was told that no page is fetched any more."""

    def __init__(self, filled: CachedStore) -> None:
        super().__init__(filled)
        self.hurried: list[int] = []

    def hurry(self) -> None:
        self.hurried.append(sum(len(batch.documents) for batch in self.batches))


class Doubtful(Solid):
    """An index that lists ``part`` of its documents, and finds those with ``finds`` by their ids."""

    def __init__(self, filled: CachedStore, part: slice, *, finds: bool) -> None:
        super().__init__(filled)
        self._part = part
        self._finds = finds

    def scan(self, source: str | None) -> Iterator[IndexEntry]:
        return iter(list(super().scan(source))[self._part])

    def find_versions(self, ids: Any) -> Any:
        return super().find_versions(ids) if self._finds else {}


def away(_: Batch) -> None:
    raise IndexUnavailable("connection refused")


def flush(filled: CachedStore, receiver: Any = None) -> dict[str, Any]:
    return redelivery.flush(filled.project, filled.source, filled.database, receiver or filled.index, retry_seconds=0)


def resend(filled: CachedStore, receiver: Any = None) -> dict[str, Any]:
    return redelivery.resend(filled.project, filled.source, filled.database, receiver or filled.index, retry_seconds=0)


def sent(documents: int, removed: int = 0, failed: int = 0, to_fetch: int = 0) -> dict[str, Any]:
    return {
        "source": "demo",
        "documents": documents,
        "removed": removed,
        "failed": failed,
        "to_fetch": to_fetch,
    }


def states(filled: FilledStore) -> dict[str, str]:
    return {row["url"].removeprefix(SITE): row["state"] for row in filled.rows()}


def seal(filled: CachedStore) -> SealedBatch:
    with filled.database.write_once() as transaction:
        batch = batch_table.seal_documents(transaction, filled.run.source_id, filled.run.id, clock.now_ms())
    assert batch is not None
    return batch


def empty_the_index(filled: CachedStore) -> None:
    filled.index.close()
    shutil.rmtree(filled.project.index_dir)


def with_threshold(filled: CachedStore, threshold_mb: float) -> None:
    cache = filled.project.cache.model_copy(update={"threshold_mb": threshold_mb})
    filled.project = filled.project.model_copy(update={"cache": cache})


class Refusing(Watched):
    """Refuses one document, or its removal."""

    def __init__(self, filled: FilledStore, path: str) -> None:
        super().__init__(filled)
        self._refused = urls.document_id("demo", SITE + path)

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        self.batches.append(batch)
        kept, removed = (
            [each for each in part if each.id != self._refused] for part in (batch.documents, batch.removals)
        )
        self._index.deliver(replace(batch, documents=kept, removals=removed))
        ids = [each.id for part in (batch.documents, batch.removals) for each in part]
        return [Receipt(each, each != self._refused, "immense") for each in ids]


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
    with filled.database.write_once() as transaction:
        batch_table.note_refused(transaction, batch, [(filled.ids[path], "immense")])
        rows = batch_table.find_without_receipt(transaction, batch.number, after=0, limit=10)
        filled.put([filled.document(row.url, checksum=row.fields_digest.hex()) for row in rows], batch[1])
        batch_table.note_accepted(transaction, batch, [row.url_id for row in rows])
        batch_table.set_state(transaction, batch.number, batch_table.BatchState.COMMITTED)


def release(filled: CachedStore) -> None:
    """Gives the lease back as if the process had died."""
    with filled.database.write_once() as transaction:
        lease.release(transaction, filled.run.lease)
