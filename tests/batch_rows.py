"""Rows of a batch for tests that build documents of the index."""

from __future__ import annotations

from searchcrawl.store.batch_table import BatchDocument


def row(number: int) -> BatchDocument:
    return BatchDocument(
        url_id=number,
        url=f"http://site.test/{number}",
        depth=0,
        segment=1,
        record_offset=0,
        response_bytes=0,
        fields_bytes=0,
        fields_digest=bytes(32),
        mimetype="text/html",
        content_length=1,
        last_modified=None,
        first_seen_ms=0,
        last_fetched_ms=0,
    )
