"""Display URLs: under which URL a document is shown that is fetched from another one (A4). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl

#: What an index takes as one term; a longer URL would be cut, and lead nowhere.
MAX_BYTES: Final = 32_766


class DisplayMap:
    """Prefixes of access URLs and what is shown instead of them; the longest that matches decides.

    Both are compared and joined as identities (``urls.resolve``). Raises InvalidUrl for what is none.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        prefixes = {urls.resolve(access): urls.resolve(display) for access, display in pairs}
        self._prefixes = sorted(prefixes.items(), key=lambda pair: -len(pair[0]))

    def of(self, access_url: str, own: str | None = None) -> str:
        """The display URL of an identity, itself where nothing matches; raises InvalidUrl where it is not valid.

        ``own`` is what a rewriter set for this row (K1): it goes before every prefix.
        """
        if own is not None:
            return _checked(own)
        for access, display in self._prefixes:
            if access_url.startswith(access):
                return _checked(display + access_url[len(access) :])
        return access_url

    def shown(self, access_url: str, own: str | None = None) -> str:
        """The same, the access URL where the display URL is not valid."""
        try:
            return self.of(access_url, own)
        except InvalidUrl:
            return access_url


def _checked(display: str) -> str:
    shown = urls.resolve(display)
    if len(shown.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise InvalidUrl(f"display URL of more than {MAX_BYTES} bytes")
    return shown
