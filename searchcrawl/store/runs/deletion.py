"""Rows that are deleted, in small steps: all of a source, and those that are older than ``store.retention_days``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Select, and_, delete, exists, func, or_, select, text

from searchcrawl.codes import REFUSED
from searchcrawl.rules.lifecycle import ORPHAN_RULE
from searchcrawl.store import log_table, removal_table
from searchcrawl.store.documents import segment_table, shared_copy_table
from searchcrawl.store.documents.presence import IS_NOTHING, IS_REMOVING, may_be_there
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.log_table import LogPlace
from searchcrawl.store.many_rows import read_page, write_parts
from searchcrawl.store.run_schema import batches, faulty, jobs, leases, receivers, runs, segments, submitted, tombstones
from searchcrawl.store.runs import lease
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.runs.run_table import find_last_completed
from searchcrawl.store.schema import (
    DOCUMENTS_WITH_URLS,
    anchors,
    documents,
    former_documents,
    host_blocks,
    host_languages,
    host_titles,
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
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import UNSENT, BatchState, DocumentState, FetchState, Leaving
from searchcrawl.store.urls import url_classes

#: Rows of a table that are deleted in one transaction.
STEP_ROWS: Final = 1000
#: Ids whose rows are read in one transaction.
PAGE_ROWS: Final = 5000
_copies = documents.alias("copies")
#: Neither the index nor a delivery nor an operator has anything to do with the document.
_NOTHING_LEFT: Final = and_(
    IS_NOTHING,
    documents.c.indexed_version.is_(None),
    documents.c.batch_id.is_(None),
    documents.c.leaving == int(Leaving.NO),
    documents.c.quarantine_run.is_(None),
    documents.c.rejected_run.is_(None),
    documents.c.duplicate_of.is_(None),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Which rows of URLs are over: found before ``before_ms``, and refused, gone (``remove_on``) or a removed orphan.

    The removal of a document can be taken back as long as its run is known: it was before ``kept_run``. All receivers have read
    the change log up to ``slowest``.
    """

    source_id: int
    before_ms: int
    remove_on: Collection[int]
    kept_run: int
    slowest: LogPlace | None = None

    def select(self, above: int) -> Select[int]:
        """The ids of such rows above one.

        All tables have this bound. PostgreSQL takes none from one table of a join to the next: it would read the others
        from their beginnings for each page, and merge them.
        """
        rows = urls.outerjoin(documents, and_(documents.c.url_id == urls.c.id, documents.c.url_id > above))
        return select(urls.c.id).select_from(rows).where(urls.c.id > above, self._build_condition(above))

    def _build_condition(self, above: int) -> ColumnElement[bool]:
        refused = and_(urls.c.code.in_(sorted(REFUSED)), urls.c.redirects.is_(None))
        removed = or_(documents.c.removed_run.is_(None), documents.c.removed_run < self.kept_run)
        return and_(
            unindexed(urls.c.source_id) == self.source_id,
            urls.c.fetch_state == int(FetchState.SETTLED),
            urls.c.sitemap_id.is_(None),
            urls.c.first_seen_ms < self.before_ms,
            or_(refused, urls.c.code.in_(sorted(self.remove_on)), urls.c.rule == ORPHAN_RULE),
            or_(documents.c.url_id.is_(None), and_(_NOTHING_LEFT, removed)),
            ~exists().where(former_documents.c.url_id == urls.c.id, former_documents.c.url_id > above),
            ~exists().where(_copies.c.duplicate_of == urls.c.id, _copies.c.duplicate_of > above),
            or_(documents.c.url_id.is_(None), log_table.is_done(self.slowest)),
            # SQLite would give its id to the next row, and links that lead to it would lead there. With an index it would read
            # up to this row for each page.
            unindexed(urls.c.id) < select(func.max(urls.c.id)).scalar_subquery(),
        )


def find_kept_run(transaction: Transaction, source_id: int, before_ms: int) -> int:
    """The first run of a source that did not end before a moment; without any the last run."""
    late = or_(runs.c.ended_ms.is_(None), runs.c.ended_ms >= before_ms)
    first = select(func.min(runs.c.id)).where(runs.c.source_id == source_id, late)
    last = select(func.max(runs.c.id)).where(runs.c.source_id == source_id)
    return int(transaction.execute(first).scalar() or transaction.execute(last).scalar() or 0)


def find_over(transaction: Transaction, over: Over, *, after: int) -> list[int]:
    """The rows that are over among those with the PAGE_ROWS ids above ``after``."""
    return list(transaction.execute(over.select(after).where(urls.c.id <= after + PAGE_ROWS)).scalars())


def purge_urls(transaction: Transaction, over: Over, url_ids: Sequence[int]) -> int:
    """Deletes those of the rows, by rising id, that are still over, with their links and what is left of their documents."""
    gone: list[int] = []
    for part in split(url_ids):
        gone += transaction.execute(over.select(part[0] - 1).where(urls.c.id.in_(part))).scalars()
    url_classes.note_forgotten(transaction, gone)
    for column in (*(table.c.url_id for table in OF_URL), urls.c.id):
        write_parts(transaction, delete(column.table), column, gone)
    write_parts(transaction, delete(faulty).where(faulty.c.source_id == over.source_id), faulty.c.url_id, gone)
    return len(gone)


def purge_runs(transaction: Transaction, source_id: int, before_ms: int) -> int:
    """Deletes some runs that ended before a moment, but none that a document still names; returns how many."""
    # Each of these has an index.
    rejected = select(documents.c.rejected_run).where(
        documents.c.source_id == source_id, text("documents.rejected_run IS NOT NULL")
    )
    held = select(documents.c.quarantine_run).where(
        documents.c.source_id == source_id,
        text(f"documents.state = {DocumentState.QUARANTINED}"),
        documents.c.quarantine_run.is_not(None),
    )
    changed = select(former_documents.c.run_id).where(former_documents.c.source_id == source_id)
    old = select(runs.c.id).where(
        runs.c.source_id == source_id,
        runs.c.ended_ms < before_ms,
        runs.c.id < find_last_completed(transaction, source_id),
        *(runs.c.id.not_in(named) for named in (rejected, held, changed)),
        ~exists().where(documents.c.removed_run == runs.c.id),
    )
    return transaction.execute(delete(runs).where(runs.c.id.in_(old.limit(STEP_ROWS)))).rowcount


def purge_batches(transaction: Transaction, source_id: int, before_ms: int) -> int:
    """Deletes some deliveries from before a moment of which no document is left; never the last one, whose version
    tells whether an index is newer. Returns how many.
    """
    of_source = batches.c.source_id == source_id
    newest = [select(func.max(batches.c[name])).where(of_source).scalar_subquery() for name in ("id", "crawl_version")]
    old = select(batches.c.id).where(
        of_source,
        batches.c.state == int(BatchState.COMMITTED),
        batches.c.created_ms < before_ms,
        # Later ones count towards the limits on deleting.
        batches.c.run_id <= find_last_completed(transaction, source_id),
        batches.c.id < newest[0],
        batches.c.crawl_version < newest[1],
        ~exists().where(documents.c.batch_id == batches.c.id),
    )
    return transaction.execute(delete(batches).where(batches.c.id.in_(old.limit(STEP_ROWS)))).rowcount


def purge_segments(transaction: Transaction, source_id: int, files: Collection[int]) -> int:
    """Deletes some rows of segments that have no file any more, and no document; returns how many."""
    of_source = segments.c.source_id == source_id
    opened, _ = segment_table.find_open(transaction, source_id)
    last = select(func.max(segments.c.number)).where(of_source).scalar_subquery()
    used = exists().where(documents.c.segment == segments.c.number, documents.c.source_id == source_id)
    query = select(segments.c.number).where(of_source, segments.c.number < last, segments.c.number != opened, ~used)
    gone = [number for number in transaction.execute(query).scalars() if number not in files][:STEP_ROWS]
    write_parts(transaction, delete(segments).where(of_source), segments.c.number, gone)
    return len(gone)


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
    query = select(documents.c.url_id, documents.c.state, may_be_there().label("indexed"))
    rows = read_page(transaction, query, source_id, by=documents.c.url_id, after=after, limit=removal_table.PAGE_ROWS)
    sealing = [row.url_id for row in rows if row.indexed and row.state != DocumentState.REMOVING]
    if sealing:
        removal_table.seal(transaction, source_id, run_id, now_ms, sealing, counted=False)
    unsent = [row.url_id for row in rows if not row.indexed and row.state in UNSENT]
    write_parts(transaction, delete(documents), documents.c.url_id, unsent)
    return rows[-1].url_id if rows else None


def find_sealed(transaction: Transaction, source_id: int, *, after: int, most: int) -> list[tuple[int, str]]:
    """The next removals of a source that are sealed, by rising id: the id and the URL of each."""
    query = select(documents.c.url_id, urls.c.url).select_from(DOCUMENTS_WITH_URLS).where(IS_REMOVING)
    page = read_page(transaction, query, source_id, by=documents.c.url_id, after=after, limit=most)
    return [(row.url_id, row.url) for row in page]


def delete_urls(transaction: Transaction, source_id: int) -> int:
    """Deletes the next URLs of a source, with all that is known of them; returns how many."""
    page = read_page(transaction, select(urls.c.id), source_id, by=urls.c.id, after=0, limit=_STEP_ROWS)
    found = [row.id for row in page]
    shared_copy_table.add_dues_of_survivors(transaction, source_id, found)
    for column in (*(table.c.url_id for table in OF_URL), urls.c.id):
        write_parts(transaction, delete(column.table), column, found)
    return len(found)


def delete_source(transaction: Transaction, own: Lease) -> None:
    """Deletes the source itself, whose URLs are gone, with its runs, deliveries and segments; raises LeaseLost."""
    lease.check(transaction, own)
    for table in OF_SOURCE:
        transaction.execute(delete(table).where(table.c.source_id == own.source_id))
    transaction.execute(delete(leases).where(leases.c.source_id == own.source_id))
    transaction.execute(delete(sources).where(sources.c.id == own.source_id))
