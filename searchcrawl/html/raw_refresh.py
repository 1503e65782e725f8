"""Where a small page sends its readers on to by a meta refresh, found in its bytes: no tree is built for that."""

from __future__ import annotations

import re
from typing import Final

from searchcrawl.html.metas import parse_refresh
from searchcrawl.html.page import MAX_REFRESH_SECONDS

#: What is longer has content.
_MAX_BYTES: Final = 16_384
_META: Final = re.compile(rb"<meta\b[^>]{0,1000}", re.IGNORECASE)
_OF_REFRESH: Final = re.compile(rb"\bhttp-equiv\s{0,9}=\s{0,9}[\"']?\s{0,9}refresh\b", re.IGNORECASE)
_CONTENT: Final = re.compile(rb"\scontent\s{0,9}=\s{0,9}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def find_raw_refresh(body: bytes) -> str | None:
    """The target of the first refresh of a page that counts as a redirect, as written; None where there is none."""
    if len(body) > _MAX_BYTES or not _OF_REFRESH.search(body):
        return None
    for tag in _META.finditer(body):
        content = _CONTENT.search(tag[0]) if _OF_REFRESH.search(tag[0]) else None
        if content is None:
            continue
        read = parse_refresh((content[1] or content[2] or content[3] or b"").decode("latin-1").replace("&amp;", "&"))
        if read is not None and read.url and read.seconds <= MAX_REFRESH_SECONDS:
            return read.url
    return None
