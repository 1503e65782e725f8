"""The fields of a document that tell whether it is a near copy: reading all of it, with its text, takes ten times as long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import orjson

#: Their values are plain: neither a name of a source nor a signature has a quotation mark or a backslash.
_PLAIN: Final = {name: f'"{name}":"'.encode() for name in ("source", "text_signature")}


class NearFields(Mapping[str, Any]):
    """The fields of a document as they were stored, in JSON; it is read as a whole when another field is asked for."""

    def __init__(self, stored: bytes) -> None:
        self._stored = stored

    def __getitem__(self, name: str) -> Any:
        if (key := _PLAIN.get(name)) is None:
            return self._fields[name]
        # Within a text each quotation mark has a backslash before it, so this is the key.
        at = self._stored.find(key)
        if at < 0:
            raise KeyError(name)
        start = at + len(key)
        return self._stored[start : self._stored.index(b'"', start)].decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    @cached_property
    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = orjson.loads(self._stored)
        return fields
