"""The fields of an indexed document (interface.md §4), from its record and its row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from searchcrawl import clock, urls
from searchcrawl.items import IndexedDocument
from searchcrawl.rules.display import DisplayMap
from searchcrawl.store.batches.batch_table import Shipment
from searchcrawl.store.documents.duplicate_key_table import Copy

_PLAIN_LANGUAGE: Final = re.compile("[a-z]{2,3}")


def indexed_document(
    shipment: Shipment,
    record: Mapping[str, Any],
    *,
    source: str,
    duplicates: Sequence[Copy],
    display: DisplayMap | None = None,
) -> IndexedDocument:
    """The document as the index receives it; empty values are left out.

    With ``display`` URLs and host are those that are shown; the id stays that of the access URL.
    """
    url = shipment.url if display is None else display.shown(shipment.url, shipment.display_url)
    fields: dict[str, Any] = {
        "url": url,
        "access_url": shipment.url,
        "source": source,
        "host": urls.host(url) if url == shipment.url else urls.parse(url).host,
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
        "duplicates": _shown(duplicates, display),
        **_by_language(record),
        # Last: an attribute may fill a field that every document has.
        **record.get("attributes", {}),
    }
    return IndexedDocument(
        id=urls.document_id(source, shipment.url),
        fields={name: value for name, value in fields.items() if value not in (None, "", [])},
    )


def _shown(duplicates: Sequence[Copy], display: DisplayMap | None) -> list[str]:
    return [url for url, _ in duplicates] if display is None else sorted(display.shown(*copy) for copy in duplicates)


def _by_language(record: Mapping[str, Any]) -> dict[str, Any]:
    """Title and content once more for the analysis of their language, where that is known."""
    language = str(record.get("language") or "").partition("-")[0]
    if not _PLAIN_LANGUAGE.fullmatch(language):
        return {}
    return {f"title_txt_{language}": record.get("title"), f"content_txt_{language}": record.get("content")}
