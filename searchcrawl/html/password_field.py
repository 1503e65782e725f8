"""Whether a page asks for a password."""

from __future__ import annotations

import re
from typing import Final

_INPUT: Final = re.compile(rb"<input\b[^>]{0,1000}", re.IGNORECASE)
_OF_PASSWORD: Final = re.compile(rb"\btype\s*=\s*[\"']?password\b", re.IGNORECASE)
_INPUT_NAME: Final = re.compile(rb"\sname\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def has_password_field(body: bytes, name: str | None = None) -> bool:
    """Whether an HTML page has a password field (of this ``name``, if one is given), as login forms have."""
    if name is not None and name.encode() not in body:
        return False
    fields = (tag[0] for tag in _INPUT.finditer(body) if _OF_PASSWORD.search(tag[0]))
    return any(name is None or _find_name(field) == name.encode() for field in fields)


def _find_name(field: bytes) -> bytes:
    found = _INPUT_NAME.search(field)
    return (found[1] or found[2] or found[3] or b"") if found else b""
