"""The canonical URL that a Link header names, as the source writes URLs (L5, RFC 6596)."""

from __future__ import annotations

from collections.abc import Iterable

from searchcrawl.html.links import find_header_canonical
from searchcrawl.rules.rewriting import Rewriting


def read_canonical(values: Iterable[bytes], *, base_url: str, rewriting: Rewriting) -> str | None:
    """What the Link headers ``values`` of the page at ``base_url`` name; None for none, or several."""
    canonical = find_header_canonical([value.decode("latin-1") for value in values], base_url=base_url)
    if canonical is not None and not rewriting.rewrites:
        # A session id in it may be another one each time.
        canonical = rewriting.identity.strip(canonical)
    return canonical
