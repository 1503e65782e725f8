"""A crawl is ended by the first error, and only once it has begun."""

from __future__ import annotations

from searchcrawl.exceptions import StoreError
from searchcrawl.run import Shutdown


def test_shutdown_when_several_stages_fail_then_the_first_error_counts() -> None:
    shutdown, reasons = Shutdown(), list[str]()
    first = StoreError("first")

    shutdown.stop("limit")
    shutdown.open(reasons.append)
    shutdown.fail(first)
    shutdown.fail(StoreError("second"))

    assert shutdown.failure is first
    assert reasons == ["store_failed", "store_failed"]
