"""Copies of documents of other sources, where sources share them (``copies.scope = "collection"``; F4).

A source writes no row of another one. What a document of another source has to list is noted as a due of that source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, func, not_, or_, select, text, update
from sqlalchemy.sql.selectable import NamedFromClause

from searchcrawl.codes import Code
from searchcrawl.store.documents.presence import is_in, is_there
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import has_row, read_parts, upsert_rows, write_parts
from searchcrawl.store.schema import DOCUMENTS_WITH_URLS, documents, listing_dues, sources, urls
from searchcrawl.store.states import SHOWN, DocumentState, Leaving, Sharing

#: Rows that are read at once.
PAGE_ROWS: Final = 5000
_other, _other_url = documents.alias("other"), urls.alias("other_url")
#: The literal lets the planner use the partial index.
_COPIES: Final = text(f"documents.code = {int(Code.DUPLICATE)}")
# The literals let the planner use the partial index.
SURVIVORS: Final = text(
    f"documents.code = 200 AND documents.duplicate_of IS NULL AND documents.state <> {DocumentState.NONE}"
)
_DIGEST: Final = func.coalesce(documents.c.near_digest, documents.c.copy_digest)
_OTHER_DIGEST: Final = func.coalesce(_other.c.near_digest, _other.c.copy_digest)


def build_found(table: NamedFromClause) -> ColumnElement[bool]:
    """The condition on ``documents``, or an alias of it, for those that are indexed themselves, and can be found as they are."""
    return and_(
        # The literals let the planner use the partial index.
        text(f"{table.name}.code = 200 AND {table.name}.duplicate_of IS NULL"),
        text(f"{table.name}.state <> {DocumentState.NONE}"),
        is_there(table),
        table.c.leaving == int(Leaving.NO),
        # What it is near to counts within its source alone.
        table.c.near_digest.is_(None),
    )


#: The index has it, perhaps with earlier fields: it is being sent again, or will be.
_STAYS: Final = and_(
    _other.c.code == 200,
    _other.c.duplicate_of.is_(None),
    _other.c.indexed_version.is_not(None),
    _other.c.leaving == int(Leaving.NO),
    _other.c.near_digest.is_(None),
    is_in(SHOWN, _other),
)
#: Whether what a document is a copy of still stands for it.
HAS_SURVIVOR: Final = exists(
    select(_other.c.url_id).where(_other.c.url_id == documents.c.duplicate_of, _STAYS, _other.c.copy_digest == _DIGEST)
).correlate(documents)


def find_places(transaction: Transaction, source_id: int) -> dict[int, int]:
    """The other sources with which a source shares copies, by id: their place in the order of names, its own being 0."""
    query = select(sources.c.id, sources.c.name).where(sources.c.shares_copies == int(Sharing.YES))
    names = {row.id: row.name for row in transaction.execute(query)}
    if source_id not in names:
        return {}
    ordered = sorted(names, key=lambda each: str(names[each]))
    own = ordered.index(source_id)
    return {each: number - own for number, each in enumerate(ordered) if each != source_id}


def end_sharing(transaction: Transaction, source_id: int) -> None:
    """Notes that a source has no copies of documents of others any more, where it was to have none."""
    ends = sources.c.id == source_id, sources.c.shares_copies == int(Sharing.ENDS)
    transaction.execute(update(sources).where(*ends).values(shares_copies=int(Sharing.NO)))


def find_sharing(transaction: Transaction) -> dict[int, str]:
    """The sources that share copies, or have dues, by id."""
    dues = exists().where(listing_dues.c.source_id == sources.c.id)
    query = select(sources.c.id, sources.c.name).where(or_(sources.c.shares_copies == int(Sharing.YES), dues))
    return {row.id: row.name for row in transaction.execute(query.order_by(sources.c.name))}


class ForeignCopy(NamedTuple):
    """A copy of a document of another source, and that document as it is now; ``stays`` is false if it is gone.

    ``source_id`` is that of the other source.
    """

    url_id: int
    url: str
    digest: bytes | None
    redirected: bool
    url_fit: int | None
    source_id: int | None
    other_url: str | None
    other_redirected: bool
    other_fit: int | None
    stays: bool


def load_foreign(transaction: Transaction, source_id: int, *, after: int) -> list[ForeignCopy]:
    """The next copies in a source that may have no document of another source any more to stand for them, by rising id.

    Left out are those of which it is plain that they have: such a document was the better one when they became copies, and
    only one that redirects since may be so no more.
    """
    sharing = select(sources.c.id).where(sources.c.shares_copies == int(Sharing.YES))
    stays = and_(_STAYS, _other.c.copy_digest == _DIGEST)
    rows = DOCUMENTS_WITH_URLS.outerjoin(_other, _other.c.url_id == documents.c.duplicate_of).outerjoin(
        _other_url, _other_url.c.id == documents.c.duplicate_of
    )
    query = (
        select(
            documents.c.url_id,
            urls.c.url,
            _DIGEST,
            documents.c.answered_key.is_not(None),
            documents.c.url_fit,
            _other.c.source_id,
            _other_url.c.url,
            _other.c.answered_key.is_not(None),
            _other.c.url_fit,
            func.coalesce(stays, False),
        )
        .select_from(rows)
        .where(
            _COPIES,
            documents.c.source_id == source_id,
            documents.c.url_id > after,
            documents.c.duplicate_of.is_not(None),
            # SQLite may have given the id of a row of a deleted source to one of this source since.
            or_(_other.c.source_id.is_distinct_from(source_id), _DIGEST != _OTHER_DIGEST),
            not_(and_(func.coalesce(stays, False), _other.c.answered_key.is_(None), _other.c.source_id.in_(sharing))),
        )
        .order_by(documents.c.url_id)
        .limit(PAGE_ROWS)
    )
    return [ForeignCopy._make(row) for row in transaction.execute(query)]


def find_shared(
    transaction: Transaction, source_id: int, others: Collection[int], *, after: bytes
) -> list[tuple[int, bytes]]:
    """Id and digest of the next documents of a source that are indexed as those of ``others`` are, by rising digest."""
    same = and_(
        build_found(_other), _other.c.source_id.in_(sorted(others)), _other.c.copy_digest == documents.c.copy_digest
    )
    query = (
        select(documents.c.url_id, documents.c.copy_digest)
        .where(
            SURVIVORS,
            documents.c.source_id == source_id,
            documents.c.copy_digest > after,
            exists(select(_other.c.url_id).where(same)),
        )
        .order_by(documents.c.copy_digest)
        .limit(PAGE_ROWS)
    )
    return [(row.url_id, row.copy_digest) for row in transaction.execute(query)]


def split_foreign(
    transaction: Transaction, source_id: int, url_ids: Collection[int]
) -> tuple[list[int], dict[int, int]]:
    """Those of documents that are of a source, and the source of each of the others, by id; none of those that are gone."""
    query = select(documents.c.url_id, documents.c.source_id).order_by(documents.c.url_id)
    found = {row.url_id: row.source_id for row in read_parts(transaction, query, documents.c.url_id, sorted(url_ids))}
    own = [url_id for url_id, source in found.items() if source == source_id]
    return own, {url_id: source for url_id, source in found.items() if source != source_id}


def add_dues(transaction: Transaction, foreign: Mapping[int, int]) -> None:
    """Notes that documents are to be sent again by their own sources, by row id: their lists of copies have changed."""
    rows = [{"url_id": url_id, "source_id": source_id} for url_id, source_id in sorted(foreign.items())]
    upsert_rows(transaction, listing_dues, ("url_id",), rows)


def add_dues_of_survivors(transaction: Transaction, source_id: int, url_ids: Sequence[int]) -> None:
    """Notes what documents of other sources have to list no longer, because copies of them are about to be deleted."""
    query = select(_other.c.url_id, _other.c.source_id).where(
        _other.c.url_id == documents.c.duplicate_of, _other.c.source_id != source_id
    )
    rows = read_parts(transaction, query, documents.c.url_id, url_ids)
    add_dues(transaction, {row.url_id: row.source_id for row in rows})


def take_dues(transaction: Transaction, source_id: int) -> list[int]:
    """Takes the next documents of a source that are to be sent again; they are noted no longer."""
    query = select(listing_dues.c.url_id).where(listing_dues.c.source_id == source_id)
    found = list(transaction.execute(query.order_by(listing_dues.c.url_id).limit(PAGE_ROWS)).scalars())
    write_parts(transaction, delete(listing_dues), listing_dues.c.url_id, found)
    return found


def has_dues(transaction: Transaction, source_id: int) -> bool:
    """Whether documents of a source are to be sent again for the lists of their copies."""
    return has_row(transaction, listing_dues.c.source_id == source_id)
