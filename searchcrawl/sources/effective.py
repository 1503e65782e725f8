"""The values of a source: its file, its parameter set, the defaults, in this order, and where each was written (A2, A3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from searchcrawl.sources.checking import join_key
from searchcrawl.sources.config import Origin, Source, SourceFile
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.refused_settings import is_credential
from searchcrawl.sources.secrets import HIDDEN, Secret, remove_secrets

BUILT_IN: Final = "built-in"

#: Request headers whose values are credentials.
_CREDENTIAL_HEADER: Final = re.compile(r"authorization|cookie|token|secret|passw|key|session", re.IGNORECASE)
#: If a layer has one key of such a pair, the other key is not taken from lower layers.
_PAIRS: Final = {"include_ports": "exclude_ports", "exclude_ports": "include_ports"}


class Layer(NamedTuple):
    """Tables of a source and where they are written."""

    origin: Origin
    tables: Mapping[str, Any]


def list_layers(project: Project, own: Mapping[str, Any], *, file: str, parameters: str) -> list[Layer]:
    """All layers of a source, the strongest first; ``own`` is its file, ``parameters`` the name of its set."""
    written = project.written
    found = [
        Layer(Origin(file), own),
        Layer(Origin(FILE, f"parameters.{parameters}"), written.get("parameters", {}).get(parameters, {})),
        Layer(Origin(FILE, "defaults"), written.get("defaults", {})),
    ]
    if "user_agent" in written:
        # The name for robots.txt is that of the project, unless a stronger layer has one (C5).
        found.append(Layer(Origin(FILE), {"robots": {"user_agent": written["user_agent"]}}))
    return found


def merge_layers(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, Origin]]:
    """Merges the tables of all layers: each key has its strongest value. Returns the origins too, by ``table.key``."""
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


def find_references(values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The references of all secrets in tables, by place: ``fetch.headers.X-Key``, ``start.urls[0]``."""
    return dict(_walk_references(values, ""))


def _walk_references(value: Any, place: str) -> Iterator[tuple[str, dict[str, str]]]:
    if isinstance(value, Secret):
        yield place, value.reference
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _walk_references(inner, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _walk_references(inner, f"{place}[{number}]")


def show_references(value: Any, place: str, references: Mapping[str, Mapping[str, str]]) -> Any:
    """``value``, whose place is ``place``, with the reference of each secret instead of the secret."""
    if place in references:
        return dict(references[place])
    if isinstance(value, Mapping):
        return {name: show_references(inner, f"{place}.{name}", references) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [show_references(inner, f"{place}[{number}]", references) for number, inner in enumerate(value)]
    return value


def list_effective_values(project: Project, source: Source) -> dict[str, dict[str, Any]]:
    """``{key: {"value", "origin"}}`` of every key that a source file may have, with dotted keys as in the file.

    The origin is the file, or the file and its table in brackets, or ``built-in``. Values that came
    from the environment or a file are shown as their references, other credentials as stars.
    """
    dumped = source.model_dump(mode="json", by_alias=True, include=set(SourceFile.model_fields))
    if dumped["robots"]["user_agent"] is None:
        dumped["robots"]["user_agent"] = project.user_agent
    found: dict[str, dict[str, Any]] = {}
    for name in ("type", "title", "parameters"):
        found[name] = _build_entry(source, name, dumped.pop(name))
    for name, value in dumped.items():
        for key, inner in _list_keys(name, value):
            found[join_key((name, key)) if key else name] = _build_entry(
                source, f"{name}.{key}" if key else name, inner
            )
    return found


def _list_keys(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The keys of a table; a list of tables is one key."""
    if isinstance(value, Mapping):
        yield from value.items()
    else:
        yield "", value


def _build_entry(source: Source, key: str, value: Any) -> dict[str, Any]:
    origin = source.origins.get(key)
    shown = remove_secrets(show_references(value, key, source.references))
    if key == "fetch.headers":
        shown = {
            name: _replace_by_stars(text) if _CREDENTIAL_HEADER.search(name) else text for name, text in shown.items()
        }
    if key == "login.fields":
        shown = {name: _replace_by_stars(text) for name, text in shown.items()}
    if key == "login.password":
        shown = _replace_by_stars(shown)
    if key.startswith("settings.") and is_credential(key.removeprefix("settings.")):
        shown = _replace_by_stars(shown)
    return {"value": shown, "origin": BUILT_IN if origin is None else str(origin)}


def _replace_by_stars(value: Any) -> Any:
    """Replaces a plain text by stars; a reference is not secret and stays."""
    return HIDDEN if isinstance(value, str) else value
