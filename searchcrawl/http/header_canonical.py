"""The canonical URL that a Link header names, as the source writes URLs (L5, RFC 6596)."""

from __future__ import annotations

from collections.abc import Iterable

from searchcrawl import urls
from searchcrawl.html.links import find_header_canonical
from searchcrawl.rules.rewriting import Rewriting


def read_canonical(values: Iterable[bytes], *, base_url: str, rewriting: Rewriting) -> str | None:
    """What the Link headers ``values`` of the page at ``base_url`` name; None for none, or several."""
    routes = rewriting.identity.routes
    texts = [value.decode("latin-1") for value in values]
    canonical = find_header_canonical(texts, base_url=base_url, routes=routes)
    if canonical is not None and urls.has_route(base_url) and not urls.has_route(canonical):
        # The server knows nothing of routes: it names the frame that they share.
        return None
    if canonical is not None and not rewriting.rewrites:
        # A session id in it may be another one each time.
        canonical = rewriting.identity.strip(canonical)
    return canonical
