"""The documents of the URL rows: what the cache and the index have of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Insert,
    LargeBinary,
    SmallInteger,
    Text,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    text,
    update,
)

from searchcrawl.codes import COPIES, WITH_DOCUMENT
from searchcrawl.rules.lifecycle import ORPHAN
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import Dialect, dialect_of
from searchcrawl.store.many_rows import write_rows
from searchcrawl.store.schema import documents
from searchcrawl.store.statements import is_one_of, split
from searchcrawl.store.states import AT_HAND, PENDING, DocumentState, Leaving

_PENDING: Final = is_one_of("documents.state", PENDING)
_INDEXED: Final = text("documents.indexed_version IS NOT NULL")
#: Another document is indexed instead.
_STOOD_FOR: Final = documents.c.duplicate_of.is_not(None)
#: The document of another page is indexed instead. No IN: its list cannot be expanded for many rows at once.
_COPY_CODES: Final = COPIES & WITH_DOCUMENT
IS_COPY: Final = or_(*(documents.c.code == code for code in sorted(_COPY_CODES)))
_CODE_ALONE: Final = case((_STOOD_FOR, 200), else_=documents.c.code)
#: What an operator and the index said of a document that is none any more.
_UNJUDGED: Final[Mapping[str, Any]] = {"rejected_run": None, "index_error": None}

#: The version of a document that is taken out of its delivery. The index may have got it, and its answer may be lost
#: with the process. Then the document may be in the index in an unknown version (0).
MAYBE_INDEXED: Final = case(
    (and_(documents.c.state == int(DocumentState.SENDING), documents.c.indexed_version.is_(None)), 0),
    else_=documents.c.indexed_version,
)
#: The state of a document whose removal is dropped. It is sent unless the index had it as it is when the removal was
#: held back. A page that may not be indexed has no text that could be sent: what the index has stays.
OUT_OF_QUARANTINE: Final = case(
    (
        or_(
            and_(documents.c.held_state == int(DocumentState.PRESENT), documents.c.duplicate_of.is_(None)),
            documents.c.held_state == int(DocumentState.NONE),
        ),
        int(DocumentState.PRESENT),
    ),
    (documents.c.segment.is_not(None), int(DocumentState.CACHED)),
    else_=int(DocumentState.RECORD_LOST),
)
#: What a removal that waits was held back in, where an indexed value besides the text has changed since. No document is held
#: back in this state itself.
HELD_CHANGED: Final = int(DocumentState.QUARANTINED)
HELD_AS_IT_IS: Final = and_(
    documents.c.state == int(DocumentState.QUARANTINED), documents.c.held_state == int(DocumentState.PRESENT)
)
#: The index has it as it is, or is about to, and it stays, or its removal waits.
AS_IT_IS: Final = or_(
    and_(
        documents.c.state.in_([int(DocumentState.PRESENT), int(DocumentState.SENDING)]),
        documents.c.leaving == int(Leaving.NO),
    ),
    HELD_AS_IT_IS,
)
#: Documents whose removal an operator rejected for what good content says nothing about: another page is indexed in
#: their place (909, 956, 964), or nothing names them any more.
_REJECTED_FOR_OTHERS: Final = and_(
    documents.c.rejected_run.is_not(None),
    or_(*(documents.c.evidence == each for each in (ORPHAN, *(str(code) for code in sorted(_COPY_CODES))))),
)
#: The page is as good as it was, and that is what counts.
_IS_GOOD: Final = and_(documents.c.code == 200, documents.c.evidence.is_distinct_from(ORPHAN))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
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


def store(transaction: Transaction, source_id: int, stored: Sequence[StoredDocument]) -> None:
    """Writes new and changed documents; receipts of earlier versions are kept."""
    if not stored:
        return
    rows = [
        {
            **{name: getattr(document, name) for name in StoredDocument.__slots__},
            "state": int(document.state),
            "source_id": source_id,
            "leaving": 0,
            "duplicate_of": None,
            "index_error": None,
            "quarantine_run": None,
            "rejected_run": None,
            "removed_run": None,
        }
        for document in stored
    ]
    write_rows(transaction, _build_upsert(dialect_of(transaction)), rows)


# Kept: building it takes longer than writing a page with it.
@cache
def _build_upsert(dialect: Dialect) -> Insert:
    return dialect.upsert(documents, ["url_id"], _build_changes)


def _build_changes(new: Any) -> dict[str, Any]:
    replaced: dict[str, Any] = {
        name: new[name]
        for name in (
            *(*StoredDocument.__slots__, "leaving", "duplicate_of", "index_error"),
            *("quarantine_run", "rejected_run", "removed_run"),
        )
        if name not in {"url_id", "state"}
    }
    # A document in the index that may not be indexed any more is marked, and removed at the end of the run.
    replaced["state"] = new.state
    replaced["leaving"] = case((and_(new.state == int(DocumentState.NONE), MAYBE_INDEXED.is_not(None)), 1), else_=0)
    replaced["indexed_version"] = MAYBE_INDEXED
    replaced["batch_id"] = None
    # Whether another text stands for its own is decided at the end of the run.
    replaced["near_digest"] = replaced["near_signature"] = None
    # It is that of the content, also where that was read by an earlier release: known copies keep their order.
    same_content = documents.c.copy_digest == new.copy_digest
    replaced["url_fit"] = case((same_content, documents.c.url_fit), else_=new.url_fit)
    # Whether it is still a copy is decided after this: ``duplicate_key_table.set_results``, or ``forget_rejections``.
    still_rejected = and_(new.state == int(DocumentState.CACHED), _REJECTED_FOR_OTHERS)
    for name in ("evidence", "rejected_run"):
        replaced[name] = case((still_rejected, documents.c[name]), else_=new[name])
    return replaced


_CONFIRM: Final = (
    update(documents)
    .where(documents.c.url_id == bindparam("row_id"))
    .values(
        etag=case(
            # What was read may have none any more; what did not change may not repeat it.
            (bindparam("read") == 1, bindparam("new_etag", type_=Text)),
            else_=func.coalesce(bindparam("new_etag", type_=Text), documents.c.etag),
        ),
        last_modified=func.coalesce(bindparam("new_modified"), documents.c.last_modified),
        body_digest=func.coalesce(bindparam("new_body"), documents.c.body_digest),
        copy_digest=case(
            (bindparam("same_fields") == 0, documents.c.copy_digest),
            (bindparam("has_copy") == 0, None),
            else_=bindparam("new_copy", type_=LargeBinary),
        ),
        near_digest=case(
            (and_(bindparam("same_fields") == 1, bindparam("has_copy") == 0), None), else_=documents.c.near_digest
        ),
        url_fit=case(
            (or_(bindparam("same_fields") == 0, bindparam("has_copy") == 0), documents.c.url_fit),
            (documents.c.copy_digest == bindparam("new_copy", type_=LargeBinary), documents.c.url_fit),
            else_=bindparam("new_fit", type_=SmallInteger),
        ),
        unavailable_ms=case(
            (bindparam("read") == 1, bindparam("new_unavailable", type_=BigInteger)), else_=documents.c.unavailable_ms
        ),
        rendered=bindparam("new_rendered"),
        parts=bindparam("new_parts"),
        state=case(
            # The page is back, and has another value than the index.
            (and_(bindparam("send_again") == 1, HELD_AS_IT_IS, _IS_GOOD), int(DocumentState.CACHED)),
            # The page is back: the removal in quarantine is dropped.
            (and_(documents.c.state == int(DocumentState.QUARANTINED), _IS_GOOD), OUT_OF_QUARANTINE),
            # The document was removed, or is being removed, and the cache has its record: it is sent again.
            (
                and_(
                    # No IN: its list cannot be expanded for many rows at once.
                    or_(documents.c.state == int(DocumentState.NONE), documents.c.state == int(DocumentState.REMOVING)),
                    _IS_GOOD,
                    documents.c.segment.is_not(None),
                ),
                int(DocumentState.CACHED),
            ),
            (
                and_(bindparam("send_again") == 1, documents.c.state == int(DocumentState.PRESENT)),
                int(DocumentState.CACHED),
            ),
            else_=documents.c.state,
        ),
        leaving=case((_IS_GOOD, 0), else_=documents.c.leaving),
        **{
            name: case((_IS_GOOD, None), else_=documents.c[name])
            for name in ("evidence", "quarantine_run", "rejected_run", "removed_run")
        },
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """A document whose fields have not changed; ``send_again`` if another indexed value has.

    ``read`` tells whether its page was read; then ``unavailable_ms`` is the date that the page states. ``same_fields``: it
    was, and all fields are those of the document; then ``copy_digest`` and ``url_fit`` are those of the document.
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


def confirm(transaction: Transaction, confirmed: Sequence[Confirmed]) -> None:
    """Notes that documents have not changed."""
    if confirmed:
        parameters = [
            {
                "row_id": entry.url_id,
                "new_etag": entry.etag,
                "new_modified": entry.last_modified,
                "new_body": entry.body_digest,
                "send_again": int(entry.send_again),
                "read": int(entry.read),
                "new_unavailable": entry.unavailable_ms,
                "same_fields": int(entry.same_fields),
                "has_copy": int(entry.copy_digest is not None),
                "new_copy": entry.copy_digest,
                "new_fit": entry.url_fit,
                "new_rendered": entry.rendered,
                "new_parts": entry.parts,
            }
            for entry in confirmed
        ]
        transaction.execute(_CONFIRM, parameters)


def note_parts(transaction: Transaction, noted: Mapping[int, str | None]) -> None:
    """Notes how pages were rendered that were not taken, by row id."""
    if noted:
        statement = update(documents).where(documents.c.url_id == bindparam("row_id"))
        parameters = [{"row_id": row_id, "new_parts": parts} for row_id, parts in noted.items()]
        write_rows(transaction, statement.values(parts=bindparam("new_parts")), parameters)


def find_lost(transaction: Transaction, url_ids: Sequence[int]) -> set[int]:
    """Ids of the documents that should be sent, but have no record in the cache."""
    found: set[int] = set()
    for part in split(url_ids):
        query = select(documents.c.url_id).where(
            documents.c.url_id.in_(part),
            documents.c.code == 200,
            documents.c.segment.is_(None),
            or_(
                documents.c.state.in_([int(DocumentState.CACHED), int(DocumentState.RECORD_LOST)]),
                and_(_IS_GOOD, documents.c.state == int(DocumentState.REMOVING)),
                and_(documents.c.state == int(DocumentState.NONE), documents.c.indexed_version.is_(None)),
            ),
        )
        found.update(transaction.execute(query).scalars())
    return found


def find_codes(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, int]:
    """The code of the documents by id: 200, or why they are not indexed."""
    found: dict[int, int] = {}
    for part in split(url_ids):
        query = select(documents.c.url_id, documents.c.code).where(documents.c.url_id.in_(part))
        found.update({row.url_id: row.code for row in transaction.execute(query)})
    return found


def mark_evidence(
    transaction: Transaction, url_ids: Sequence[int], evidence: str, leaving: Leaving = Leaving.EVIDENCE
) -> None:
    """Notes evidence against documents. Those that are neither in the index nor in a delivery are dropped at once.

    Documents that an operator kept in spite of the same evidence stay as they are. With another reason for
    ``leaving`` nothing is dropped.
    """
    for part in split(url_ids):
        kept = and_(
            documents.c.rejected_run.is_not(None),
            documents.c.evidence == evidence,
            or_(documents.c.state.in_(sorted(AT_HAND)), documents.c.indexed_version.is_not(None)),
        )
        here = and_(documents.c.url_id.in_(part), ~func.coalesce(kept, False))
        on_the_way = or_(documents.c.indexed_version.is_not(None), documents.c.state == int(DocumentState.SENDING))
        transaction.execute(
            update(documents)
            .where(here, on_the_way)
            .values(
                leaving=int(leaving),
                # It is not treated as a copy any more: it is removed for its own reason.
                state=case(
                    (and_(_STOOD_FOR, documents.c.state == int(DocumentState.WITHHELD)), int(DocumentState.CACHED)),
                    else_=documents.c.state,
                ),
                duplicate_of=None,
                code=_CODE_ALONE,
                evidence=evidence,
                rejected_run=None,
            )
        )
        if leaving == Leaving.EVIDENCE:
            transaction.execute(
                update(documents)
                .where(here, ~on_the_way)
                .values(state=int(DocumentState.NONE), duplicate_of=None, code=_CODE_ALONE, **_UNJUDGED)
            )


def forget_rejections(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Forgets rejections of removals: what was held against the documents holds no longer."""
    for part in split(url_ids):
        transaction.execute(
            update(documents).where(documents.c.url_id.in_(part)).values(rejected_run=None, evidence=None)
        )


def process_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has documents processed again at their next visit, also with the same bytes: as after an edit of the source (D9)."""
    for part in split(url_ids):
        transaction.execute(update(documents).where(documents.c.url_id.in_(part)).values(unavailable_ms=0))


def send_again(transaction: Transaction, url_ids: Sequence[int]) -> list[int]:
    """Sends documents again whose indexed values have changed and whose record has not (a new depth, another copy).

    Those whose removal waits are sent once they are to stay after all. Returns the ids of those without a record: their
    pages have to be fetched again.
    """
    wanted: list[int] = []
    for part in split(url_ids):
        rows = transaction.execute(
            update(documents)
            .where(documents.c.url_id.in_(part), AS_IT_IS)
            .values(
                state=case(
                    (documents.c.state == int(DocumentState.QUARANTINED), documents.c.state),
                    (documents.c.segment.is_(None), int(DocumentState.RECORD_LOST)),
                    else_=int(DocumentState.CACHED),
                ),
                held_state=case((HELD_AS_IT_IS, HELD_CHANGED), else_=documents.c.held_state),
                indexed_version=MAYBE_INDEXED,
                batch_id=None,
            )
            .returning(documents.c.url_id, documents.c.state)
        )
        wanted += [url_id for url_id, state in rows if state == DocumentState.RECORD_LOST]
    return wanted


def count_waiting(transaction: Transaction, source_id: int) -> tuple[int, int]:
    """How many documents are to be put into the next delivery, and how many decoded bytes they have."""
    row = transaction.execute(
        select(func.count(), func.coalesce(func.sum(documents.c.content_length), 0)).where(
            _PENDING,
            documents.c.source_id == source_id,
            documents.c.state == int(DocumentState.CACHED),
            documents.c.leaving == int(Leaving.NO),
        )
    ).one()
    return int(row[0]), int(row[1])


def count_totals(transaction: Transaction, source_id: int) -> Mapping[str, int]:
    """Counts the ``documents`` in the index, those ``waiting`` to get there and those ``quarantined``; fast, by indexes."""
    indexed = select(func.count()).select_from(documents).where(_INDEXED, documents.c.source_id == source_id)
    pending = (
        select(documents.c.state, func.count())
        .where(_PENDING, documents.c.source_id == source_id)
        .group_by(documents.c.state)
    )
    by_state = {state: int(count) for state, count in transaction.execute(pending)}
    quarantined = by_state.pop(int(DocumentState.QUARANTINED), 0)
    return {
        "documents": int(transaction.execute(indexed).scalar_one()),
        "waiting": sum(by_state.values()),
        "quarantined": quarantined,
    }
