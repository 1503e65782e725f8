"""What somebody asks for: rows that are to be visited again, and the reason (D9), and URLs that were submitted (H9).

A submitted URL waits until a run of its source admits it: the one that is under way, or the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import delete, select, update

from searchcrawl import urls as identity
from searchcrawl.store import source_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import read_page, select_fields, write_parts
from searchcrawl.store.run_schema import submitted
from searchcrawl.store.schema import sources, urls
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import url_table

#: Rows that are read and marked at once; a source may have millions.
PAGE_ROWS: Final = 1000
#: More text of reasons is not kept.
_MOST_CHARACTERS: Final = 2000


class Visited(NamedTuple):
    """A row, how its last visit ended, and whether it is ever visited again by itself."""

    id: int
    code: int
    rule: str | None
    fetch_state: int
    due_ms: int | None

    @property
    def may_be_visited(self) -> bool:
        """Whether no rule refuses it, and it was not set aside."""
        return self.fetch_state in {FetchState.TODO, FetchState.FETCHING} or (
            self.fetch_state == FetchState.SETTLED and self.due_ms is not None
        )


_VISITED: Final = select_fields(Visited, urls)


def load_after(transaction: Transaction, *, source_id: int, after: int) -> list[Visited]:
    """The next rows of a source by rising id, at most PAGE_ROWS."""
    page = read_page(transaction, _VISITED, source_id, by=urls.c.id, after=after, limit=PAGE_ROWS)
    return [Visited._make(row) for row in page]


def find(transaction: Transaction, *, source_id: int, key: int) -> Visited | None:
    """The row of a URL, by its key."""
    row = transaction.execute(_VISITED.where(urls.c.source_id == source_id, urls.c.key == key)).one_or_none()
    return None if row is None else Visited._make(row)


def mark(transaction: Transaction, *, url_ids: Sequence[int]) -> None:
    """Has rows visited in the next run, and their documents processed again whatever the server says."""
    document_table.process_again(transaction, url_ids)
    url_table.reopen(transaction, url_ids)


def add_reason(transaction: Transaction, *, source_id: int, reason: str) -> None:
    """Notes why rows were marked, beside what was noted since the last completed run."""
    reasons = [*(source_table.find(transaction, source_id, "recrawl") or "").split("; "), reason]
    text = "; ".join(dict.fromkeys(filter(None, reasons)))[:_MOST_CHARACTERS]
    transaction.execute(update(sources).where(sources.c.id == source_id).values(recrawl=text))


def add_submitted(transaction: Transaction, source_id: int, url: str) -> bool:
    """Notes a URL; returns False where it is noted already."""
    statement = dialect_of(transaction).upsert(submitted, ["source_id", "key"])
    values = {"source_id": source_id, "key": identity.key(url), "url": url}
    # No count of rows: not each database gives one for an INSERT.
    return transaction.execute(statement.values(values).returning(submitted.c.key)).first() is not None


def is_submitted(transaction: Transaction, source_id: int, url: str) -> bool:
    """Whether a URL is noted, and no run has admitted it yet."""
    query = select(submitted.c.key).where(submitted.c.source_id == source_id, submitted.c.key == identity.key(url))
    return transaction.execute(query).first() is not None


def load_submitted(transaction: Transaction, source_id: int, *, most: int | None = None) -> list[str]:
    """The URLs that no run of a source has admitted yet, or the first of them."""
    query = select(submitted.c.url).where(submitted.c.source_id == source_id).order_by(submitted.c.key)
    return list(transaction.execute(query.limit(most)).scalars())


def remove_submitted(transaction: Transaction, source_id: int, found: Sequence[str]) -> None:
    """Removes URLs that were admitted, or are not to be, and no others."""
    statement = delete(submitted).where(submitted.c.source_id == source_id)
    write_parts(transaction, statement, submitted.c.key, [identity.key(url) for url in found])
