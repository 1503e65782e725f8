"""Which canonical link of a page counts (interface.md §1, canonical links; L5)."""

from __future__ import annotations

from searchcrawl.items import Link
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.rewriting import Rewriting

_AS_IT_IS = Rewriting()


def other_url(*named: str | None, own: str, boundary: Boundary, rewriting: Rewriting = _AS_IT_IS) -> Link | None:
    """The URL that the page at ``own`` names as canonical, the first of ``named`` that is one; None where it is its own.

    It is rewritten as other links are (K1). One outside the boundary is ignored; whether it is good, or
    leads in a circle, is seen when it was fetched.
    """
    canonical = next((url for url in named if url is not None), None)
    if canonical is None or canonical == own:
        return None
    found = rewriting.named(canonical, own)
    if found.code or found.url == own or not boundary.decide(found.url).allowed:
        return None
    return found.link
