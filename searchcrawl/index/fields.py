"""The fields of an indexed document (interface.md §4), from its record and its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from searchcrawl import clock, urls
from searchcrawl.items import IndexedDocument
from searchcrawl.rules.display import DisplayMap
from searchcrawl.store.batch_table import Shipment


def indexed_document(
    shipment: Shipment,
    record: Mapping[str, Any],
    *,
    source: str,
    duplicates: Sequence[str],
    display: DisplayMap | None = None,
) -> IndexedDocument:
    """The document as the index receives it; empty values are left out.

    With ``display`` URLs and host are those that are shown; the id stays that of the access URL.
    """
    url = shipment.url if display is None else display.shown(shipment.url)
    fields: dict[str, Any] = {
        "url": url,
        "access_url": shipment.url,
        "source": source,
        "host": urls.parse(url).host,
        "depth": shipment.depth,
        "title": record.get("title"),
        "content": record.get("content"),
        "description": record.get("description"),
        "author": record.get("author"),
        "subject": record.get("subject"),
        "mimetype": shipment.mimetype,
        "language": record.get("language"),
        "last_modified": clock.from_http_date(shipment.last_modified),
        "content_length": shipment.content_length,
        "checksum": shipment.fields_digest.hex(),
        "first_seen": clock.from_ms(shipment.first_seen_ms),
        "crawled_at": clock.from_ms(shipment.last_fetched_ms),
        "duplicates": list(duplicates) if display is None else sorted(map(display.shown, duplicates)),
    }
    return IndexedDocument(
        id=urls.document_id(source, shipment.url),
        fields={name: value for name, value in fields.items() if value not in (None, "", [])},
    )
