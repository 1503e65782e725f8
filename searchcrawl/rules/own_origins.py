"""Which origins get what is the source's own: ``fetch.headers`` and the client certificate (X-N7)."""

from __future__ import annotations

from collections.abc import Iterable

from searchcrawl import urls


class OwnOrigins:
    """The ``origins`` of the start URLs (``starts``) and of ``fetch.headers_to``; pure.

    If all start URLs are https, an origin of ``headers_to`` that is not gets nothing: it is in ``refused``.
    """

    def __init__(self, starts: Iterable[str], headers_to: Iterable[str] = ()) -> None:
        at_start = {urls.parse(url).origin for url in starts}
        further = {urls.parse(url).origin for url in headers_to} - at_start
        any_plain = any(origin.startswith("http:") for origin in at_start)
        self.refused = frozenset() if any_plain else frozenset(one for one in further if one.startswith("http:"))
        self.origins = at_start | (further - self.refused)

    def has(self, url: str, *, from_https: bool = False) -> bool:
        """Whether a request for ``url`` gets them; ``from_https`` if a redirect of an https URL has led there."""
        return urls.parse(url).origin in self.origins and not (from_https and url.startswith("http:"))
