"""Copies of documents of other sources, where sources share them (``copies.scope = "collection"``; F4).

What a source sees of the others while it is crawled it decides at once. The rest is decided here: copies whose document in
another source changed or went are decided about anew, documents whose copies in other sources changed are sent again, and
at the end of a run documents give way to better ones that have come into other sources since. Each source
writes its own rows alone, so the order of the crawls makes no difference once all of them ran again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from searchcrawl.commit.document_rows import resolve_again
from searchcrawl.failpoints import reach
from searchcrawl.rules.copy_order import build_order
from searchcrawl.run import Run
from searchcrawl.store import batch_table, source_table
from searchcrawl.store.documents import duplicate_key_table, shared_copy_table
from searchcrawl.store.documents.shared_copy_table import ForeignCopy
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.statements import split

logger = logging.getLogger(__name__)


def settle_shared_copies(run: Run, *, gives_way: bool) -> bool:
    """Decides anew about copies of documents of other sources; returns whether documents may be to be sent.

    With ``gives_way`` also about documents of which others have better ones now. A crash in between is harmless: it is
    found again by what the rows say. Raises StoreError, LeaseLost.
    """
    changed = _list_again(run)
    if not run.read(source_table.find, run.source_id, "shares_copies"):
        return changed
    places = run.read(shared_copy_table.find_places, source_id=run.source_id)
    changed |= _take_back(run, places)
    if gives_way and places:
        changed |= _give_way(run, places)
    if not places:
        run.write(shared_copy_table.end_sharing, source_id=run.source_id)
    return changed


def _take_back(run: Run, places: Mapping[int, int]) -> bool:
    """Decides anew about copies of documents that are other ones now, or are gone."""
    changed = False
    for rows in run.read_pages(shared_copy_table.load_foreign, source_id=run.source_id):
        changed |= _resolve(run, [row.url_id for row in rows if is_over(row, places)])
    return changed


def is_over(copy: ForeignCopy, places: Mapping[int, int]) -> bool:
    """Whether the document of another source does not stand for this one any more; ``places`` as of ``find_places``."""
    place = None if copy.source_id is None else places.get(copy.source_id)
    if not copy.stays or place is None or copy.other_url is None:
        return True
    own = build_order(copy.url, redirected=copy.redirected, url_fit=copy.url_fit)
    other = build_order(copy.other_url, redirected=copy.other_redirected, url_fit=copy.other_fit, place=place)
    return own < other


def find_over(transaction: Transaction, source_id: int) -> bool:
    """Whether a source has copies of documents of others that do not stand for them any more."""
    if not source_table.find(transaction, source_id, "shares_copies"):
        return False
    after, places = 0, shared_copy_table.find_places(transaction, source_id)
    while rows := shared_copy_table.load_foreign(transaction, source_id, after=after):
        after = rows[-1].url_id
        if any(is_over(row, places) for row in rows):
            return True
    return False


def _give_way(run: Run, places: Mapping[int, int]) -> bool:
    """Decides anew about documents that other sources have as well."""
    after, changed = b"", False
    find = partial(shared_copy_table.find_shared, source_id=run.source_id, others=places.keys())
    while rows := run.read(find, after=after):
        after = rows[-1][1]
        changed |= _resolve(run, [url_id for url_id, _ in rows])
    return changed


def _resolve(run: Run, url_ids: Sequence[int]) -> bool:
    changed = False
    for part in split(url_ids):
        if run.write(_resolve_part, source_id=run.source_id, url_ids=part):
            changed = True
        reach("shared.resolved")
    return changed


def _resolve_part(transaction: Transaction, *, source_id: int, url_ids: Sequence[int]) -> bool:
    return resolve_again(transaction, source_id, duplicate_key_table.load(transaction, url_ids))


def _list_again(run: Run) -> bool:
    """Sends the documents again whose copies in other sources have changed."""
    changed = False
    while run.read(shared_copy_table.has_dues, source_id=run.source_id):
        changed |= run.write(_take_dues, source_id=run.source_id)
        reach("shared.listed")
    return changed


def _take_dues(transaction: Transaction, *, source_id: int) -> bool:
    found = shared_copy_table.take_dues(transaction, source_id)
    batch_table.send_again(transaction, found)
    return bool(found)
