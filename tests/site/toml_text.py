"""Writes TOML for the source and project files of tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def to_toml(tables: Mapping[str, Any]) -> str:
    """TOML of strings, numbers, booleans, lists and tables; None is left out."""
    top = [(name, value) for name, value in tables.items() if not isinstance(value, Mapping) and value is not None]
    lines = [f"{name} = {_value(value)}" for name, value in top]
    for name, table in tables.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]"]
            lines += [f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, str | bool | int | float):
        return json.dumps(value)
    raise TypeError(f"no TOML for {value!r}")
