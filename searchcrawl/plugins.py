"""The protocols that plugins have; ``searchcrawl.testing`` has what their authors need to test them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What becomes of a link: the URL to be fetched, and the one to be shown instead.

    Both are absolute http(s) URLs. Without ``display_url``, or where it equals ``access_url``, the
    page is shown as ``[[display]]`` says.
    """

    access_url: str
    display_url: str | None = None


class UrlRewriter(Protocol):
    """Is called with each link before it is normalised and the boundary decides on it (K1); ``plugin`` of a ``[[rewrite]]``.

    The class is made once a run, without arguments. Its methods are called one at a time, but not
    always by the same thread. An error in ``open`` refuses the run (exit 4), one in ``rewrite``
    discards that link.
    """

    def open(self, source: str) -> None:
        """Called when a run of the source of this name begins."""

    def rewrite(self, url: str, *, referrer: str | None) -> Rewritten | None:
        """What becomes of an absolute URL without fragment; None discards the link.

        ``referrer`` is the page that links to it, None for start URLs and those of sitemaps. The same
        link may come again.
        """

    def close(self) -> None:
        """Called when the run is over; not where its process died."""
