"""What the record of a document says of how it was read, so that the same bytes are not read once more by a converter.

A record has the fields as they are indexed; ``origin`` has what the converter had found where that is something else. So the page
that the converter made can be made again, also for another URL and with other headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from searchcrawl.documents.digests import is_named_by_file
from searchcrawl.html.encoding import describe_reading
from searchcrawl.html.file_name import build_title
from searchcrawl.html.metas import list_robots_tags
from searchcrawl.items import CachedAnswer, Document, Fallback, Page

#: Fields that may be completed after the page was read.
_COMPLETED: Final = ("title", "author", "subject", "description", "language")


def describe_origin(document: Document, read: Page, page: Page) -> Mapping[str, Any] | None:
    """What a record has of how its bytes were read: ``read`` is what the converter made, ``page`` what became of it.

    None where other bytes than those of the body, or other headers than those of its type, decided.
    """
    if document.content_digest is None or document.converter is None or list_robots_tags(document.headers):
        return None
    values = {name: text for name in _COMPLETED if (text := getattr(read, name)) != getattr(page, name)}
    reading = describe_reading(document.body, document.headers, document.mimetype)
    return {
        "digest": document.content_digest.hex(),
        "type": document.mimetype,
        "converter": document.converter,
        **({"reading": reading} if reading else {}),
        **({"named": True} if is_named_by_file(read) else {}),
        **({"values": values} if values else {}),
        **({"found": read.found} if read.found else {}),
    }


def restore_answer(document: Document, fields: Mapping[str, Any]) -> CachedAnswer | None:
    """The answer with what was read from the same bytes, by the fields of a record; None where they would be read in another way."""
    origin, text = fields.get("origin"), fields.get("content")
    if not isinstance(origin, dict) or not isinstance(text, str) or document.content_digest is None:
        return None
    reading = describe_reading(document.body, document.headers, document.mimetype)
    known = origin.get("digest"), origin.get("type"), origin.get("reading", "")
    if known != (document.content_digest.hex(), document.mimetype, reading) or list_robots_tags(document.headers):
        return None
    page = _restore_page(document, fields, origin, text)
    return CachedAnswer(
        document.body,
        document.headers,
        text,
        record=b"",
        record_id="",
        whole_digest=page.whole_digest,
        headings=page.headings,
        naming=page.naming,
        fallback=page.fallback,
        page=page,
        converter=origin.get("converter", ""),
    )


def _restore_page(document: Document, fields: Mapping[str, Any], origin: Mapping[str, Any], text: str) -> Page:
    values = {name: fields.get(name, "") for name in _COMPLETED} | origin.get("values", {})
    name_title = build_title(document.headers, document.base_url) if origin.get("named") else ""
    fallback = fields.get("fallback")
    return Page(
        title=name_title or values["title"],
        name_title=name_title,
        text=text,
        whole_digest=fields.get("whole_digest", ""),
        headings=tuple(fields.get("headings", ())),
        naming=fields.get("naming", 0),
        fallback=Fallback(*fallback) if fallback else None,
        description=values["description"],
        author=values["author"],
        subject=values["subject"],
        language=values["language"],
        modified=fields.get("modified", ""),
        found=tuple((name, tuple(texts)) for name, texts in origin.get("found", ())),
    )
