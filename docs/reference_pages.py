"""The pages of the reference in Markdown, made from the code: keys, commands, codes, fields, counters and states."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from docs.markdown import grid, literal
from docs.python_page import python_page
from searchcrawl import settings
from searchcrawl.cli import commands
from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.dispatch import make_command
from searchcrawl.codes import Code, CodeClass
from searchcrawl.convert import archive_reader
from searchcrawl.convert.converter import MAX_FILE_MEMORY_BYTES
from searchcrawl.convert.document_converter import BY_ENDING, MAX_DOCX_PART_BYTES
from searchcrawl.convert.pdf_converter import MAX_PAGES
from searchcrawl.convert.registry import CONVERTERS
from searchcrawl.counters import COUNTS
from searchcrawl.environment import Given, Variable
from searchcrawl.exceptions import Exit
from searchcrawl.html.page_text import MAX_CHARACTERS
from searchcrawl.index_fields import ATTRIBUTE_FIELDS, FIELDS, LANGUAGE_FIELDS, FieldKind
from searchcrawl.messages import list_messages
from searchcrawl.rules import archives
from searchcrawl.sources import config, project
from searchcrawl.sources.values import Check
from searchcrawl.store.documents import document_events
from searchcrawl.store.states import (
    BATCH_TRANSITIONS,
    BatchState,
    DocumentState,
    EndReason,
    FetchState,
    Transition,
)
from searchcrawl.store.urls import fetch_events
from searchcrawl.store.urls.url_state import UrlState
from searchcrawl.store.views import VIEWS
from searchcrawl.worker_pool import MAX_MEMORY_BYTES, TIMEOUT_SECONDS

_ROOT: Final = Path(__file__).resolve().parent.parent
#: A key that ends so has this unit.
_UNITS: Final[Mapping[str, str]] = {
    "_seconds": "seconds",
    "_minutes": "minutes",
    "_hours": "hours",
    "_days": "days",
    "_bytes": "bytes",
    "_mb": "MB of 1,048,576 bytes",
    "_gb": "GB of 1,024 MB",
    "_percent": "percent",
}
_TYPES: Final[Mapping[object, str]] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Any: "any value",
}


class Key(NamedTuple):
    """A key of a configuration file, as the reference shows it."""

    name: str
    type: str
    default: str
    unit: str
    meaning: str


class KeyTable(NamedTuple):
    """A table of a configuration file: its heading as in the file ("" for the top), its meaning, its own keys."""

    heading: str
    meaning: str
    keys: list[Key]


def source_tables() -> list[KeyTable]:
    """The tables and keys of ``sources/NAME.toml``."""
    return _tables(config.SourceFile, KeyTable("", "", []), "")


def project_tables() -> list[KeyTable]:
    """The tables and keys of ``searchcrawl.toml``; of ``defaults`` and ``parameters``, which hold a source's, the names."""
    return _tables(project.ProjectFile, KeyTable("", "", []), "")


def _tables(model: type[BaseModel], table: KeyTable, path: str) -> list[KeyTable]:
    """A table, and the tables in it."""
    inner: list[KeyTable] = []
    for field_name, field in model.model_fields.items():
        name = field.alias or field_name
        below = _model_in(field.annotation)
        if below is None:
            table.keys.append(_key(name, field))
            continue
        at = f"{path}.{name}".removeprefix(".")
        found = KeyTable(_heading(at, field.annotation), field.description or "", [])
        inner += [found] if below is config.Tables else _tables(below, found, at)
    return [table, *inner]


def _heading(path: str, annotation: Any) -> str:
    kinds = {get_origin(candidate) for candidate in (annotation, *get_args(annotation))}
    if tuple in kinds:
        return f"[[{path}]]"
    return f"[{path}.NAME]" if Mapping in kinds or dict in kinds or _is_mapping(annotation) else f"[{path}]"


def _is_mapping(annotation: Any) -> bool:
    origin = get_origin(annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model of a table, of a list of tables or of tables with names; None for a value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _model_in(inner)) is not None), None)


def _key(name: str, field: FieldInfo) -> Key:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    unit = extra.get("unit") or next((_UNITS[end] for end in _UNITS if f"_{name}".endswith(end)), "")
    return Key(name, _type(field.annotation, field.metadata), _default(field), str(unit), field.description or "")


def _type(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """The type of a value in words; a check that names what it checks goes before the type of Python."""
    kind = next((check.kind for check in metadata if isinstance(check, Check) and check.kind), None)
    if kind is not None:
        return kind
    arguments = get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return _type(arguments[0], annotation.__metadata__)
    origin = get_origin(annotation)
    if origin is Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in arguments)
    if origin is tuple:
        return f"list of: {_type(arguments[0])}"
    if _is_mapping(annotation):
        return f"table: {_type(arguments[0])} = {_type(arguments[1])}"
    if origin is not None:
        return " or ".join(_type(each) for each in arguments if each is not type(None))
    return _TYPES[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value == "" or value is PydanticUndefined:
        return "none"
    return f"`{json.dumps(value)}`" if value != {} else "`{}`"


def key_pages(tables: Iterable[KeyTable]) -> str:
    """A section for each table, with a line for each key."""
    lines: list[str] = []
    for table in tables:
        lines += [f"## `{table.heading}`" if table.heading else "## At the top of the file", "", table.meaning, ""]
        if table.keys:
            rows = [(f"`{key.name}`", key.type, key.default, key.unit, key.meaning) for key in table.keys]
            lines += grid(("key", "type", "default", "unit", "meaning"), rows)
    return "\n".join(lines)


def later_keys() -> str:
    """The keys that are known and refused."""
    return ", ".join(f"`{key}`" for key in sorted(config.Tables.later))


def shipped_commands() -> list[BaseCommand]:
    """One object of each command, in the order of their names."""
    return [make_command(name) for name in commands.list_names()]


def options_of(command: BaseCommand) -> list[argparse.Action]:
    """The options of a command, those that all commands have included."""
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    command.add_options(parser)
    return [action for action in parser._actions if action.dest != "help" and action.help != argparse.SUPPRESS]


def command_page() -> str:
    """The options that all commands have, and a section for each command: what it does, its own options, an example."""
    rows_of = {
        command: [(f"`{_spelling(action)}`", action.help or "") for action in options_of(command)]
        for command in shipped_commands()
    }
    common = [row for row in next(iter(rows_of.values())) if all(row in rows for rows in rows_of.values())]
    lines = ["## Options of every command", "", *grid(("option", "meaning"), common)]
    for command, rows in rows_of.items():
        lines += [f"## `searchcrawl {command.name}`", "", f"{command.short_desc()}.", ""]
        lines += ["```text", f"searchcrawl {command.name} [options] {command.syntax()}".rstrip(), "```", ""]
        own = [row for row in rows if row not in common]
        lines += [*(grid(("option", "meaning"), own) if own else []), f"Example: `{command.example}`", ""]
    return "\n".join(lines)


def _spelling(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {action.metavar or action.dest.upper()}"


def code_page() -> str:
    """A line for each code of searchcrawl's own, and how HTTP statuses are treated."""
    columns = ("code", "title", "class", "meaning", "tried again", "removes a known document", "counted as")
    rows = [
        (
            str(facts.code),
            facts.title,
            facts.kind.value,
            facts.meaning,
            "yes" if facts.retried else "",
            "yes" if facts.removes else "",
            ", ".join(f"`{name}`" for name in facts.counters),
        )
        for facts in (code.facts for code in Code)
    ]
    return "\n".join([*grid(columns, rows), "## Classes", "", members_page(CodeClass)])


def format_page() -> str:
    """A line for each converter: its types, and the endings of files that it is found by where nothing says a type."""
    rows = []
    for converter in CONVERTERS:
        endings = sorted(ending for ending, mimetype in BY_ENDING.items() if mimetype in converter.mime_types)
        types = ", ".join(f"`{mimetype}`" for mimetype in converter.mime_types)
        rows.append((converter.name, types, ", ".join(f"`.{ending}`" for ending in endings)))
    return "\n".join(grid(("read by", "types", "endings"), rows))


def limits_page() -> str:
    """The limits on one file."""
    rows = [
        ("time", f"{TIMEOUT_SECONDS:g} seconds"),
        ("memory", f"{MAX_FILE_MEMORY_BYTES >> 20} MB, of large HTML pages {MAX_MEMORY_BYTES >> 20} MB"),
        ("text", f"{MAX_CHARACTERS:,} characters"),
        ("pages of a PDF", f"{MAX_PAGES:,}"),
        ("an office file or an archive, unpacked", f"{archive_reader.MAX_UNPACKED_BYTES >> 20} MB"),
        ("a part of a `.docx`, unpacked", f"{MAX_DOCX_PART_BYTES >> 20} MB"),
        ("unpacked to packed", f"{archive_reader.MAX_RATIO} to 1"),
        ("files in an archive", f"{archive_reader.MAX_MEMBERS:,}"),
        ("archives in each other", str(archives.MAX_DEPTH)),
    ]
    return "\n".join(grid(("what", "at most"), rows))


def field_page() -> str:
    """A line for each field of an indexed document."""
    columns = ("field", "kind", "several values", "fixed attribute", "meaning")
    rows = [
        (
            f"`{field.name}`",
            field.kind.value,
            "yes" if field.is_multi_valued else "",
            "yes" if field.is_fixed else "",
            f"{field.meaning}.",
        )
        for field in (*FIELDS, *ATTRIBUTE_FIELDS.values(), *LANGUAGE_FIELDS)
    ]
    return "\n".join([*grid(columns, rows), "## Kinds", "", members_page(FieldKind)])


def message_page() -> str:
    """A line for each message of the log."""
    rows = [(f"`{each.id}`", f"`{each.text}`", f"`{each.module}`") for each in list_messages() if each.module != "-"]
    return "\n".join(grid(("id", "message", "module"), rows))


def counter_page() -> str:
    """A line for each counter of a run."""
    return "\n".join(grid(("counter", "meaning"), [(f"`{name}`", meaning) for name, meaning in COUNTS.items()]))


def view_page() -> str:
    """A table for each view, with a line for each column."""
    parts: list[str] = []
    for view, columns in VIEWS.items():
        rows = [(f"`{name}`", meaning) for name, meaning in columns.items()]
        parts += [f"## `{view}`", "", *grid(("column", "meaning"), rows), ""]
    return "\n".join(parts)


def exit_page() -> str:
    """A line for each exit code."""
    return members_page(Exit)


def setting_page() -> str:
    """A line for each setting of ours: the comment above it is its meaning."""
    found = re.findall(r"((?:^# .*\n)+)(SEARCHCRAWL_\w+) = ", inspect.getsource(settings), re.MULTILINE)
    rows = [
        (f"`{name}`", f"`{json.dumps(getattr(settings, name))}`", literal(" ".join(re.findall(r"# (.*)", comment))))
        for comment, name in found
    ]
    return "\n".join(grid(("setting", "default", "meaning"), rows))


def variable_page() -> str:
    """A line for each variable of the environment that is read, and for each that is given to a program."""
    lines = [members_page(Variable), "## For the command of `[notify]`", "", members_page(Given)]
    return "\n".join(lines)


def state_page() -> str:
    """A section for each kind of state: its values and its transitions."""
    lines: list[str] = []
    for title, kind, transitions in _STATES:
        columns = ("value", "state", "as answers show it", "meaning")
        rows = [(str(int(each)), f"`{each.name}`", each.facts.title, each.facts.meaning) for each in kind]
        lines += [f"## {title}", "", *grid(columns, rows), *transition_rows(transitions)]
    lines += ["## The one word that `urls` shows", "", members_page(UrlState)]
    lines += ["## Why a run ended", "", members_page(EndReason)]
    return "\n".join(lines)


def transition_rows(transitions: Iterable[Transition]) -> list[str]:
    """A line for each transition: from which states to which, why, and which package makes it."""
    rows = [
        (
            _name_states(each.before),
            f"`{each.after.name}`",
            each.reason,
            f"`{each.by}`",
        )
        for each in transitions
    ]
    return grid(("from", "to", "because", "made by"), rows)


def _name_states(before: Sequence[IntEnum]) -> str:
    if not before:
        return "new row"
    return "any" if {*before} == {*type(before[0])} else ", ".join(f"`{state.name}`" for state in before)


def members_page(kind: type[Enum]) -> str:
    """A line for each member of an enumeration, with the ``#:`` comment above it as its meaning."""
    meanings = member_meanings(kind)
    rows = [(f"`{_value(member)}`", literal(meanings.get(member.name, ""))) for member in kind]
    return "\n".join(grid(("value", "meaning"), rows))


def _value(member: Enum) -> str:
    return f"{member.value} {member.name}" if isinstance(member, int) else str(member.value)


def member_meanings(kind: type[Enum]) -> dict[str, str]:
    """The ``#:`` comments of an enumeration's members, by name."""
    found = re.findall(r"((?:^ +#: .*\n)+) +(\w+) = ", inspect.getsource(kind), re.MULTILINE)
    return {name: " ".join(re.findall(r"#: (.*)", comment)) for comment, name in found}


def layers_page() -> str:
    """The layers of imports as they are checked."""
    contracts = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    return "\n".join(["```text", *(layer.replace("(", "").replace(")", "") for layer in layers), "```"])


_STATES: Final = (
    ("Fetching", FetchState, fetch_events.TRANSITIONS),
    ("Document", DocumentState, document_events.TRANSITIONS),
    ("Delivery", BatchState, BATCH_TRANSITIONS),
)

#: The pages by the name that ``{reference} NAME`` asks for.
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "layers": layers_page,
    "source-keys": lambda: key_pages(source_tables()),
    "project-keys": lambda: key_pages(project_tables()),
    "later-keys": later_keys,
    "later-commands": lambda: ", ".join(f"`{name}`" for name in sorted(commands.LATER)),
    "commands": command_page,
    "codes": code_page,
    "formats": format_page,
    "limits": limits_page,
    "index-fields": field_page,
    "counters": counter_page,
    "messages": message_page,
    "views": view_page,
    "python": python_page,
    "exit-codes": exit_page,
    "settings": setting_page,
    "variables": variable_page,
    "states": state_page,
    "fetch-transitions": lambda: "\n".join(transition_rows(fetch_events.TRANSITIONS)),
    "document-transitions": lambda: "\n".join(transition_rows(document_events.TRANSITIONS)),
}
