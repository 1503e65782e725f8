"""Withholds what an ended trap has brought: its pages without text of their own, as far as no index has them (L8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.commit import document_rows
from searchcrawl.commit.group import Group
from searchcrawl.rules.boundary import refusal_code
from searchcrawl.run import Run
from searchcrawl.store.documents import bare_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import Settled

_ROWS_AT_ONCE: Final = 1_000


def withhold(run: Run, traps: TrapWatch) -> None:
    """Refuses the URLs of such pages with 961, and withholds their documents; may be repeated. Raises StoreError."""
    after = 0
    while rows := run.read(
        partial(bare_table.find_undelivered, source_id=run.source_id, after=after, limit=_ROWS_AT_ONCE)
    ):
        after = rows[-1].url_id
        refusals = [(row.url_id, traps.find_cut(row.url)) for row in rows]
        ended = [
            Settled(url_id=row, code=refusal_code(decision), rule=decision.text, due_ms=None, fetched_ms=None)
            for row, decision in refusals
            if decision is not None
        ]
        if ended:
            run.write_counted(partial(_write, source_id=run.source_id, ended=ended))


def _write(transaction: Transaction, *, source_id: int, ended: Sequence[Settled]) -> Mapping[str, int]:
    group = Group(settled=list(ended), with_evidence=[visit.url_id for visit in ended])
    document_rows.write_documents(transaction, source_id, group, {})
    url_table.settle(transaction, group.settled)
    return group.counts
