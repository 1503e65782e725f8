"""The syntax of a refresh (HTML Standard, "shared declarative refresh steps")."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SPACE: Final = r"[\t\n\x0c\r ]*"
_TIME: Final = re.compile(rf"{_SPACE}(?:([0-9]+)|(?=\.))[0-9.]*(?:\Z|(?=[;,\t\n\x0c\r ]){_SPACE}[;,]?{_SPACE})")
_URL: Final = re.compile(rf"url{_SPACE}={_SPACE}", re.IGNORECASE)
_MAX_SECONDS: Final = 2**31


class Refresh(NamedTuple):
    """``seconds`` to wait; ``url`` as written, empty for the page itself."""

    seconds: int
    url: str


def parse_refresh(content: str) -> Refresh | None:
    """Reads the content of a meta refresh or a Refresh header; None where browsers ignore it."""
    match = _TIME.match(content)
    if match is None:
        return None
    digits = match[1] or "0"
    seconds = min(int(digits), _MAX_SECONDS) if len(digits) < 11 else _MAX_SECONDS
    return Refresh(seconds, _target(content[match.end() :]))


def _target(rest: str) -> str:
    prefix = _URL.match(rest)
    if prefix is not None:
        rest = rest[prefix.end() :]
    elif rest[:1] in {"u", "U"}:
        return rest.strip("\t\n\x0c\r ")
    if rest[:1] in {'"', "'"}:
        rest = rest[1:].partition(rest[0])[0]
    return rest.strip("\t\n\x0c\r ")
