"""The change log of a source: what receivers besides the index are to have of its documents, in the order of changes (L14).

It has no rows of its own but for documents whose rows are gone (``tombstones``): a document has its last entry, by the number
in ``documents.seq``. A number is drawn in the transaction that writes the entry, and the counter stays locked until its end:
who has read up to a number has missed none below it. Entries of one transaction have the same number, and are told apart by
their rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, and_, case, delete, func, literal, or_, select, text, true, tuple_, update

from searchcrawl import urls as identities
from searchcrawl.store.batch_table import BATCH_COLUMNS, BatchDocument
from searchcrawl.store.documents.document_events import HELD_CHANGED, LEFT_BEHIND
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import count_rows, read_page, read_parts, upsert_rows, write_parts
from searchcrawl.store.run_schema import batches, faulty, receivers, tombstones
from searchcrawl.store.runs.run_table import draw_log_number
from searchcrawl.store.schema import DOCUMENTS_WITH_URLS, documents, urls
from searchcrawl.store.states import DocumentState

_D = DocumentState
#: Rows that are read or written at once.
PAGE_ROWS: Final = 500
#: The error of an entry that could not be sent when it was read: its text is another one now that waits for the index, or is
#: held back. If that text does not come, the entry follows.
NOT_NOW: Final = "it waits for the index"
#: Above all numbers.
_NO_END: Final = (1 << 63) - 1
#: The row and the record say what is to be sent: it is on its way to the index, or there, or the index alone refuses it.
#: Others are drawn anew once they are.
_CAN_BE_SENT: Final = and_(
    documents.c.fields_digest.is_not(None),
    or_(
        documents.c.state == int(_D.SENDING),
        documents.c.state == int(_D.PRESENT),
        and_(
            documents.c.state == int(_D.QUARANTINED),
            documents.c.held_state.in_([int(_D.PRESENT), int(_D.SENDING), HELD_CHANGED]),
            documents.c.duplicate_of.is_(None),
        ),
        and_(
            documents.c.state == int(_D.WITHHELD),
            documents.c.index_error.is_not(None),
            documents.c.duplicate_of.is_(None),
        ),
    ),
)
# The literals let the planner use the partial indexes.
_IS_LEFT: Final = text("documents.shown = 1 AND documents.indexed_version IS NULL")
_HAS_GONE: Final = or_(
    documents.c.state == int(_D.NONE),
    and_(documents.c.state == int(_D.WITHHELD), documents.c.duplicate_of.is_not(None)),
)
_IS_LOGGED: Final = text("documents.seq IS NOT NULL")


class LogPlace(NamedTuple):
    """How far the log was read: to this number, and of the entries with it to this row."""

    seq: int = 0
    url_id: int = 0


#: Before all entries.
START: Final = LogPlace()


class LoggedDocument(NamedTuple):
    """What the log says of a document: it is there or has gone, since which entry, and whether it can be sent now.

    ``survivor_id`` is the document that is indexed instead of it, ``indexed_version`` the one that the index has of it, or
    is about to get.
    """

    row: BatchDocument
    seq: int
    is_shown: bool
    first_seq: int | None
    can_be_sent: bool
    survivor_id: int | None
    state: DocumentState
    indexed_version: int | None

    @property
    def place(self) -> LogPlace:
        """Where it is in the log."""
        return LogPlace(self.seq, self.row.url_id)

    def is_known_at(self, place: LogPlace) -> bool:
        """Whether a receiver that has read up to a place may have the document."""
        return self.first_seq is not None and LogPlace(self.first_seq, self.row.url_id) <= place


class Tombstone(NamedTuple):
    """An entry of a document whose row is gone; ``digest`` is that of its id, ``first_seq`` as in ``LoggedDocument``."""

    seq: int
    digest: bytes
    first_seq: int | None


#: It is in a delivery without a receipt, also while its removal waits for an approval.
_IS_SENT: Final = or_(
    documents.c.state == int(_D.SENDING),
    and_(documents.c.state == int(_D.QUARANTINED), documents.c.held_state == int(_D.SENDING)),
)
_SENT_VERSION: Final = select(batches.c.crawl_version).where(batches.c.id == documents.c.batch_id).scalar_subquery()
_OF_ENTRY: Final = (
    documents.c.seq,
    documents.c.shown,
    documents.c.first_seq,
    _CAN_BE_SENT.label("can_be_sent"),
    documents.c.duplicate_of,
    documents.c.state,
    case((_IS_SENT, _SENT_VERSION), else_=documents.c.indexed_version),
)


def find_page(
    transaction: Transaction, source_id: int, after: LogPlace, *, limit: int = PAGE_ROWS
) -> list[LoggedDocument]:
    """The next entries of documents that have a row, in the order of the log."""
    query = _select_entries().where(documents.c.source_id == source_id, _IS_LOGGED)
    query = query.order_by(documents.c.seq, documents.c.url_id)
    # The rest of a number alone first: a comparison of pairs reads all of its entries.
    rest = query.where(documents.c.seq == after.seq, documents.c.url_id > after.url_id)
    found = _build_entries(transaction.execute(rest.limit(limit)))
    if len(found) < limit:
        later = query.where(documents.c.seq > after.seq).limit(limit - len(found))
        found += _build_entries(transaction.execute(later))
    return found


def find_entries(transaction: Transaction, source_id: int, url_ids: Collection[int]) -> list[LoggedDocument]:
    """The entries of documents of a source, without those that have none."""
    query = _select_entries().where(documents.c.source_id == source_id, _IS_LOGGED)
    return _build_entries(read_parts(transaction, query, documents.c.url_id, url_ids))


def find_later(transaction: Transaction, source_id: int, name: str, *, limit: int = PAGE_ROWS) -> list[LoggedDocument]:
    """Entries that a receiver has passed because they could not be sent then (``NOT_NOW``), and that can be now, by rising row."""
    passed = and_(faulty.c.source_id == source_id, faulty.c.receiver == name, faulty.c.error == NOT_NOW)
    same = and_(documents.c.url_id == faulty.c.url_id, documents.c.seq == faulty.c.seq)
    # From the few that were passed to their documents, and not the other way round.
    rows = faulty.join(documents, same).join(urls, urls.c.id == documents.c.url_id)
    query = _select_entries(rows).where(passed, documents.c.shown == 1, _CAN_BE_SENT)
    return _build_entries(transaction.execute(query.order_by(faulty.c.url_id).limit(limit)))


def find_present(transaction: Transaction, source_id: int, *, after: int, before: LogPlace) -> list[LoggedDocument]:
    """The next documents that are there and can be sent, by rising row, with entries up to a place in the log."""
    query = _select_entries().where(documents.c.shown == 1, documents.c.seq <= before.seq, _CAN_BE_SENT)
    return _build_entries(read_page(transaction, query, source_id, by=documents.c.url_id, after=after, limit=PAGE_ROWS))


def find_tombstones(transaction: Transaction, source_id: int, *, after: int, up_to: int | None) -> list[Tombstone]:
    """The entries of rows that are gone above a number, up to another one (None: all of them), by rising number."""
    query = select(tombstones.c.seq, tombstones.c.digest, tombstones.c.first_seq).where(
        tombstones.c.source_id == source_id, tombstones.c.seq > after
    )
    if up_to is not None:
        query = query.where(tombstones.c.seq <= up_to)
    return [Tombstone(*row) for row in transaction.execute(query.order_by(tombstones.c.seq, tombstones.c.digest))]


def count_waiting(transaction: Transaction, source_id: int, after: LogPlace) -> int:
    """How many entries there are after a place."""
    gone = tombstones.c.source_id == source_id, tombstones.c.seq > after.seq
    here = count_rows(transaction, documents, _build_after(source_id, after))
    return here + count_rows(transaction, tombstones, *gone)


def find_shown(transaction: Transaction, source_id: int, url_keys: Collection[int]) -> set[int]:
    """Those of the keys of URLs (``urls.key``) whose documents are there by the log, and not left behind."""
    is_left = and_(_HAS_GONE, documents.c.indexed_version.is_(None))
    query = select(urls.c.key).join(documents, documents.c.url_id == urls.c.id)
    query = query.where(urls.c.source_id == source_id, documents.c.shown == 1, ~is_left)
    return {row.key for row in read_parts(transaction, query, urls.c.key, url_keys)}


def find_left(transaction: Transaction, source_id: int) -> list[int]:
    """The next documents that are there by the log, and that neither the index nor a delivery has any more."""
    query = select(documents.c.url_id).where(documents.c.source_id == source_id, _IS_LEFT, _HAS_GONE)
    return list(transaction.execute(query.order_by(documents.c.url_id).limit(PAGE_ROWS)).scalars())


def count_left(transaction: Transaction, source_id: int) -> int:
    """How many ``find_left`` finds, page after page."""
    return count_rows(transaction, documents, documents.c.source_id == source_id, _IS_LEFT, _HAS_GONE)


def let_go(transaction: Transaction, source_id: int, url_ids: Sequence[int]) -> None:
    """Writes the entries of documents that ``find_left`` found: they have gone."""
    number = draw_log_number(transaction, source_id)
    write_parts(
        transaction, update(documents).values(LEFT_BEHIND.values), documents.c.url_id, url_ids, {"log_seq": number}
    )


def let_go_of_all(transaction: Transaction, source_id: int, *, after: int) -> int | None:
    """Writes that the next documents of a source have gone, by rising row; returns the last row, None at the end.

    The index has removed all of them, and nothing of the source is to be left.
    """
    query = select(documents.c.url_id).where(documents.c.shown == 1)
    page = read_page(transaction, query, source_id, by=documents.c.url_id, after=after, limit=PAGE_ROWS)
    if not page:
        return None
    let_go(transaction, source_id, [row.url_id for row in page])
    return int(page[-1].url_id)


def bury(transaction: Transaction, source_id: int, name: str, url_ids: Sequence[int]) -> None:
    """Keeps entries of documents whose rows are about to be deleted, as long as there is a receiver.

    ``name`` is that of the source.
    """
    if not url_ids or (slowest := find_slowest(transaction, source_id)) is None:
        return
    # All have heard of others that they have gone.
    is_news = or_(documents.c.shown == 1, documents.c.seq > slowest.seq)
    query = select(urls.c.url, documents.c.first_seq).join(documents, documents.c.url_id == urls.c.id)
    found = list(read_parts(transaction, query.where(_IS_LOGGED, is_news), urls.c.id, url_ids))
    write_parts(transaction, delete(faulty).where(faulty.c.source_id == source_id), faulty.c.url_id, url_ids)
    if found:
        number = draw_log_number(transaction, source_id)
        rows = [
            {
                "source_id": source_id,
                "seq": number,
                "digest": digest_of(identities.document_id(name, url)),
                "first_seq": first_seq,
            }
            for url, first_seq in found
        ]
        upsert_rows(transaction, tombstones, ("source_id", "seq", "digest"), rows)


def drop_tombstones(transaction: Transaction, source_id: int) -> None:
    """Deletes those that all receivers have."""
    slowest = transaction.execute(select(func.min(receivers.c.seq)).where(receivers.c.source_id == source_id)).scalar()
    passed = tombstones.c.seq <= (_NO_END if slowest is None else slowest)
    transaction.execute(delete(tombstones).where(tombstones.c.source_id == source_id, passed))


def digest_of(document_id: str) -> bytes:
    """What of the id of a document tells it from others of its source."""
    return bytes.fromhex(document_id.rpartition(":")[2])


def find_segments_unread(transaction: Transaction, source_id: int) -> set[int]:
    """The segments of the cache with records that a receiver is still to get."""
    if (slowest := find_slowest(transaction, source_id)) is None:
        return set()
    here = _build_after(source_id, slowest), documents.c.shown == 1, documents.c.segment.is_not(None)
    return set(transaction.execute(select(documents.c.segment).where(*here).distinct()).scalars())


def is_done(slowest: LogPlace | None) -> ColumnElement[bool]:
    """The condition on ``documents`` that no receiver has the document, or is still to be told that it has gone.

    ``slowest`` is that of ``find_slowest``.
    """
    if slowest is None:
        return true()
    passed = tuple_(documents.c.seq, documents.c.url_id) <= tuple_(literal(slowest.seq), literal(slowest.url_id))
    return or_(documents.c.seq.is_(None), and_(documents.c.shown == 0, passed))


def find_slowest(transaction: Transaction, source_id: int) -> LogPlace | None:
    """Up to where all receivers have read; None where there is none."""
    query = select(receivers.c.seq, receivers.c.url_id).where(receivers.c.source_id == source_id)
    row = transaction.execute(query.order_by(receivers.c.seq, receivers.c.url_id).limit(1)).one_or_none()
    return None if row is None else LogPlace(row.seq, row.url_id)


def _build_after(source_id: int, after: LogPlace) -> ColumnElement[bool]:
    return and_(
        documents.c.source_id == source_id,
        tuple_(documents.c.seq, documents.c.url_id) > tuple_(literal(after.seq), literal(after.url_id)),
        _IS_LOGGED,
    )


def _select_entries(rows: Any = DOCUMENTS_WITH_URLS) -> Any:
    return select(*BATCH_COLUMNS, *_OF_ENTRY).select_from(rows)


def _build_entries(rows: Iterable[Any]) -> list[LoggedDocument]:
    found = []
    for values in rows:
        row = BatchDocument._make(values[: len(BATCH_COLUMNS)])
        seq, shown, first_seq, can_be_sent, survivor_id, state, version = values[len(BATCH_COLUMNS) :]
        found.append(
            LoggedDocument(
                row, seq, bool(shown), first_seq, bool(can_be_sent), survivor_id, DocumentState(state), version
            )
        )
    return found
