"""The documents of the URL rows: what the cache and the index have of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    Insert,
    and_,
    bindparam,
    func,
    or_,
    select,
    text,
    update,
)

from searchcrawl.store.documents.document_events import (
    ACCUSED,
    CONFIRMED,
    DROPPED,
    HELD_AS_IT_IS,
    IS_GOOD,
    VALUE_CHANGED,
    build_changed,
)
from searchcrawl.store.documents.presence import IS_CACHED, IS_NOTHING, IS_REMOVING, is_in, may_be_there
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import Dialect, dialect_of
from searchcrawl.store.many_rows import count_rows, find_among, read_parts, set_rows, write_parts, write_rows
from searchcrawl.store.schema import documents
from searchcrawl.store.statements import is_one_of, split
from searchcrawl.store.states import AT_HAND, PENDING, SHOWN, UNSENT, DocumentState, Leaving

_PENDING: Final = is_one_of("documents.state", PENDING)
_INDEXED: Final = text("documents.indexed_version IS NOT NULL")
#: The index has it as it is, or is about to, and it stays, or its removal waits.
AS_IT_IS: Final = or_(and_(is_in(SHOWN - UNSENT), documents.c.leaving == int(Leaving.NO)), HELD_AS_IT_IS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentUpdate:
    """A new or changed document, and where its record is; ``state`` is CACHED or NONE.

    ``evidence`` is why a known document may not be indexed any more.
    """

    url_id: int
    state: DocumentState
    code: int
    segment: int | None
    record_offset: int | None
    response_bytes: int | None
    fields_bytes: int | None
    body_digest: bytes
    fields_digest: bytes
    content_digest: bytes | None = None
    read_version: int | None = None
    copy_digest: bytes | None = None
    url_fit: int | None = None
    mimetype: str
    content_length: int
    etag: str | None
    last_modified: str | None
    last_changed_ms: int
    canonical_key: int | None = None
    display_key: int | None = None
    answered_key: int | None = None
    unavailable_ms: int | None = None
    rendered: str | None = None
    parts: str | None = None
    evidence: str | None = None
    #: 1: its page had no text of its own when it was fetched first
    bare: int | None = None


#: What others say of a document, which begins anew with a text.
_UNDECIDED: Final = ("duplicate_of", "index_error", "quarantine_run", "rejected_run", "removed_run")


def store(transaction: Transaction, source_id: int, stored: Sequence[DocumentUpdate]) -> None:
    """Writes new and changed documents; receipts of earlier versions are kept."""
    if not stored:
        return
    same = {"source_id": source_id, "leaving": 0, **dict.fromkeys(_UNDECIDED)}
    rows = [
        {**{name: getattr(document, name) for name in DocumentUpdate.__slots__}, "state": int(document.state), **same}
        for document in stored
    ]
    write_rows(transaction, _build_upsert(dialect_of(transaction)), rows)


# Kept: building it takes longer than writing a page with it.
@cache
def _build_upsert(dialect: Dialect) -> Insert:
    return dialect.upsert(documents, ["url_id"], _build_changes)


#: The columns of a known document that are those of the new one; ``build_changed`` has all others.
_REPLACED: Final = (
    *(name for name in DocumentUpdate.__slots__ if name not in {"url_id", "state"}),
    *_UNDECIDED,
)


def _build_changes(new: Any) -> dict[str, Any]:
    return build_changed(new, _REPLACED)


#: Most documents of most runs are as they were: for these nothing is written.
_CONFIRM: Final = (
    update(documents)
    .where(
        documents.c.url_id == bindparam("row_id"),
        or_(*(documents.c[name].is_distinct_from(value) for name, value in CONFIRMED.values.items())),
    )
    .values(CONFIRMED.values)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """A document whose fields have not changed; ``send_again`` if another indexed value has.

    ``read`` tells whether its page was read; then ``unavailable_ms`` is the date that the page states. ``same_fields``: it
    was, and all fields are those of the document; then ``copy_digest`` and ``url_fit`` are those of the document.
    ``read_version`` is that of what is listed, whose body was read.
    """

    url_id: int
    etag: str | None = None
    last_modified: str | None = None
    body_digest: bytes | None = None
    send_again: bool = False
    read: bool = False
    unavailable_ms: int | None = None
    same_fields: bool = False
    copy_digest: bytes | None = None
    url_fit: int | None = None
    rendered: str | None = None
    parts: str | None = None
    read_version: int | None = None


_CONFIRMED: Final = (
    *("etag", "last_modified", "body_digest", "unavailable_ms", "copy_digest", "url_fit", "rendered", "parts"),
    "read_version",
)


def confirm(transaction: Transaction, confirmed: Sequence[Confirmed]) -> None:
    """Notes that documents have not changed."""
    rows = [
        {
            **{f"new_{name}": getattr(entry, name) for name in _CONFIRMED},
            "row_id": entry.url_id,
            "send_again": int(entry.send_again),
            "read": int(entry.read),
            "same_fields": int(entry.same_fields),
            "has_copy": int(entry.copy_digest is not None),
        }
        for entry in confirmed
    ]
    write_rows(transaction, _CONFIRM, rows)


def note_parts(transaction: Transaction, noted: Mapping[int, str | None]) -> None:
    """Notes how pages were rendered that were not taken, by row id."""
    set_rows(transaction, documents.c.url_id, {row_id: {"parts": parts} for row_id, parts in noted.items()})


def find_lost(transaction: Transaction, url_ids: Sequence[int]) -> set[int]:
    """Ids of the documents that should be sent, but have no record in the cache."""
    lost = documents.c.code == 200, documents.c.segment.is_(None)
    sent = or_(is_in(UNSENT), and_(IS_GOOD, IS_REMOVING), and_(IS_NOTHING, documents.c.indexed_version.is_(None)))
    return {*find_among(transaction, documents.c.url_id, url_ids, *lost, sent)}


def find_codes(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, int]:
    """The code of the documents by id: 200, or why they are not indexed."""
    query = select(documents.c.url_id, documents.c.code)
    return {row.url_id: row.code for row in read_parts(transaction, query, documents.c.url_id, url_ids)}


def mark_evidence(
    transaction: Transaction, url_ids: Sequence[int], evidence: str, leaving: Leaving = Leaving.EVIDENCE
) -> None:
    """Notes evidence against documents: they keep their state, and ``leaving`` says that they are to go.

    Those that are neither in the index nor in a delivery are dropped at once.
    Documents that an operator kept in spite of the same evidence stay as they are. With another reason for
    ``leaving`` nothing is dropped.
    """
    kept = and_(
        documents.c.rejected_run.is_not(None),
        documents.c.evidence == evidence,
        or_(is_in(AT_HAND), documents.c.indexed_version.is_not(None)),
    )
    accused = update(documents).where(~func.coalesce(kept, False), may_be_there())
    accused = accused.values(**ACCUSED.values, leaving=int(leaving), evidence=evidence)
    dropped = update(documents).where(~func.coalesce(kept, False), ~may_be_there()).values(DROPPED.values)
    for part in split(url_ids):
        transaction.execute(accused.where(documents.c.url_id.in_(part)))
        if leaving == Leaving.EVIDENCE:
            transaction.execute(dropped.where(documents.c.url_id.in_(part)))


def forget_rejections(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Forgets rejections of removals: what was held against the documents holds no longer."""
    statement = update(documents).values(rejected_run=None, evidence=None)
    write_parts(transaction, statement, documents.c.url_id, url_ids)


def process_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has documents processed again at their next visit, also with the same bytes: as after an edit of the source (D9)."""
    write_parts(transaction, update(documents).values(unavailable_ms=0), documents.c.url_id, url_ids)


def read_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has the bodies of what is listed read at their next visit, whatever their versions are."""
    write_parts(transaction, update(documents).values(read_version=None), documents.c.url_id, url_ids)


def find_sent(transaction: Transaction, url_ids: Sequence[int]) -> list[int]:
    """Those of the documents that the index has, or may have."""
    return find_among(transaction, documents.c.url_id, url_ids, may_be_there())


def send_again(transaction: Transaction, url_ids: Sequence[int]) -> list[int]:
    """Sends documents again whose indexed values have changed and whose record has not (a new depth, another copy).

    Those whose removal waits are sent once they are to stay after all. Returns the ids of those without a record: their
    pages have to be fetched again.
    """
    changed = update(documents).where(AS_IT_IS).values(VALUE_CHANGED.values)
    returning = changed.returning(documents.c.url_id, documents.c.state)
    wanted: list[int] = []
    for part in split(url_ids):
        rows = transaction.execute(returning.where(documents.c.url_id.in_(part)))
        wanted += [url_id for url_id, state in rows if state == DocumentState.RECORD_LOST]
    return wanted


def count_waiting(transaction: Transaction, source_id: int) -> tuple[int, int]:
    """How many documents are to be put into the next delivery, and how many decoded bytes they have."""
    query = select(func.count(), func.coalesce(func.sum(documents.c.content_length), 0)).where(
        _PENDING, documents.c.source_id == source_id, IS_CACHED, documents.c.leaving == int(Leaving.NO)
    )
    number, size = transaction.execute(query).one()
    return int(number), int(size)


def count_totals(transaction: Transaction, source_id: int) -> Mapping[str, int]:
    """Counts the ``documents`` in the index, those ``waiting`` to get there and those ``quarantined``; fast, by indexes."""
    pending = (
        select(documents.c.state, func.count())
        .where(_PENDING, documents.c.source_id == source_id)
        .group_by(documents.c.state)
    )
    by_state = {state: int(count) for state, count in transaction.execute(pending)}
    quarantined = by_state.pop(int(DocumentState.QUARANTINED), 0)
    return {
        "documents": count_rows(transaction, documents, _INDEXED, documents.c.source_id == source_id),
        "waiting": sum(by_state.values()),
        "quarantined": quarantined,
    }
