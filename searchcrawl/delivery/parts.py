"""A batch in parts, each read from table and cache while the index works on the one before it."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Final

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import Place
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.index.fields import indexed_document
from searchcrawl.items import IndexedDocument
from searchcrawl.run import Run
from searchcrawl.store.batches import batch_table
from searchcrawl.store.batches.batch_table import Shipment
from searchcrawl.store.documents import duplicate_key_table
from searchcrawl.store.documents.duplicate_key_table import Copy
from searchcrawl.store.engine.database import Transaction

logger = logging.getLogger(__name__)

#: A request to the index holds about so much text (interface: 5–10 MB).
_CHARACTERS: Final = 5_000_000
_ROWS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some documents of a batch by the id of their URL, and the ids of those whose record the cache has lost."""

    documents: Sequence[tuple[int, IndexedDocument]]
    lost: Sequence[int]


def parts_ahead(run: Run, cache: DocumentCache, number: int) -> Generator[Part, None, None]:
    """What of a batch has no receipt yet, by rising id of the URL; the next part is read while one is worked on.

    Close it where it is not used up. Raises CacheError, StoreError.
    """
    with closing(_parts(run, cache, number)) as parts, ThreadPoolExecutor(1, "reading") as thread:
        coming = thread.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = thread.submit(next, parts, None)
            yield part


def _parts(run: Run, cache: DocumentCache, number: int) -> Generator[Part, None, None]:
    after = 0
    while True:
        rows, duplicates = run.read(partial(_next_rows, number=number, after=after))
        if not rows:
            return
        after = rows[-1].url_id
        yield from _read(run, cache, rows, duplicates)


def _read(
    run: Run, cache: DocumentCache, rows: Sequence[Shipment], duplicates: dict[int, list[Copy]]
) -> Generator[Part, None, None]:
    documents: list[tuple[int, IndexedDocument]] = []
    lost: list[int] = []
    characters = 0
    for row in rows:
        try:
            record = cache.read_fields(_place(row), url=row.url)
        except DamagedRecord as error:
            logger.error("%s; %s is fetched again", error, row.url)
            lost.append(row.url_id)
            continue
        document = indexed_document(
            row, record, source=run.source.name, duplicates=duplicates.get(row.url_id, ()), display=run.display
        )
        documents.append((row.url_id, document))
        # The content is in it twice where its language is known.
        characters += sum(len(value) for value in document.fields.values() if isinstance(value, str))
        if characters >= _CHARACTERS:
            yield Part(documents=documents, lost=lost)
            documents, lost, characters = [], [], 0
    yield Part(documents=documents, lost=lost)


def _next_rows(transaction: Transaction, *, number: int, after: int) -> tuple[list[Shipment], dict[int, list[Copy]]]:
    """The next documents of a batch, and the URLs of their copies."""
    rows = batch_table.shipments(transaction, number, after=after, limit=_ROWS)
    return rows, duplicate_key_table.duplicates(transaction, [row.url_id for row in rows])


def _place(row: Shipment) -> Place:
    if row.segment is None or row.record_offset is None or row.response_bytes is None or row.fields_bytes is None:
        raise DamagedRecord(f"no record in the cache for {row.url}")
    return Place(
        segment=row.segment,
        offset=row.record_offset,
        response_bytes=row.response_bytes,
        fields_bytes=row.fields_bytes,
    )
