"""Requests and responses of claimed rows, for tests of the fetch stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.items import Claim, Hop, Outcome

URL = "http://site.test/page"
TRAIL = (Hop("http://site.test/first", 302),)


def claim(url: str = URL, **values: Any) -> Claim:
    return Claim(url_id=7, url=url, host_id=1, depth=2, **values)


def visit(url: str = URL, *, row: Claim | None = None, **meta: Any) -> Request:
    return Request(url, meta={"claim": row or claim(), "download_slot": "site.test:80", **meta}, dont_filter=True)


def robots_request() -> Request:
    return Request("http://site.test/robots.txt", meta={"side_request": "robots"})


def answer(request: Request, status: int = 200, body: bytes = b"", **headers: Any) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(request.url, status=status, headers=named, body=body, request=request)


def end_of(call: Callable[..., Any], *given: Any) -> Outcome:
    """How a call ends a visit."""
    with pytest.raises(VisitEnded) as ended:
        call(*given)
    return ended.value.outcome
