"""What waits in the event loop until a request may go (C2)."""

from __future__ import annotations

from searchcrawl.politeness.rate_limiter import RateLimiter, SharedRateLimiter


def test_shared_rate_limiter_when_compared_then_it_limits_all_that_can_be_limited() -> None:
    methods = {name for name in vars(RateLimiter) if not name.startswith("_")}

    assert methods <= vars(SharedRateLimiter).keys()
