"""Display URLs: the URL that is shown instead of the one from which a document is fetched (A4). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl

#: The longest term that an index takes; a longer URL would be cut there.
MAX_BYTES: Final = 32_766


class DisplayMap:
    """Prefixes of access URLs with their replacements; the longest prefix that matches is replaced.

    Both are identities (``urls.resolve``). The constructor raises InvalidUrl.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        prefixes = {urls.resolve(access): urls.resolve(display) for access, display in pairs}
        self._prefixes = sorted(prefixes.items(), key=lambda pair: -len(pair[0]))

    def resolve(self, access_url: str, own: str | None = None) -> str:
        """The display URL of an identity, the identity itself where no prefix matches; raises InvalidUrl.

        ``own`` is the display URL that a rewriter set for this row (K1); no prefix is replaced then.
        """
        if own is not None:
            return _check(own)
        for access, display in self._prefixes:
            if access_url.startswith(access):
                return _check(display + access_url[len(access) :])
        return access_url

    def show(self, access_url: str, own: str | None = None) -> str:
        """The display URL, or the access URL if the display URL is not valid."""
        try:
            return self.resolve(access_url, own)
        except InvalidUrl:
            return access_url


def _check(display: str) -> str:
    # Only a source with routes has one in its URLs.
    shown = urls.resolve(display, routes=True)
    if len(shown.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise InvalidUrl(f"display URL of more than {MAX_BYTES} bytes")
    return shown
