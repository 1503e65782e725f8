"""Whether other text of a page was taken than its markup says, for ``explain`` (C8, L1)."""

from __future__ import annotations

from searchcrawl.items import Fallback, FallbackReason


def describe_fallback(fallback: Fallback | None) -> str:
    """What was taken in place of the main content, and how little that would have been; empty where it was taken."""
    if fallback is None:
        return ""
    share = f"{fallback.left} of {fallback.of} characters"
    if fallback.reason == FallbackReason.UNCUT:
        return f"taken uncut, because {share} would be left without what looks like navigation"
    return f"what it declares its main content is not taken for it, because that has {share}"
