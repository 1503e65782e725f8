"""The texts of links to documents, as they were frozen at the end of the last completed run, and what they are made of (C8)."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row, and_, delete, func, insert, select, update

from searchcrawl.store.documents.presence import is_in
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import find_among, read_page, read_parts, write_parts, write_rows
from searchcrawl.store.schema import anchors, documents, former_documents, outlinks, sources, urls
from searchcrawl.store.statements import unindexed
from searchcrawl.store.states import SHOWN
from searchcrawl.store.urls import link_table
from searchcrawl.store.urls.url_queries import is_redirecting

#: Pages, and rows, that are read at once.
_PAGES: Final = 500
_ROWS: Final = 5_000
#: No chain of redirects and copies is longer.
_MOST_STEPS: Final = 50
#: Documents of the index, or on their way there, that stay: their links count.
_COUNTING: Final = and_(documents.c.code == 200, documents.c.leaving == 0, is_in(SHOWN))
#: Sums are of remainders: databases have 64 bits for them.
_BOUND: Final = 1_000_003


class Successors:
    """Which rows stand for others: the targets of redirects, and the survivors of copies."""

    def __init__(self, pairs: Sequence[tuple[int, int]]) -> None:
        # Of millions a dict would take hundreds of bytes each.
        self._ids = array("q", (url_id for url_id, _ in pairs))
        self._others = array("q", (other for _, other in pairs))

    def follow(self, url_id: int) -> int:
        """The row that stands for a row in the end; one in a circle stands for itself."""
        place = url_id
        for _ in range(_MOST_STEPS):
            at = bisect_left(self._ids, place)
            if at == len(self._ids) or self._ids[at] != place:
                return place
            place = self._others[at]
        return url_id


def note_change(transaction: Transaction, source_id: int) -> None:
    """Notes that links of a source changed since texts were frozen."""
    here = sources.c.id == source_id, sources.c.anchors.is_not(None)
    transaction.execute(update(sources).where(*here).values(anchors=None))


def describe(transaction: Transaction, source_id: int) -> str:
    """What besides links decides about texts, as sums: which documents, copies and redirects there are."""
    number = documents.c.url_id % _BOUND
    changed = func.coalesce(documents.c.last_changed_ms, 0) % _BOUND
    sums = func.sum(number), func.sum(number * number % _BOUND), func.sum(number * changed % _BOUND)
    counting = select(func.count(), *sums).where(unindexed(documents.c.source_id) == source_id, _COUNTING)
    copies = select(func.sum(number * (documents.c.duplicate_of % _BOUND) % _BOUND)).where(
        documents.c.source_id == source_id, documents.c.duplicate_of.is_not(None)
    )
    redirecting = select(func.count(), func.sum(urls.c.id % _BOUND)).where(
        unindexed(urls.c.source_id) == source_id, is_redirecting(urls)
    )
    found = [value for query in (counting, copies, redirecting) for value in transaction.execute(query).one()]
    return " ".join(str(int(value or 0)) for value in found)


def load_pages(transaction: Transaction, source_id: int, *, after: int) -> Sequence[Row[Any]]:
    """The next documents whose links count, by rising id: id, host and the texts of its links (``link_table.decode_texts``)."""
    query = (
        select(urls.c.id.label("url_id"), urls.c.host_id, outlinks.c.texts)
        .select_from(
            documents.join(urls, and_(urls.c.id == documents.c.url_id, urls.c.id > after)).outerjoin(
                outlinks, and_(outlinks.c.url_id == documents.c.url_id, outlinks.c.url_id > after)
            )
        )
        .where(_COUNTING)
    )
    return read_page(transaction, query, source_id, by=documents.c.url_id, after=after, limit=_PAGES)


def load_successors(transaction: Transaction, source_id: int) -> Successors:
    """Which rows of a source stand for others."""
    redirecting = (
        select(outlinks.c.url_id, outlinks.c.links)
        .join(urls, urls.c.id == outlinks.c.url_id)
        .where(urls.c.source_id == source_id, is_redirecting(urls))
    )
    # Texts of links count within their source: of one of another source, this one's best copy gets none.
    survivors = documents.alias("survivors")
    copies = select(documents.c.url_id, documents.c.duplicate_of).where(
        documents.c.source_id == source_id,
        documents.c.duplicate_of.is_not(None),
        survivors.c.url_id == documents.c.duplicate_of,
        survivors.c.source_id == source_id,
    )
    pairs: list[tuple[int, int]] = [(row.url_id, row.duplicate_of) for row in transaction.execute(copies)]
    for row in transaction.execute(redirecting):
        targets = link_table.decode(row.links)
        if len(targets) == 1:
            pairs.append((row.url_id, targets[0]))
    return Successors(sorted(pairs))


def load_said(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, set[str]]:
    """What the links of pages say of other rows, in the case of ``casefold``, by their id.

    And what they said before a run changed them: that may be what is frozen.
    """
    found: dict[int, set[str]] = {}
    for table, column in ((outlinks, outlinks.c.texts), (former_documents, former_documents.c.link_texts)):
        query = select(column.label("texts")).where(column.is_not(None))
        for row in read_parts(transaction, query, table.c.url_id, url_ids):
            for target, texts in link_table.decode_texts(row.texts).texts.items():
                found.setdefault(target, set()).update(map(str.casefold, texts))
    return found


def load(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, list[str]]:
    """The frozen texts of documents that have any."""
    query = select(anchors.c.url_id, anchors.c.texts)
    return {row.url_id: row.texts.split("\n") for row in read_parts(transaction, query, anchors.c.url_id, url_ids)}


def load_of(transaction: Transaction, url_id: int) -> list[str]:
    """The frozen texts of one document."""
    return load(transaction, [url_id]).get(url_id, [])


def load_next(transaction: Transaction, source_id: int, *, after: int) -> list[tuple[int, str]]:
    """Row id and frozen texts, one a line, of the next documents that have any, by rising id."""
    query = (
        select(anchors.c.url_id, anchors.c.texts)
        .where(anchors.c.source_id == source_id, anchors.c.url_id > after)
        .order_by(anchors.c.url_id)
        .limit(_ROWS)
    )
    return [(row.url_id, row.texts) for row in transaction.execute(query)]


_INSERT: Final = insert(anchors)


def freeze(transaction: Transaction, source_id: int, texts: Mapping[int, str]) -> None:
    """Puts texts, one a line, in the place of those that were frozen of documents, by row id; empty: it has none."""
    forget(transaction, list(texts))
    rows = [{"url_id": url_id, "source_id": source_id, "texts": text} for url_id, text in texts.items() if text]
    write_rows(transaction, _INSERT, rows)


def forget(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Forgets the texts of links to documents."""
    write_parts(transaction, delete(anchors), anchors.c.url_id, url_ids)


def find_with_record(transaction: Transaction, url_ids: Sequence[int]) -> list[int]:
    """Those of documents that the cache has a record of."""
    return find_among(transaction, documents.c.url_id, url_ids, documents.c.segment.is_not(None))
