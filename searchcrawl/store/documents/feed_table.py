"""What the deltas of a feed say of documents, and how it differs from what the index has (K4).

A delta is written in steps, so that a crash between any two of them loses no change and repeats none. The documents that
it has are staged, a page at a time. Once its file is on the disk the delta counts: ``note_file``, one small transaction.
Then the file gets its name, and what was staged is taken over. Before that, what is staged means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import (
    Boolean,
    ColumnElement,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    literal_column,
    select,
    tuple_,
    update,
)

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.feed_schema import feed_documents, feeds
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.statements import unindexed

#: Rows that one transaction reads or changes.
PAGE_ROWS: Final = 5000
#: The version of a document that the delta removes.
_REMOVED: Final = 0
#: The version of a document that the deltas may have: the store is older than they are. No document has it.
_UNKNOWN: Final = -1
_PRIMARY: Final = [column.name for column in feed_documents.primary_key]
_KEY: Final = (feed_documents.c.url_id, feed_documents.c.url_key)
# The literal lets the planner use the partial index.
_IS_STAGED: Final = literal_column("feed_documents.staged IS NOT NULL", Boolean)

#: The id of a row, and the key of its URL: up to there the documents of a feed were read.
_Place = tuple[int, int]


class FeedRow(NamedTuple):
    """A feed: its id, its name in the source file, the number of its last delta, and the file that is under way."""

    id: int
    name: str
    number: int
    file: str | None


class FeedDocument(NamedTuple):
    """A document that a delta says something of; ``version`` is None where it removes it."""

    url_id: int
    url_key: int
    digest: bytes
    version: int | None = None


def list_feeds(transaction: Transaction, source_id: int) -> list[FeedRow]:
    """All feeds of a source, also those that its file has no more."""
    query = select(*(feeds.c[name] for name in FeedRow._fields)).where(feeds.c.source_id == source_id)
    return [FeedRow._make(row) for row in transaction.execute(query.order_by(feeds.c.id))]


def find_or_add(transaction: Transaction, source_id: int, name: str) -> FeedRow:
    """The feed of this name; a new one has no delta yet."""
    known = next((each for each in list_feeds(transaction, source_id) if each.name == name), None)
    if known is not None:
        return known
    added = insert(feeds).values(source_id=source_id, name=name).returning(feeds.c.id)
    return FeedRow(transaction.execute(added).scalar_one(), name, 0, None)


def drop_page(transaction: Transaction, source_id: int, feed_id: int) -> bool:
    """Forgets the next documents of a feed; the feed with the last of them, and then returns False."""
    page = _find_page(transaction, source_id, feed_id)
    if page is None:
        transaction.execute(delete(feeds).where(feeds.c.id == feed_id))
        return False
    transaction.execute(delete(feed_documents).where(page))
    return True


def unstage_page(transaction: Transaction, source_id: int, feed_id: int) -> bool:
    """Takes back what a delta that never counted has staged, a page at a time; whether there may be more."""
    page = _find_page(transaction, source_id, feed_id, _IS_STAGED)
    if page is None:
        return False
    transaction.execute(delete(feed_documents).where(page, feed_documents.c.version.is_(None)))
    transaction.execute(update(feed_documents).where(page).values(staged=None))
    return True


def move_page(transaction: Transaction, source_id: int, feed_id: int, *, after: _Place) -> _Place | None:
    """Gives the next documents whose URLs have other rows by now the ids of these; returns up to where, None at the end.

    A URL that was forgotten, or deleted with its source, comes again in a new row. Nothing may be staged.
    """
    now = urls.alias("now")
    rows = feed_documents.outerjoin(urls, _is_row(source_id))
    rows = rows.join(now, and_(now.c.source_id == source_id, now.c.key == feed_documents.c.url_key))
    query = (
        select(*_KEY, feed_documents.c.digest, feed_documents.c.version, now.c.id)
        .select_from(rows)
        .where(_is_of(source_id, feed_id), urls.c.id.is_(None), tuple_(*_KEY) > tuple_(*map(literal, after)))
        .order_by(*_KEY)
        .limit(PAGE_ROWS)
    )
    moved = transaction.execute(query).all()
    if not moved:
        return None
    own = {"source_id": source_id, "feed_id": feed_id}
    values = [{**own, "url_id": row[4], "url_key": row[1], "digest": row[2], "version": row[3]} for row in moved]
    # A comparison with the index may have added the new row.
    transaction.execute(dialect_of(transaction).upsert(feed_documents, _PRIMARY), values)
    old = and_(*(column == bindparam(f"old_{column.name}") for column in _KEY))
    gone = delete(feed_documents).where(_is_of(source_id, feed_id), old)
    transaction.execute(gone, [{"old_url_id": row[0], "old_url_key": row[1]} for row in moved])
    return moved[-1][0], moved[-1][1]


def find_gone(transaction: Transaction, source_id: int, feed_id: int, *, after: _Place) -> list[FeedDocument]:
    """The next documents that the deltas of a feed have and the index has not, by rising row and key of the URL."""
    rows = feed_documents.outerjoin(urls, _is_row(source_id))
    rows = rows.outerjoin(documents, documents.c.url_id == urls.c.id)
    query = (
        select(*_KEY, feed_documents.c.digest)
        .select_from(rows)
        .where(
            _is_of(source_id, feed_id),
            feed_documents.c.version.is_not(None),
            documents.c.indexed_version.is_(None),
            tuple_(*_KEY) > tuple_(*map(literal, after)),
        )
        .order_by(*_KEY)
        .limit(PAGE_ROWS)
    )
    return [FeedDocument(*row) for row in transaction.execute(query)]


def stage(transaction: Transaction, source_id: int, feed_id: int, found: Iterable[FeedDocument]) -> None:
    """Notes what the delta under way says of documents."""
    values = [
        {
            "source_id": source_id,
            "feed_id": feed_id,
            "url_id": each.url_id,
            "url_key": each.url_key,
            "digest": each.digest,
            "staged": each.version if each.version is not None else _REMOVED,
        }
        for each in found
    ]
    if values:
        statement = dialect_of(transaction).upsert(feed_documents, _PRIMARY, lambda new: {"staged": new.staged})
        transaction.execute(statement, values)


def note_told(transaction: Transaction, source_id: int, found: Sequence[FeedDocument]) -> None:
    """Notes that the deltas of all feeds may have these documents, in any version.

    What is staged of them may be of a delta before the last, so it says nothing any more.
    """
    values = [
        {**each._asdict(), "source_id": source_id, "feed_id": feed.id, "version": _UNKNOWN}
        for feed in list_feeds(transaction, source_id)
        for each in found
    ]
    if values:
        known = func.coalesce(feed_documents.c.version, _UNKNOWN)
        statement = dialect_of(transaction).upsert(
            feed_documents, _PRIMARY, lambda new: {"version": known, "staged": None}
        )
        transaction.execute(statement, values)


def note_file(transaction: Transaction, feed_id: int, *, file: str, number: int) -> None:
    """Notes that the content of a delta is on the disk: from now on it counts, and what is staged with it."""
    transaction.execute(update(feeds).where(feeds.c.id == feed_id).values(file=file, number=number))


def settle_page(transaction: Transaction, source_id: int, feed_id: int) -> bool:
    """Takes over what the delta under way has staged, a page at a time; once nothing is left it is over: False."""
    page = _find_page(transaction, source_id, feed_id, _IS_STAGED)
    if page is None:
        transaction.execute(update(feeds).where(feeds.c.id == feed_id).values(file=None))
        return False
    transaction.execute(delete(feed_documents).where(page, feed_documents.c.staged == _REMOVED))
    transaction.execute(update(feed_documents).where(page).values(version=feed_documents.c.staged, staged=None))
    return True


def _is_of(source_id: int, feed_id: int) -> ColumnElement[bool]:
    return and_(feed_documents.c.source_id == source_id, feed_documents.c.feed_id == feed_id)


def _is_row(source_id: int) -> ColumnElement[bool]:
    """Whether a row of a URL is that of a document of a feed."""
    same = and_(urls.c.id == feed_documents.c.url_id, urls.c.key == feed_documents.c.url_key)
    return and_(same, unindexed(urls.c.source_id) == source_id)


def _find_page(
    transaction: Transaction, source_id: int, feed_id: int, *where: ColumnElement[bool]
) -> ColumnElement[bool] | None:
    """The condition on the next rows of a feed for which ``where`` is true; None where there are none."""
    here = and_(_is_of(source_id, feed_id), *where)
    keys = transaction.execute(select(*_KEY).where(here).order_by(*_KEY).limit(PAGE_ROWS)).all()
    return and_(here, tuple_(*_KEY) <= tuple_(*map(literal, keys[-1]))) if keys else None
