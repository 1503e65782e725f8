"""Whether the address guard would refuse a URL that was never visited, as far as that is known without a name server (L7)."""

from __future__ import annotations

from typing import Final

from searchcrawl.http.address_guard import build_guard
from searchcrawl.queries.explain_context import Context
from searchcrawl.queries.explain_reasons import Reason, build_reason
from searchcrawl.queries.source_findings import find_private
from searchcrawl.rules.decision import Decision

_KEY: Final = "fetch.private_networks"


def list_address_refusals(context: Context) -> list[Reason]:
    """The networks for which its address may not be reached; empty where a proxy or nobody knows."""
    source = context.source
    if source.fetch.proxy:
        return []
    found = find_private(context.url, build_guard(source.fetch))
    if found is None:
        return []
    shown = f"{_KEY} may not be reached" if f"{_KEY}" in source.references else found
    return [build_reason("address", Decision(False, shown, key=_KEY), source)]
