"""Which documents of ended traps the index has: those that went out before their pattern was ended (L8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from searchcrawl.rules.traps import find_pattern, is_of_hosts
from searchcrawl.store.documents import document_queries
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import pattern_table


class TrappedDocument(NamedTuple):
    """The URL of a document without text of its own, and the ended pattern that it belongs to."""

    url: str
    pattern: str


def list_trapped(transaction: Transaction, source_id: int) -> Iterator[TrappedDocument]:
    """Lists them, by rising row id.

    Not those of patterns of whole hosts: what was spared of these is known to the run alone that ended them.
    """
    patterns = pattern_table.load(transaction, source_id)
    ended = {row.text for row in patterns if row.cut is not None and row.pages and not is_of_hosts(row.text)}
    apart = {row.text for row in patterns if row.has_text or (row.cut is None and row.last_pages is not None)}
    for url in document_queries.list_bare_indexed(transaction, source_id) if ended else ():
        text = find_pattern(url, ended, apart)
        if text is not None:
            yield TrappedDocument(url, text)
