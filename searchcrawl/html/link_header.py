"""The canonical URL that a Link header names (RFC 8288, RFC 6596): for files that are no HTML it is the only way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl

#: What one header may hold; the rest is not read.
_MAX_CHARACTERS: Final = 8_192
_LINK: Final = re.compile(
    r"\s*<([^>]*)>((?:\s*;\s*[^\s;,=]+(?:\s*=\s*(?:\"(?:[^\"\\]|\\.)*+\"|[^\s;,\"]*+))?)*+)\s*(?:,|$)"
)
_PARAMETER: Final = re.compile(r";\s*([^\s;,=]+)(?:\s*=\s*(?:\"((?:[^\"\\]|\\.)*+)\"|([^\s;,\"]*+)))?")


def canonical_of(values: Iterable[str], *, base_url: str) -> str | None:
    """The one http(s) URL that Link headers name as canonical for ``base_url``; None where they name none, or several."""
    found = set()
    for value in values:
        for target, parameters in _links(value[:_MAX_CHARACTERS]):
            # With an anchor it is a statement about another page.
            if "canonical" in parameters.get("rel", "").lower().split() and "anchor" not in parameters:
                try:
                    found.add(urls.resolve(target.strip(), base_url))
                except InvalidUrl:
                    continue
    return found.pop() if len(found) == 1 else None


def _links(value: str) -> Iterator[tuple[str, dict[str, str]]]:
    position = 0
    while match := _LINK.match(value, position):
        position = match.end()
        parameters: dict[str, str] = {}
        for name, quoted, plain in _PARAMETER.findall(match[2]):
            # Of several the first counts (RFC 8288 §3.3).
            parameters.setdefault(name.lower(), quoted or plain)
        yield match[1], parameters
