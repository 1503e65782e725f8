"""The values of a source from where they are written: its file, its parameter set, the defaults (A2, A3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from searchcrawl.sources.config import Origin
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.secrets import Secret

#: Where one of a pair is written, the other is not taken from further below.
_PAIRS: Final = {"include_ports": "exclude_ports", "exclude_ports": "include_ports"}


class Layer(NamedTuple):
    """Tables of a source and where they are written."""

    origin: Origin
    tables: Mapping[str, Any]


def layers_of(project: Project, own: Mapping[str, Any], *, file: str, parameters: str) -> list[Layer]:
    """All layers of a source, the strongest first; ``own`` is its file, ``parameters`` the name of its set."""
    written = project.written
    found = [
        Layer(Origin(file), own),
        Layer(Origin(FILE, f"parameters.{parameters}"), written.get("parameters", {}).get(parameters, {})),
        Layer(Origin(FILE, "defaults"), written.get("defaults", {})),
    ]
    if "user_agent" in written:
        # The token of robots.txt is that of the project, where no layer says otherwise (C5).
        found.append(Layer(Origin(FILE), {"robots": {"user_agent": written["user_agent"]}}))
    return found


def merged(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, Origin]]:
    """The tables of all layers in one, filled up key by key, and by ``table.key`` where each value is written."""
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for origin, tables in layers:
        for name, table in tables.items():
            if name not in values:
                values[name] = dict(table) if isinstance(table, Mapping) else table
                keys = [f"{name}.{key}" for key in table] if isinstance(table, Mapping) else [name]
                origins |= dict.fromkeys(keys, origin)
            elif isinstance(values[name], dict) and isinstance(table, Mapping):
                above = set(values[name])
                taken = {key: value for key, value in table.items() if not {key, _PAIRS.get(key)} & above}
                values[name] |= taken
                origins |= {f"{name}.{key}": origin for key in taken}
    return values, origins


def references_in(values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The references of all secrets in tables, by place: ``fetch.headers.X-Key``, ``start.urls[0]``."""
    return dict(_references(values, ""))


def _references(value: Any, place: str) -> Iterator[tuple[str, dict[str, str]]]:
    if isinstance(value, Secret):
        yield place, value.reference
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _references(inner, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _references(inner, f"{place}[{number}]")


def referenced(value: Any, place: str, references: Mapping[str, Mapping[str, str]]) -> Any:
    """``value``, whose place is ``place``, with the reference of each secret instead of the secret."""
    if place in references:
        return dict(references[place])
    if isinstance(value, Mapping):
        return {name: referenced(inner, f"{place}.{name}", references) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [referenced(inner, f"{place}[{number}]", references) for number, inner in enumerate(value)]
    return value
