"""The patterns of URLs: how many URLs they have, how much new text their pages brought, and which are cut (L8)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import xxhash
from sqlalchemy import or_, select, update

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.schema import patterns, urls
from searchcrawl.store.statements import split, unindexed

#: URLs that are read by one query.
_URLS_AT_ONCE: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPattern:
    """A pattern; ``cut`` is the key of ``[scope]`` that cut it, and ``cut_limit`` the value of the key then.

    ``new_permille`` is the mean new-content ratio of its last pages, in thousandths. The next run continues with
    ``shares`` (the ratio of each of these pages, a byte each) and ``runs`` (hashes of the runs of words that they had).
    """

    text: str
    pages: int = 0
    new_permille: int = 0
    cut: str | None = None
    cut_limit: int | None = None
    shares: bytes | None = None
    runs: bytes | None = None


def store(transaction: Transaction, source_id: int, rows: Sequence[StoredPattern]) -> None:
    """Writes patterns without their numbers of URLs."""
    if not rows:
        return
    columns = ("pages", "new_permille", "cut", "cut_limit", "shares", "runs")
    values = [
        {"source_id": source_id, "key": _hash_text(row.text), "pattern": row.text}
        | {column: getattr(row, column) for column in columns}
        for row in rows
    ]
    statement = dialect_of(transaction).upsert(
        patterns, ["source_id", "key"], lambda new: {column: new[column] for column in columns}
    )
    transaction.execute(statement, values)


def load(transaction: Transaction, source_id: int, *, with_shares: bool = False) -> list[StoredPattern]:
    """The patterns with pages that were compared, or that are cut, in the order in which they were found.

    Without ``with_shares`` their ``shares`` and ``runs`` are left out.
    """
    columns = [patterns.c.pattern, patterns.c.pages, patterns.c.new_permille, patterns.c.cut, patterns.c.cut_limit]
    if with_shares:
        columns += [patterns.c.shares, patterns.c.runs]
    query = (
        select(*columns)
        .where(patterns.c.source_id == source_id, or_(patterns.c.pages > 0, patterns.c.cut.is_not(None)))
        .order_by(patterns.c.id)
    )
    return [
        StoredPattern(
            text=row.pattern,
            pages=row.pages,
            new_permille=row.new_permille,
            cut=row.cut,
            cut_limit=row.cut_limit,
            shares=row.shares if with_shares else None,
            runs=row.runs if with_shares else None,
        )
        for row in transaction.execute(query)
    ]


def find_cut(transaction: Transaction, source_id: int) -> list[StoredPattern]:
    """The patterns that are cut, in the order in which they were found."""
    return [row for row in load(transaction, source_id) if row.cut is not None]


def forget_cuts(transaction: Transaction, source_id: int, *, key: str, limit: int) -> None:
    """Forgets the cuts that ``key`` made with another value than ``limit``, and all that is known of their pages."""
    transaction.execute(
        update(patterns)
        .where(patterns.c.source_id == source_id, patterns.c.cut == key, patterns.c.cut_limit != limit)
        .values(cut=None, cut_limit=None, pages=0, new_permille=0, shares=None, runs=None)
    )


def count_urls(transaction: Transaction, source_id: int, texts: Sequence[str]) -> dict[str, int]:
    """How many URLs patterns have; 0 for those that are not known."""
    found = dict.fromkeys(texts, 0)
    for part in split(texts):
        keys = [_hash_text(text) for text in part]
        query = select(patterns.c.pattern, patterns.c.urls).where(
            patterns.c.source_id == source_id, dialect_of(transaction).is_among(patterns.c.key, keys)
        )
        found.update({row.pattern: row.urls for row in transaction.execute(query)})
    return found


def set_counts(transaction: Transaction, source_id: int, numbers: Mapping[str, int]) -> None:
    """Writes how many URLs patterns have."""
    if numbers:
        transaction.execute(
            dialect_of(transaction).upsert(patterns, ["source_id", "key"], lambda new: {"urls": new.urls}),
            [
                {"source_id": source_id, "key": _hash_text(text), "pattern": text, "urls": number}
                for text, number in numbers.items()
            ],
        )


def mark_full(transaction: Transaction, source_id: int, texts: Collection[str], *, key: str, limit: int) -> None:
    """Marks patterns as cut that have all the URLs that ``key`` allows; patterns cut by another key stay."""
    if texts:
        transaction.execute(
            dialect_of(transaction).upsert(
                patterns,
                ["source_id", "key"],
                lambda new: {"cut": new.cut, "cut_limit": new.cut_limit},
                where=patterns.c.cut.is_(None),
            ),
            [
                {"source_id": source_id, "key": _hash_text(text), "pattern": text, "cut": key, "cut_limit": limit}
                for text in texts
            ],
        )


def forget_counts(transaction: Transaction, source_id: int) -> None:
    """Sets the numbers of URLs of all patterns to 0."""
    transaction.execute(update(patterns).where(patterns.c.source_id == source_id).values(urls=0))


def list_urls(transaction: Transaction, source_id: int, *, without: Sequence[int]) -> Iterator[str]:
    """The URLs of a source whose codes are not among ``without``, by rising id."""
    after = 0
    while True:
        query = (
            select(urls.c.id, urls.c.url)
            .where(urls.c.id > after, unindexed(urls.c.source_id) == source_id, urls.c.code.not_in(without))
            .order_by(urls.c.id)
            .limit(_URLS_AT_ONCE)
        )
        rows = list(transaction.execute(query))
        if not rows:
            return
        for row in rows:
            yield row.url
        after = rows[-1].id


def _hash_text(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) - (1 << 63)
