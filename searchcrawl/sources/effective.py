"""The values of a source: ``--set``, its file, its parameter set, the defaults, in this order (A2, A3).

With them where each was written, what may be shown of it, and what a crawl registers for searches.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from pydantic import BaseModel

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.kind import KINDS, WEB
from searchcrawl.sources.attribute_table import Registered
from searchcrawl.sources.checking import join_key
from searchcrawl.sources.config import Origin, Source, SourceFile
from searchcrawl.sources.privacy import Privacy, Reference, mask, privacy_of, show_name
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.secrets import hide
from searchcrawl.sources.values import Table
from searchcrawl.terminal import to_one_line

BUILT_IN: Final = "built-in"

#: If a layer has one key of such a pair, the other key is not taken from lower layers.
_PAIRS: Final = {"include_ports": "exclude_ports", "exclude_ports": "include_ports"}


class Layer(NamedTuple):
    """Tables of a source and where they are written."""

    origin: Origin
    tables: Mapping[str, Any]


#: What messages call the file of such keys.
OPTION: Final = "--set"


def read_overrides(pairs: Iterable[str]) -> dict[str, Any]:
    """The tables that ``KEY=VALUE`` pairs come to, as a TOML file would have them; a later one counts.

    What is no value of TOML is a string: ``title=An intranet``. Raises ConfigurationError for what is no pair, and for a
    key within another one that is no table.
    """
    tables: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        names = _read_key(key)
        if not equals or not names:
            # The text is not shown: a password may be in it.
            raise ConfigurationError(OPTION, "", "must be KEY=VALUE, as fetch.delay_seconds=5")
        table = tables
        for number, name in enumerate(names[:-1], start=1):
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigurationError(OPTION, ".".join(names[:number]), "is set as a value and as a table")
        table[names[-1]] = _read_value(text)
    return tables


def name_option(found: ConfigurationError, load_alone: Callable[[], object], *, file: str) -> list[ConfigurationError]:
    """The errors of a source with ``--set`` as the file of those that its ``file`` alone does not have.

    An error may be about a key that is missing beside one that was set, and has no origin of its own.
    """
    known: set[tuple[str, str]] = set()
    try:
        load_alone()
    except ConfigurationError as alone:
        known = {(error.key, error.message) for error in alone.errors}
    return [
        type(error)(OPTION, error.key, error.message)
        if error.file == file and (error.key, error.message) not in known
        else error
        for error in found.errors
    ]


def _read_key(text: str) -> list[str]:
    """The names of a dotted key; none where it is not one."""
    try:
        found: Any = tomllib.loads(f"{to_one_line(text)} = 0")
    except ValueError:
        return []
    names = []
    while isinstance(found, dict):
        if len(found) != 1:
            return []
        [(name, found)] = found.items()
        names.append(name)
    return names


def _read_value(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    # Further lines would be further keys.
    return found["value"] if len(found) == 1 else text


def list_layers(
    project: Project, own: Mapping[str, Any], *, file: str, parameters: str, overrides: Mapping[str, Any] | None = None
) -> list[Layer]:
    """All layers of a source, the strongest first: ``overrides`` of a command line, its file, its set ``parameters``."""
    written = project.written
    found = [
        Layer(Origin(OPTION), overrides or {}),
        Layer(Origin(file), own),
        Layer(Origin(FILE, f"parameters.{parameters}"), written.get("parameters", {}).get(parameters, {})),
        Layer(Origin(FILE, "defaults"), written.get("defaults", {})),
    ]
    named = merge_layers(found)[0].get("type", WEB.name)
    kind = KINDS.get(named) if isinstance(named, str) else None
    if kind is not None and kind.defaults:
        found.append(Layer(Origin(BUILT_IN), kind.defaults))
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


def show_references(value: Any, place: str, references: Mapping[str, Mapping[str, str]]) -> Any:
    """``value``, whose place is ``place``, with the reference of each secret instead of the secret."""
    if place in references:
        return Reference(references[place])
    if isinstance(value, Mapping):
        return {name: show_references(inner, f"{place}.{name}", references) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [show_references(inner, f"{place}[{number}]", references) for number, inner in enumerate(value)]
    return value


def list_effective_values(project: Project, source: Source) -> dict[str, dict[str, Any]]:
    """``{key: {"value", "origin"}}`` of every key that a file of its kind may have, with dotted keys as in the file.

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
        # A list of tables is one key.
        for key, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
            if not source.kind.has_key(name, key):
                continue
            shown = show_name(key, inner, Privacy.BY_NAME) if name == "settings" else key
            found[join_key((name, shown)) if key else name] = _build_entry(
                source, f"{name}.{key}" if key else name, inner
            )
    return found


def _build_entry(source: Source, key: str, value: Any) -> dict[str, Any]:
    origin = source.origins.get(key)
    table, _, name = key.partition(".")
    model = getattr(source, table)
    with_references = show_references(value, key, source.references)
    if table == "settings":
        shown = next(iter(mask({name: with_references}, Privacy.BY_NAME).values()))
    else:
        privacy = privacy_of(type(model), name) if isinstance(model, BaseModel) else privacy_of(type(source), table)
        tables = getattr(model, name) if isinstance(model, BaseModel) else model
        are_tables = isinstance(tables, tuple) and all(isinstance(item, BaseModel) for item in tables)
        shown = _mask_tables(tables, with_references) if are_tables else mask(with_references, privacy)
    return {"value": shown, "origin": BUILT_IN if origin is None else str(origin)}


def _mask_tables(tables: Iterable[BaseModel], rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A list of tables, each key as its own model says."""
    return [
        {key: mask(value, privacy_of(type(table), key)) for key, value in row.items()}
        for table, row in zip(tables, rows, strict=True)
    ]


def hide_plain_secrets(model: BaseModel, *, of_file: type[BaseModel]) -> None:
    """Lets ``redact`` remove the credentials that were written into a file itself, whose keys are those of ``of_file``."""
    for text in _find_hidden(model, of_file.model_fields):
        hide(text)


def _find_hidden(model: BaseModel, names: Iterable[str]) -> set[str]:
    hidden: set[str] = set()
    for name in (*names, *(model.model_extra or ())):
        value = getattr(model, name)
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else [value]
        tables = [each for each in inner if isinstance(each, BaseModel)]
        for table in tables:
            hidden |= _find_hidden(table, type(table).model_fields)
        privacy = privacy_of(type(model), name)
        if not tables and privacy is not Privacy.PUBLIC:
            mask(value, privacy, hidden)
    return hidden - model.list_shown() if isinstance(model, Table) else hidden


def dump_registered(source: Source) -> str:
    """What is to be registered of a source, as JSON; the same for the same meaning."""
    shown = show_references(source.attributes.values, "attributes.values", source.references)
    values = {name: _leave_references_out(names) for name, names in shown.items()}
    groups = [each for each in show_references(source.groups, "groups", source.references) if isinstance(each, str)]
    found = {"types": source.attributes.types_in_use(), "values": values, "groups": sorted(groups)}
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()


def load_registered(text: str) -> Registered:
    """What ``dump_registered`` wrote."""
    return Registered(**orjson.loads(text))


def _leave_references_out(names: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for value, name in names.items():
        if isinstance(name, str):
            found[value] = name
        elif not isinstance(name, Reference):
            found[value] = {tag: text for tag, text in name.items() if not isinstance(text, Reference)}
    return found
