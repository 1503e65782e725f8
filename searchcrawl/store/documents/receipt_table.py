"""What the table says of single documents in the index, and whether they are on their way there or out of it (L4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, literal, select

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.run_schema import batches
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.statements import split
from searchcrawl.store.states import MOVING, BatchState, DocumentState


class Receipted(NamedTuple):
    """A document; ``crawl_version`` is None where it is not in the index, 0 where it may be there in any version.

    ``recorded``: the cache has its record, as far as the table knows; ``refused``: the index did not take it.
    """

    url_id: int
    url: str
    crawl_version: int | None
    fields_digest: bytes
    state: int
    batch_state: int | None
    recorded: bool
    refused: bool
    leaving: int

    @property
    def under_way(self) -> bool:
        """Whether it is in a delivery that the index has not made visible yet."""
        return self.state in MOVING or (self.batch_state is not None and self.batch_state < BatchState.COMMITTED)

    @property
    def settled(self) -> bool:
        """Whether the index has its ``fields_digest``."""
        return bool(self.fields_digest) and self.state == DocumentState.PRESENT


def find(transaction: Transaction, url_ids: Sequence[int]) -> list[Receipted]:
    """The documents of rows; those without a document are left out."""
    joined = documents.join(urls, urls.c.id == documents.c.url_id).outerjoin(
        batches, batches.c.id == documents.c.batch_id
    )
    query = select(
        documents.c.url_id,
        urls.c.url,
        documents.c.indexed_version,
        func.coalesce(documents.c.fields_digest, b""),
        documents.c.state,
        batches.c.state.label("batch_state"),
        documents.c.segment.is_not(None),
        documents.c.index_error.is_not(None),
        documents.c.leaving,
    ).select_from(joined)
    found: list[Receipted] = []
    for part in split(url_ids):
        found.extend(Receipted._make(row) for row in transaction.execute(query.where(documents.c.url_id.in_(part))))
    return found


def is_removing(transaction: Transaction, source_id: int) -> bool:
    """Whether removals of a source are not visible in the index yet: those with a receipt have left their delivery."""
    query = select(literal(1)).where(
        batches.c.source_id == source_id, batches.c.state < int(BatchState.COMMITTED), batches.c.removals > 0
    )
    return transaction.execute(query.limit(1)).scalar() is not None
