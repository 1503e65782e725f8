"""Has documents sent again that differ by what other pages say, from their records in the cache."""

from __future__ import annotations

from collections.abc import Sequence

from searchcrawl.store.batches import batch_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import url_table


def send_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Sends documents again; those whose record is lost are fetched again."""
    lost = document_table.send_again(transaction, url_ids)
    if lost:
        batch_table.mark_records_lost(transaction, lost)
        url_table.reopen(transaction, lost)
