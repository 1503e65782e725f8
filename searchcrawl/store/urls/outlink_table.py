"""The links of each page, as one compact blob of row ids (docs: decisions/no-link-table)."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from isal import isal_zlib
from sqlalchemy import select

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.schema import outlinks
from searchcrawl.store.statements import split


def encode(url_ids: Sequence[int]) -> bytes:
    """Encodes row ids as compressed differences of the sorted ids, without duplicates."""
    ordered = sorted(set(url_ids))
    differences = array("Q", (after - before for before, after in zip([0, *ordered], ordered, strict=False)))
    return isal_zlib.compress(differences.tobytes(), 1)


def decode(blob: bytes) -> list[int]:
    """Decodes a blob into sorted row ids."""
    differences = array("Q")
    differences.frombytes(isal_zlib.decompress(blob))
    total, ids = 0, []
    for difference in differences:
        total += difference
        ids.append(total)
    return ids


def store(transaction: Transaction, links: Mapping[int, Sequence[int]]) -> None:
    """Replaces the links of pages, given by page id."""
    if links:
        transaction.execute(
            dialect_of(transaction).upsert(outlinks, ["url_id"], lambda new: {"links": new.links}),
            [{"url_id": page, "links": encode(targets)} for page, targets in links.items()],
        )


def load(transaction: Transaction, pages: Sequence[int]) -> dict[int, list[int]]:
    """Loads the links of pages that have any."""
    found: dict[int, list[int]] = {}
    for part in split(pages):
        query = select(outlinks.c.url_id, outlinks.c.links).where(outlinks.c.url_id.in_(part))
        found.update({row.url_id: decode(row.links) for row in transaction.execute(query)})
    return found
