"""Redirects that lead from row to row: a chain of them ends as one within a single visit does (963).

A 301, 308 or meta refresh makes its target a URL of its own (C6), so no
visit sees how long the chain behind it is already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from searchcrawl.codes import REDIRECTS, Code
from searchcrawl.items import Document, Outcome
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import url_table


def leads_on(item: Document | Outcome) -> bool:
    """Whether a visit ended with a redirect whose target becomes a row."""
    return isinstance(item, Outcome) and bool(item.links) and item.code in REDIRECTS


def cut(
    transaction: Transaction, items: Sequence[Document | Outcome], *, max_redirects: int
) -> list[Document | Outcome]:
    """The visits, where redirects that close a loop or are one too many end with 963 and lead nowhere."""
    return [_cut(transaction, item, max_redirects) for item in items]


def _cut(transaction: Transaction, item: Document | Outcome, max_redirects: int) -> Document | Outcome:
    if not isinstance(item, Outcome) or not leads_on(item):
        return item
    before = url_table.redirects_before(transaction, item.claim.url_id, limit=max_redirects)
    looped = item.links[0].url in before
    if not looped and len(before) < max_redirects:
        return item
    reason = "redirect loop" if looped else f"more than {max_redirects} redirects"
    return replace(
        item, code=Code.REDIRECT_LOOP, links=(), rule=None, error=f"{reason}, from page to page: {item.claim.url}"
    )
