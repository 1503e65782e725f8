"""Finds the password field of a page: it is how a login form is known."""

from __future__ import annotations

import re
from typing import Final

_INPUT: Final = re.compile(rb"<input\b[^>]{0,1000}", re.IGNORECASE)
_OF_PASSWORD: Final = re.compile(rb"\btype\s*=\s*[\"']?password\b", re.IGNORECASE)
_NAME: Final = re.compile(rb"\sname\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def has_password_field(body: bytes, name: str | None = None) -> bool:
    """Whether an HTML page asks for a password, in a field of this ``name`` where one is given."""
    if name is not None and name.encode() not in body:
        return False
    fields = (tag[0] for tag in _INPUT.finditer(body) if _OF_PASSWORD.search(tag[0]))
    return any(name is None or _name_of(field) == name.encode() for field in fields)


def _name_of(field: bytes) -> bytes:
    found = _NAME.search(field)
    return (found[1] or found[2] or found[3] or b"") if found else b""
