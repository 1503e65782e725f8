"""Which canonical link of a page counts (interface.md §1, canonical links; L5). Pure."""

from __future__ import annotations

from searchcrawl.rules.boundary import Boundary


def other_url(*named: str | None, own: str, boundary: Boundary) -> str | None:
    """The URL that the page at ``own`` names as canonical, the first of ``named`` that is one; None where it is its own.

    One outside the boundary is ignored; whether it is good, or leads in a circle, is seen when it was fetched.
    """
    canonical = next((url for url in named if url is not None), None)
    if canonical is None or canonical == own or not boundary.decide(canonical).allowed:
        return None
    return canonical
