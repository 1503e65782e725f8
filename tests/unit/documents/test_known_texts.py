"""What a record says of how its bytes were read, and when the same bytes are read in the same way."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson
import pytest

from searchcrawl.commit.document_rows import build_record
from searchcrawl.documents.known_texts import describe_origin, restore_answer
from searchcrawl.items import Document, Page
from tests import factories

#: What a converter found, and what became of it.
READ = Page(
    title="a.txt",
    name_title="a.txt",
    text="words of a file",
    author="Eve",
    headings=("words",),
    naming=1,
    modified="2030-01-31T12:00:00Z",
    found=(("meta:author", ("Eve", "Bob")),),
)
COMPLETED = replace(READ, author="mapped", language="en", description="words", found=(), attributes=(("x_s", ("1",)),))


def build(url: str = "file:///srv/a.txt", *, body: bytes = b"words of a file", **values: Any) -> Document:
    return factories.document(
        **{
            "claim": factories.claim(url=url),
            "body": body.decode("latin-1"),
            "headers": (),
            "mimetype": "text/plain",
            "converter": "text",
            "content_digest": sha256(body).digest(),
            **values,
        }
    )


def fields_of(document: Document) -> dict[str, Any]:
    """The fields of its record, as they are read back."""
    stored = replace(document, page=COMPLETED, origin=describe_origin(document, READ, COMPLETED))
    fields: dict[str, Any] = orjson.loads(orjson.dumps(dict(build_record(stored).fields)))
    return fields


def test_page_when_its_bytes_are_elsewhere_then_is_as_it_was_read_with_the_name_of_there() -> None:
    there = build("file:///srv/b/c.txt", headers=((b"Last-Modified", b"x"),))
    here = restore_answer(build(), fields_of(build()))
    moved = restore_answer(there, fields_of(build()))

    assert here is not None
    assert moved is not None
    assert here.page == READ
    assert moved.page == replace(READ, title="c.txt", name_title="c.txt")
    assert (moved.body, moved.headers, moved.record, moved.converter) == (there.body, there.headers, b"", "text")


@pytest.mark.parametrize(
    "values",
    [
        {"body": b"other words of a file"},
        {"content_digest": None},
        {"mimetype": "text/markdown"},
        {"headers": ((b"Content-Type", b"text/plain"), (b"Content-Language", b"fr"))},
        {"headers": ((b"X-Robots-Tag", b"noindex"),)},
    ],
    ids=["bytes", "no digest", "type", "language", "robots"],
)
def test_page_when_something_else_decides_how_it_is_read_then_it_is_read_again(values: dict[str, Any]) -> None:
    assert restore_answer(build(**values), fields_of(build())) is None


def test_record_when_an_earlier_release_wrote_it_then_says_nothing() -> None:
    fields = fields_of(build())
    del fields["origin"]

    assert restore_answer(build(), fields) is None
