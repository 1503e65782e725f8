"""All rows of a source gone through when its rules were edited: part of the URL table, a stretch of ids at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import func, select, update

from searchcrawl.store.database import Transaction
from searchcrawl.store.scanned import scanned
from searchcrawl.store.schema import urls
from searchcrawl.store.states import FetchState

#: So many ids are gone through in one transaction where all rows of a source are.
_STRETCH: Final = 50_000


def reopen_codes(transaction: Transaction, source_id: int, codes: Sequence[int], *, after: int) -> int | None:
    """Makes rows that ended with one of ``codes`` due again (the rules changed), a stretch of ids above ``after``.

    The id to go on from; None at the end. All at once would take memory for each of millions of rows.
    """
    end = after + _STRETCH
    statement = (
        update(urls)
        .where(urls.c.id > after, urls.c.id <= end, scanned(urls.c.source_id) == source_id, urls.c.code.in_(codes))
        .where(urls.c.fetch_state == int(FetchState.SETTLED))
        .values(fetch_state=int(FetchState.TODO), due_ms=0)
    )
    transaction.execute(statement)
    last: int | None = transaction.execute(select(func.max(urls.c.id))).scalar()
    return end if last is not None and end < last else None
