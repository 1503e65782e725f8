"""Visits of URLs by the fetch stage alone, in a process of its own (tests/fetch_crawl.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.crawl_forks import COMMANDS


def crawl(
    urls: list[str],
    *,
    claim: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    timeout_seconds: int = 2,
    login: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What tests/fetch_crawl.py answers, with the lines of its ``log``; ``claim`` are fields of each row."""
    job = {
        "claim": claim or {},
        "settings": settings or {},
        "urls": urls,
        "resolve_first": True,
        "scope": {"include_hosts": ["127.0.0.1", "nowhere.test"]},
        "fetch": {
            "private_networks": ["127.0.0.1/32"],
            "timeout_seconds": timeout_seconds,
            "max_bytes": 2_000_000,
            "max_redirects": 5,
        },
    }
    if login is not None:
        job["login"] = login
    return COMMANDS.fetch(job)
