"""Gives each parsed document the digest of its fields."""

from __future__ import annotations

from dataclasses import replace

from searchcrawl.checksum.digest import fields_digest
from searchcrawl.items import Document


class ChecksumPipeline:
    """Documents whose bytes are as before have no page and keep the digest of their row."""

    def process_item(self, item: object) -> object:
        if isinstance(item, Document) and item.page is not None:
            return replace(item, fields_digest=fields_digest(item.page))
        return item
