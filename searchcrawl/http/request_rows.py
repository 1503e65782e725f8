"""Rows of the URL table as requests, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy import Request

from searchcrawl.items import Claim


def request_of(claim: Claim, host: str, *, callback: Callable[..., Any], errback: Callable[..., Any]) -> Request:
    """The request that visits a claimed row; its download slot is the host, its claim is in ``meta``."""
    return Request(
        claim.url,
        callback=callback,
        errback=errback,
        # Scrapy's duplicate filter would drop it without notice (X-D3).
        dont_filter=True,
        meta={"claim": claim, "download_slot": host, "verbatim_url": True},
    )


def claim_of(request: Request) -> Claim | None:
    """The row that a request visits; None for side requests and those of users' own code."""
    claim: Claim | None = request.meta.get("claim")
    return claim
