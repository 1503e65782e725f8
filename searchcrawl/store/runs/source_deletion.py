"""What the store has of a source that is deleted: its rows in all tables, in small steps."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Table, delete, select

from searchcrawl.store.batches import removal_table
from searchcrawl.store.documents import shared_copy_table
from searchcrawl.store.documents.presence import IS_REMOVING, may_be_there
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.log_schema import faulty, receivers, tombstones
from searchcrawl.store.run_schema import batches, jobs, leases, runs, segments, submitted
from searchcrawl.store.runs import lease
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.schema import (
    documents,
    former_documents,
    listing_dues,
    outlinks,
    patterns,
    refused_links,
    render_patterns,
    sitemaps,
    sources,
    unfollowed_links,
    urls,
)
from searchcrawl.store.site_schema import anchors, host_blocks, host_languages, host_titles
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import UNSENT, DocumentState

#: Rows that one transaction deletes.
_STEP_ROWS: Final = 5000
#: Each has an index that begins with its source.
OF_SOURCE: Final = (
    sitemaps,
    patterns,
    render_patterns,
    refused_links,
    listing_dues,
    host_blocks,
    host_languages,
    host_titles,
    segments,
    batches,
    runs,
    jobs,
    submitted,
    faulty,
    receivers,
    tombstones,
)
#: Rows that belong to a row of ``urls``: each is deleted before it.
OF_URL: Final = (former_documents, outlinks, unfollowed_links, anchors, documents)


def seal_all(transaction: Transaction, source_id: int, run_id: int, now_ms: int, *, after: int) -> int | None:
    """Seals the next removals of a source, of documents that the index has or may have; returns the last id.

    They count towards no limit: somebody asked for it by the name of the source. Other documents that are to be sent are
    deleted at once. None: there are no more.
    """
    columns = documents.c.url_id, documents.c.state, may_be_there().label("indexed")
    query = select(*columns).where(unindexed(documents.c.source_id) == source_id, documents.c.url_id > after)
    rows = list(transaction.execute(query.order_by(documents.c.url_id).limit(removal_table.PAGE_ROWS)))
    sealing = [row.url_id for row in rows if row.indexed and row.state != DocumentState.REMOVING]
    if sealing:
        removal_table.seal(transaction, source_id, run_id, now_ms, sealing, counted=False)
    unsent = [row.url_id for row in rows if not row.indexed and row.state in UNSENT]
    _delete(transaction, documents, documents.c.url_id, unsent)
    return rows[-1].url_id if rows else None


def find_sealed(transaction: Transaction, source_id: int, *, after: int, most: int) -> list[tuple[int, str]]:
    """The next removals of a source that are sealed, by rising id: the id and the URL of each."""
    query = (
        select(documents.c.url_id, urls.c.url)
        .join(urls, urls.c.id == documents.c.url_id)
        .where(unindexed(documents.c.source_id) == source_id, documents.c.url_id > after)
        .where(IS_REMOVING)
    )
    rows = transaction.execute(query.order_by(documents.c.url_id).limit(most))
    return [(row.url_id, row.url) for row in rows]


def delete_urls(transaction: Transaction, source_id: int) -> int:
    """Deletes the next URLs of a source, with all that is known of them; returns how many."""
    query = select(urls.c.id).where(unindexed(urls.c.source_id) == source_id).order_by(urls.c.id).limit(_STEP_ROWS)
    found = list(transaction.execute(query).scalars())
    shared_copy_table.add_dues_of_survivors(transaction, source_id, found)
    for table in OF_URL:
        _delete(transaction, table, table.c.url_id, found)
    return _delete(transaction, urls, urls.c.id, found)


def delete_source(transaction: Transaction, own: Lease) -> None:
    """Deletes the source itself, whose URLs are gone, with its runs, deliveries and segments; raises LeaseLost."""
    lease.check(transaction, own)
    for table in OF_SOURCE:
        transaction.execute(delete(table).where(table.c.source_id == own.source_id))
    transaction.execute(delete(leases).where(leases.c.source_id == own.source_id))
    transaction.execute(delete(sources).where(sources.c.id == own.source_id))


def _delete(transaction: Transaction, table: Table, column: Column[int], ids: list[int]) -> int:
    for part in split(ids):
        transaction.execute(delete(table).where(column.in_(part)))
    return len(ids)
