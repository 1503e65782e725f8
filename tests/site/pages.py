"""Pages as values: what one URL of the test site answers, and how it is sent."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from tests.site.wire import Request, head

#: As nginx does: what it adds to pages it adds to a 304 as well.
_SENT_WITH_304 = frozenset({"ETag", "Last-Modified", "Link", "X-Robots-Tag"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a URL answers; ``etag`` and ``last_modified`` (an HTTP date) are None where it sends none."""

    body: bytes
    content_type: str | None = "text/html; charset=utf-8"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    etag: str | None = None
    last_modified: str | None = None
    encoding: str | None = None
    honours_conditions: bool = True


def etag_of(body: bytes) -> str:
    """A strong entity tag that depends on the bytes alone."""
    return f'"{hashlib.sha256(body).hexdigest()[:20]}"'


def answer(page: Page, request: Request) -> tuple[int, bytes]:
    """The status and the whole answer to ``request``: 304 where its validators allow (RFC 9110 §13.2.2)."""
    headers = _headers(page)
    if page.honours_conditions and page.status == 200 and not_modified(page, request.headers):
        return 304, head(304, [item for item in headers if item[0] in _SENT_WITH_304])
    body = gzip.compress(page.body, 6, mtime=0) if page.encoding == "gzip" else page.body
    start = head(page.status, [*headers, ("Content-Length", str(len(body)))])
    return page.status, start if request.method == "HEAD" else start + body


def _headers(page: Page) -> list[tuple[str, str]]:
    headers = [("Server", "acme")]
    if page.content_type is not None:
        headers.append(("Content-Type", page.content_type))
    if page.etag is not None:
        headers.append(("ETag", page.etag))
    if page.last_modified is not None:
        headers.append(("Last-Modified", page.last_modified))
    if page.encoding is not None:
        headers.append(("Content-Encoding", page.encoding))
    headers.extend(page.headers)
    return headers


def not_modified(page: Page, headers: Mapping[str, str]) -> bool:
    """Whether the client's validators still hold; If-None-Match decides alone where it is sent."""
    tags = headers.get("if-none-match")
    if tags is not None:
        return page.etag is not None and page.etag in {tag.strip().removeprefix("W/") for tag in tags.split(",")}
    since = headers.get("if-modified-since")
    if since is None or page.last_modified is None:
        return False
    if since == page.last_modified:
        return True
    try:
        return parsedate_to_datetime(page.last_modified) <= parsedate_to_datetime(since)
    except (TypeError, ValueError):
        return False
