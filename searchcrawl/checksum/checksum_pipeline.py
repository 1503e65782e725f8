"""The item pipelines of the digests: of the body before it is read, of the fields before they are stored (D2)."""

from __future__ import annotations

from dataclasses import replace

from scrapy.crawler import Crawler

from searchcrawl.checksum.digest import body_digest, fields_digest
from searchcrawl.html.robots_meta import list_robots_tags
from searchcrawl.items import Document
from searchcrawl.rules.attribute_values import AttributeMap
from searchcrawl.run import Run
from searchcrawl.stages import stages_of


class BodyDigestPipeline:
    """Gives each document the digest of its body, and of the headers and the filter that decide what becomes of it."""

    def __init__(self, attributes: AttributeMap | None) -> None:
        self._attributes = attributes

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BodyDigestPipeline:
        run = stages_of(crawler).get(Run)
        return cls(run.attributes)

    def process_item(self, item: object) -> object:
        if not isinstance(item, Document):
            return item
        # A page that names itself as canonical is the same as one that names none.
        canonical = item.canonical if item.canonical != item.claim.url else None
        digest = body_digest(
            item.body,
            robots_tags=",".join(list_robots_tags(item.headers)),
            canonical=canonical or "",
            attributes=self._attributes.header_text(item.headers) if self._attributes is not None else "",
            refusal=item.refusal,
        )
        return replace(item, body_digest=digest)


class FieldsDigestPipeline:
    """Gives each document that was read the digest of its fields; others keep the one of their row."""

    def process_item(self, item: object) -> object:
        if isinstance(item, Document) and item.page is not None:
            return replace(item, fields_digest=fields_digest(item.page))
        return item
