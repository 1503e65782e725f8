"""What the table says of the index, and what it takes over where the index has something else (L4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, Update, and_, bindparam, func, insert, literal, or_, select, update

from searchcrawl.store import batch_table
from searchcrawl.store.documents.document_events import ABSENT, FOUND_OTHERWISE, MISSING, REMOVAL_OPENED
from searchcrawl.store.documents.presence import IS_RECORD_LOST, IS_REMOVING, is_in, is_there
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import count_rows, has_row, read_parts, select_fields
from searchcrawl.store.run_schema import batches, runs
from searchcrawl.store.runs.run_table import draw_log_number
from searchcrawl.store.schema import DOCUMENTS_WITH_URLS, documents, urls
from searchcrawl.store.states import DELIVERED, MOVING, BatchState, DocumentState
from searchcrawl.store.urls import url_table

#: Rows that one transaction changes.
PAGE_ROWS: Final = 500
_NEWEST: Final = 20
_NEWEST_BATCHES: Final = 10
#: Keys are hashes: rows after a few of them are spread over the whole source, and found by its unique index.
WINDOWS: Final = 25
_WINDOW_ROWS: Final = 100
_OF_WINDOW: Final = 4
_FIRST_KEY: Final = -(1 << 63)


class BelievedDocument(NamedTuple):
    """A document that the index has in this version, as the table believes."""

    url_id: int
    url: str
    crawl_version: int


def sample(transaction: Transaction, source_id: int, *, windows: int = WINDOWS) -> list[BelievedDocument]:
    """About 100 documents that the index has acknowledged and committed: some of the newest, others from everywhere.

    It reads a few thousand rows at most, however many there are. Documents that are under way are left out.
    """
    newest = _select_newest(transaction, source_id)
    found = {row.url_id: row for row in newest}
    for number in range(windows):
        near = {"source": source_id, "first": _FIRST_KEY + number * (1 << 64) // windows}
        found.update({row.url_id: BelievedDocument._make(row) for row in transaction.execute(_NEAR, near)})
    return list(found.values())


def _select_newest(transaction: Transaction, source_id: int) -> list[BelievedDocument]:
    last = (
        select(batches.c.id)
        .where(batches.c.source_id == source_id, batches.c.state == int(BatchState.COMMITTED))
        .order_by(batches.c.id.desc())
        .limit(_NEWEST_BATCHES)
    )
    query = (
        select(documents.c.url_id, urls.c.url, documents.c.indexed_version)
        .select_from(DOCUMENTS_WITH_URLS)
        .where(documents.c.batch_id.in_(list(transaction.execute(last).scalars())), is_there())
        .order_by(documents.c.batch_id.desc(), documents.c.url_id)
        .limit(_NEWEST)
    )
    return [BelievedDocument._make(row) for row in transaction.execute(query)]


def _select_near() -> Select[Any]:
    near = (
        select(urls.c.id, urls.c.url, urls.c.key)
        .where(urls.c.source_id == bindparam("source"), urls.c.key >= bindparam("first"))
        .order_by(urls.c.key)
        .limit(_WINDOW_ROWS)
        .subquery("near")
    )
    joined = near.join(documents, documents.c.url_id == near.c.id).outerjoin(
        batches, batches.c.id == documents.c.batch_id
    )
    return (
        select(documents.c.url_id, near.c.url, documents.c.indexed_version)
        .select_from(joined)
        # A rejected removal has left its delivery.
        .where(is_there(), or_(batches.c.id.is_(None), batches.c.state == int(BatchState.COMMITTED)))
        .order_by(near.c.key)
        .limit(_OF_WINDOW)
    )


#: Built once: 25 of them are read for each look.
_NEAR: Final = _select_near()


def sample_removed(transaction: Transaction, source_id: int) -> list[BelievedDocument]:
    """Some of the documents that were removed last; their version is 0, because the index must not have them."""
    last = select(runs.c.id).where(runs.c.source_id == source_id).order_by(runs.c.id.desc()).limit(_NEWEST_BATCHES)
    query = (
        select(documents.c.url_id, urls.c.url, literal(0))
        .select_from(DOCUMENTS_WITH_URLS)
        .where(
            documents.c.removed_run.in_(list(transaction.execute(last).scalars())),
            documents.c.indexed_version.is_(None),
            is_in({DocumentState.NONE, DocumentState.WITHHELD}),
        )
        .order_by(documents.c.removed_run.desc(), documents.c.url_id)
        .limit(_NEWEST)
    )
    return [BelievedDocument._make(row) for row in transaction.execute(query)]


def keep_unchanged(transaction: Transaction, rows: Sequence[BelievedDocument]) -> list[BelievedDocument]:
    """Those of ``rows`` of which the table still believes the same."""
    query = select(documents.c.url_id, documents.c.indexed_version).where(
        documents.c.url_id.in_([row.url_id for row in rows]), is_there()
    )
    now = {row[0]: row[1] for row in transaction.execute(query)}
    return [row for row in rows if now.get(row.url_id) == row.crawl_version]


def knows_version(transaction: Transaction, source_id: int, version: int) -> bool:
    """Whether the index of a source can have this version by the table: one that it was sent, or an earlier one."""
    here = batches.c.source_id == source_id
    sent = select(func.max(batches.c.crawl_version)).where(here, batches.c.state > int(BatchState.SEALED))
    if version <= (transaction.execute(sent).scalar() or 0):
        return True
    # It is being sent, or the process that sent it died.
    return has_row(transaction, here, batches.c.crawl_version == version)


def note_version(transaction: Transaction, source_id: int, run_id: int, version: int, now_ms: int) -> None:
    """Notes a version of the index as if it had been sent: all later deliveries are newer, also those that wait."""
    number = {"source_id": source_id, "run_id": run_id, "created_ms": now_ms}
    transaction.execute(insert(batches).values(**number, crawl_version=version, state=int(BatchState.COMMITTED)))
    for batch in batch_table.find_unfinished(transaction, source_id):
        if batch.crawl_version <= version:
            later = batch_table.choose_version(transaction, now_ms)
            transaction.execute(update(batches).where(batches.c.id == batch.number).values(crawl_version=later))


def open_removals(transaction: Transaction, source_id: int) -> int:
    """Takes removals out of their deliveries: the end of a run decides about them again. Returns how many; 0 at the end."""
    some = select(documents.c.url_id).where(documents.c.source_id == source_id, IS_REMOVING)
    ids = list(transaction.execute(some.limit(PAGE_ROWS)).scalars())
    if ids:
        statement = update(documents).where(documents.c.url_id.in_(ids)).values(REMOVAL_OPENED.values)
        transaction.execute(statement, {"log_seq": draw_log_number(transaction, source_id)})
    transaction.execute(update(batches).where(batches.c.source_id == source_id, _IS_OPEN).values(removals=0))
    return len(ids)


_IS_OPEN: Final = batches.c.state < int(BatchState.COMMITTED)


class Indexed(NamedTuple):
    """What the index has of a document: its version, and the digest of its fields where that can be read."""

    crawl_version: int
    fields_digest: bytes | None


def take_over(transaction: Transaction, source_id: int, indexed: Mapping[int, Indexed]) -> None:
    """Notes what the index has of documents, by row id, known ones or not; their pages are to be fetched whole."""
    known = {"source_id": source_id, "indexed_since": 0, "code": 200}
    rows = [
        {**known, "url_id": row_id, "indexed_version": one.crawl_version, "fields_digest": one.fields_digest}
        for row_id, one in indexed.items()
    ]
    if rows:
        statement = dialect_of(transaction).upsert(documents, ["url_id"], _take_over)
        transaction.execute(statement.values(state=FOUND_OTHERWISE.values["state"]), rows)
        url_table.reopen(transaction, indexed)


def _take_over(new: Any) -> dict[str, Any]:
    return {
        "indexed_version": new.indexed_version,
        "indexed_since": func.coalesce(documents.c.indexed_since, 0),
        "fields_digest": new.fields_digest,
        **FOUND_OTHERWISE.values,
    }


def note_missing(transaction: Transaction, url_ids: Sequence[int], *, with_records: bool) -> None:
    """Notes that the index lacks documents: those that belong there are to be fetched whole.

    Without ``with_records`` those with a record in the cache are left alone.
    """
    lost = or_(is_in(DELIVERED), IS_RECORD_LOST)
    chosen = documents.c.url_id.in_(url_ids)
    here = chosen if with_records else and_(chosen, documents.c.segment.is_(None))
    fetched = transaction.execute(
        update(documents).where(here, lost).values(MISSING.values).returning(documents.c.url_id)
    )
    url_table.reopen(transaction, list(fetched.scalars()))
    rest: Update = update(documents).where(here, ~lost)
    transaction.execute(rest.values(ABSENT.values))


def find_segments(transaction: Transaction, source_id: int) -> set[int]:
    """The segments of the cache in which documents of a source have their records."""
    query = select(documents.c.segment).where(documents.c.source_id == source_id, documents.c.segment.is_not(None))
    return set(transaction.execute(query.distinct()).scalars())


def count_to_fetch(transaction: Transaction, source_id: int) -> int:
    """How many documents belong in the index and have to be fetched for it."""
    lost = documents.c.source_id == source_id, IS_RECORD_LOST, documents.c.leaving == 0
    return count_rows(transaction, documents, *lost)


class Receipted(NamedTuple):
    """A document; ``crawl_version`` is None where it is not in the index, 0 where it may be there in any version.

    ``recorded``: the cache has its record, as far as the table knows; ``refused``: the index did not take it.
    """

    url_id: int
    url: str
    crawl_version: int | None
    fields_digest: bytes
    state: int
    batch_state: int | None
    recorded: bool
    refused: bool
    leaving: int

    @property
    def under_way(self) -> bool:
        """Whether it is in a delivery that the index has not made visible yet."""
        return self.state in MOVING or (self.batch_state is not None and self.batch_state < BatchState.COMMITTED)

    @property
    def settled(self) -> bool:
        """Whether the index has its ``fields_digest``."""
        return bool(self.fields_digest) and self.state == DocumentState.PRESENT


def find_receipted(transaction: Transaction, url_ids: Sequence[int]) -> list[Receipted]:
    """The documents of rows; those without a document are left out."""
    joined = DOCUMENTS_WITH_URLS.outerjoin(batches, batches.c.id == documents.c.batch_id)
    rows = read_parts(transaction, _RECEIPTED.select_from(joined), documents.c.url_id, url_ids)
    return [Receipted._make(row) for row in rows]


_RECEIPTED: Final = select_fields(
    Receipted,
    documents,
    urls,
    crawl_version=documents.c.indexed_version,
    fields_digest=func.coalesce(documents.c.fields_digest, b""),
    batch_state=batches.c.state,
    recorded=documents.c.segment.is_not(None),
    refused=documents.c.index_error.is_not(None),
)


def is_removing(transaction: Transaction, source_id: int) -> bool:
    """Whether removals of a source are not visible in the index yet: those with a receipt have left their delivery."""
    return has_row(
        transaction,
        batches.c.source_id == source_id,
        batches.c.state < int(BatchState.COMMITTED),
        batches.c.removals > 0,
    )
