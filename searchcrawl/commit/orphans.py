"""Orphans: documents that no page, sitemap or start list names any more (``lifecycle.orphans``; D6, L3).

After a completed run the links of all pages are read once, into two bits for each row. A page whose visit failed keeps the
links that it had; a page that is gone counts as long as its document is in the index. Links of a page to itself do not
count. What left as an orphan comes back for the links of a page that was read, or is in the index: one that fails now may
have been gone before.

At the end of a run in the delivery thread; ``release_orphans`` in the helper thread that opens the writer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from searchcrawl import urls
from searchcrawl.codes import ANSWERED, COPIES, Code, is_refusal
from searchcrawl.commit.document_rows import resolve_again
from searchcrawl.rules.lifecycle import ORPHAN, ORPHAN_RULE
from searchcrawl.run import Run
from searchcrawl.store import source_table
from searchcrawl.store.documents import document_table, duplicate_key_table
from searchcrawl.store.documents.duplicate_key_table import KeyedDocument
from searchcrawl.store.documents.presence import may_have
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.states import REMOVALS, FetchState, Leaving
from searchcrawl.store.urls import link_table, orphan_table, url_table
from searchcrawl.store.urls.orphan_table import OrphanRow, StoredLinks
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)


def settle_orphans(run: Run) -> bool:
    """Marks the orphans to be removed (``delete``), or has them not visited again (``keep``), after a completed run.

    Drops what was noted of those that are named again. Returns whether documents are to be sent: copies for which an
    orphan stood. A crash in between is harmless: the next completed run does all of it again, and until then no mark
    removes anything. Raises StoreError, LeaseLost.
    """
    named, named_for_sure = _find_named(run)
    deletes = run.source.lifecycle.orphans == "delete"
    found, sends = 0, False
    for rows in run.read_pages(orphan_table.load_rows, source_id=run.source_id):
        back = [row.url_id for row in rows if _is_noted(row) and _is_named(row, named_for_sure)]
        orphans = [row.url_id for row in rows if not _is_named(row, named) and _is_new_orphan(row, deletes=deletes)]
        found += len(orphans)
        if back or orphans:
            sends |= run.write(_write_page, run=run, back=back, orphans=orphans, deletes=deletes)
    if found:
        logger.info("no page, sitemap or start list names %s any more", counted(found, "document", "documents"))
    return sends


def release_orphans(run: Run) -> None:
    """Has all orphans visited like other rows again, where the source file says so now (``check``)."""
    if not run.read(source_table.find, run.source_id, "orphans"):
        return
    for rows in run.read_pages(orphan_table.load_rows, source_id=run.source_id):
        noted = [row.url_id for row in rows if _is_noted(row)]
        if noted:
            run.write(_drop_notes, source_id=run.source_id, url_ids=noted, due_ms=0)
    run.write(source_table.note, run.source_id, orphans=0)


def _find_named(run: Run) -> tuple[bytearray, bytearray]:
    """A bit for each row: whether a page or the start list names it; and whether one does of which it is sure."""
    last = run.read(orphan_table.find_last_id)
    named, for_sure = bytearray((last >> 3) + 1), bytearray((last >> 3) + 1)
    starts = [urls.key(start.url) for start in run.starts]
    for row in run.read(url_table.find_known, run.source_id, starts):
        for_sure[row.id >> 3] |= 1 << (row.id & 7)
    for pages in run.read_pages(orphan_table.load_links, source_id=run.source_id):
        for page in pages:
            if _counts(page, run.source.lifecycle.remove_on):
                bits = for_sure if _is_sure(page) else named
                for target in link_table.decode(page.links):
                    if target != page.url_id:
                        bits[target >> 3] |= 1 << (target & 7)
    both = int.from_bytes(named) | int.from_bytes(for_sure)
    return bytearray(both.to_bytes(len(named))), for_sure


def _is_sure(page: StoredLinks) -> bool:
    """Whether a page whose links count was read, or is in the index."""
    return page.indexed_version is not None or (page.code in ANSWERED and page.code != Code.EMPTY)


def _counts(page: StoredLinks, remove_on: Sequence[int]) -> bool:
    """Whether the links of a page count: not of one that is gone, refused, or was removed as an orphan itself."""
    if page.indexed_version is not None:
        return True
    # One that leads to an excluded URL may do so for a while, as to a login.
    refused = is_refusal(page.code, page.rule) and not (page.code == Code.OUTSIDE_BOUNDARY and page.redirected)
    return not (page.code in remove_on or refused or page.rule == ORPHAN_RULE)


def _is_named(row: OrphanRow, named: bytearray) -> bool:
    # A row that was added since is none of a completed run.
    at = row.url_id >> 3
    return row.sitemap_id is not None or at >= len(named) or bool(named[at] & 1 << (row.url_id & 7))


def _is_noted(row: OrphanRow) -> bool:
    return row.rule == ORPHAN_RULE or row.evidence == ORPHAN or row.leaving == Leaving.ORPHAN


def _is_new_orphan(row: OrphanRow, *, deletes: bool) -> bool:
    """Whether an unnamed row is a document of the index, or on its way there, of which nothing is noted yet."""
    if not may_have(row.indexed_version, row.state) or row.duplicate_of is not None or row.state in REMOVALS:
        return False
    if deletes:
        return row.leaving == Leaving.NO and not (row.rejected_run is not None and row.evidence == ORPHAN)
    return row.due_ms is not None and row.fetch_state == FetchState.SETTLED


def unmark_orphans(transaction: Transaction, *, source_id: int, url_ids: Sequence[int]) -> None:
    """Takes away the marks of orphans whose removal is not decided: they stay, and stand for their copies again."""
    before = duplicate_key_table.load(transaction, url_ids)
    orphan_table.unmark(transaction, url_ids)
    resolve_again(transaction, source_id, before)


def let_stay(transaction: Transaction, *, source_id: int, before: Mapping[int, KeyedDocument]) -> None:
    """Decides about copies once an operator has taken the removals of orphans back: others stand in their place by now.

    ``before`` is what they were. One that is a copy now is kept by nobody any more: it leaves as all copies do.
    """
    resolve_again(transaction, source_id, before)
    codes = document_table.find_codes(transaction, list(before))
    document_table.forget_rejections(transaction, [url_id for url_id, code in codes.items() if code in COPIES])


def _write_page(
    transaction: Transaction, *, run: Run, back: Sequence[int], orphans: Sequence[int], deletes: bool
) -> bool:
    sends = _drop_notes(transaction, source_id=run.source_id, url_ids=back, due_ms=run.row.horizon_ms + 1)
    if orphans:
        source_table.note(transaction, run.source_id, orphans=1)
        if not deletes:
            orphan_table.park(transaction, orphans)
        else:
            before = duplicate_key_table.load(transaction, orphans)
            orphan_table.mark(transaction, orphans)
            sends |= resolve_again(transaction, run.source_id, before)
    return sends


def _drop_notes(transaction: Transaction, *, source_id: int, url_ids: Sequence[int], due_ms: int) -> bool:
    before = duplicate_key_table.load(transaction, url_ids)
    sends = orphan_table.note_named(transaction, url_ids, due_ms=due_ms)
    return resolve_again(transaction, source_id, before) or sends
