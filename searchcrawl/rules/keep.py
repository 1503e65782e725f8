"""Whether a fetched page is indexed (interface.md §1, ``[keep]``; B10, C6)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.items import Page
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import ALLOWED, Decision

_INDEXED: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """``code`` is 200 for a page that is indexed, else 953, 952 or 911; ``decision`` says why.

    With 953 ``decision`` is the boundary's about the target of the refresh, which is a URL of its
    own where that allows it.
    """

    code: int
    decision: Decision = ALLOWED

    @property
    def indexed(self) -> bool:
        """Whether the page goes into the index."""
        return self.code == _INDEXED


def decide(
    page: Page,
    *,
    own_urls: Collection[str],
    boundary: Boundary,
    depth: int | None = None,
    meta_robots: bool = True,
    file: str = "",
) -> Keeping:
    """The verdict on a page that was fetched well.

    ``own_urls`` are the identities of the page itself (asked for, redirected to): a refresh to
    one of them only reloads it. A refresh weighs more than noindex, noindex more than emptiness.
    """
    target = _refresh_target(page)
    if target is not None and target not in own_urls:
        return Keeping(code=Code.META_REFRESH, decision=boundary.decide(target, depth))
    if page.noindex and meta_robots:
        return Keeping(code=Code.NOT_INDEXED, decision=Decision(False, "meta robots noindex", file, "keep.meta_robots"))
    if not (page.text.strip() or page.title.strip() or page.description.strip()):
        return Keeping(code=Code.EMPTY, decision=Decision(False, "empty document", file))
    return Keeping(code=_INDEXED)


def _refresh_target(page: Page) -> str | None:
    """The identity a refresh leads to; what is no http(s) URL leads nowhere, and the page is content."""
    if page.refresh is None:
        return None
    try:
        return urls.resolve(page.refresh)
    except InvalidUrl:
        return None
