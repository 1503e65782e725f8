"""The item pipelines of the digests: of the body before it is read, of the fields before they are stored (D2)."""

from __future__ import annotations

from scrapy.crawler import Crawler

from searchcrawl.documents.digests import (
    compute_body_digest,
    compute_copy_digest,
    compute_fields_digest,
    is_named_by_file,
)
from searchcrawl.html.metas import list_robots_tags
from searchcrawl.html.reading_headers import describe_reading
from searchcrawl.items import Document, Page, copy_with
from searchcrawl.rules.attribute_values import AttributeMap
from searchcrawl.rules.copy_order import find_fit
from searchcrawl.run import Run
from searchcrawl.stages import stages_of


class BodyDigestPipeline:
    """Gives each document the digest of its body, its headers and the rule that refuses it."""

    def __init__(self, attributes: AttributeMap | None) -> None:
        self._attributes = attributes

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BodyDigestPipeline:
        run = stages_of(crawler).get(Run)
        return cls(run.attributes)

    def process_item(self, item: object) -> object:
        if not isinstance(item, Document):
            return item
        # A page whose canonical link leads to itself is the same as one without a canonical link.
        canonical = item.canonical if item.canonical != item.claim.url else None
        digest = compute_body_digest(
            item.body,
            robots_tags=",".join(list_robots_tags(item.headers)),
            canonical=canonical or "",
            attributes=self._attributes.join_headers(item.headers) if self._attributes is not None else "",
            reading=describe_reading(item.body, item.headers, item.mimetype),
            refusal=item.refusal,
        )
        return copy_with(item, body_digest=digest)


class FieldsDigestPipeline:
    """Gives each document that was read the digest of its fields; others keep the one of their row.

    With ``finds_copies`` documents that have the same one are copies of each other (F2).
    """

    def __init__(self, *, finds_copies: bool) -> None:
        self._finds_copies = finds_copies

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FieldsDigestPipeline:
        return cls(finds_copies=stages_of(crawler).get(Run).source.copies.scope != "off")

    def process_item(self, item: object) -> object:
        if isinstance(item, Document) and item.page is not None:
            digest = compute_fields_digest(item.page, known=item.claim.fields_digest)
            copy_digest = compute_copy_digest(item.page) if self._finds_copies else None
            return copy_with(
                item, fields_digest=digest, copy_digest=copy_digest, url_fit=_find_fit(item.claim.url, item.page)
            )
        return item


def _find_fit(url: str, page: Page) -> int:
    """How the URL fits what copies have in common: a title that is the name of a file is that of each file."""
    title = "" if is_named_by_file(page) else page.title
    return find_fit(url, language=page.language, title=title, text=page.text)
