"""Values for tests: each is whole and plausible, and says only what a test changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from typing import Any

from searchcrawl.items import Claim, Document, Outcome, Page
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.redirects import TargetRules

_numbers = count(1)
#: Redirects may lead anywhere.
ANY_TARGET = TargetRules(Boundary(allow_all=True))


def claim(url_id: int | None = None, **values: Any) -> Claim:
    """A row of one host, handed out."""
    number = next(_numbers) if url_id is None else url_id
    return Claim(**{"url_id": number, "url": f"http://site.test/{number}.html", "host_id": 1, "depth": 1, **values})


def document(body: str = "<p>text</p>", *, text: str | None = None, **values: Any) -> Document:
    """A good page; its digests are those of ``body`` and ``text`` (default: the body)."""
    visited = values.pop("claim", None) or claim()
    made = Document(
        claim=visited,
        base_url=visited.url,
        code=200,
        headers=((b"Content-Type", b"text/html"),),
        body=body.encode(),
        mimetype="text/html",
        fetched_at=datetime(2030, 1, 31, 12, 0, tzinfo=UTC),
        page=Page(title="title", text=body if text is None else text),
        body_digest=sha256(body.encode()).digest(),
        fields_digest=sha256((body if text is None else text).encode()).digest(),
        copy_digest=sha256((body if text is None else text).encode()).digest(),
    )
    return replace(made, **values)


def outcome(code: int, **values: Any) -> Outcome:
    """A visit that brought no document."""
    return Outcome(**{"claim": claim(), "code": code, **values})
