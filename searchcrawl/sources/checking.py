"""Reads TOML files and checks them against models; each error is one line: ``FILE: KEY: what is wrong (got …)``."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from searchcrawl.exceptions import ConfigurationError, NotAvailableYet
from searchcrawl.sources.files import require_file
from searchcrawl.sources.privacy import Privacy, mask, privacy_below, privacy_of, show_name
from searchcrawl.sources.secrets import HIDDEN, is_reference, resolve_reference
from searchcrawl.sources.values import Table
from searchcrawl.terminal import to_one_line

M = TypeVar("M", bound=Table)

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
#: What names of keys are made of.
_WORD: Final = re.compile(r"[A-Za-z_-]{1,40}")
_POSITION: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_MAX_SHOWN: Final = 100
#: Names that the parser of TOML quotes: in place of one there may be a credential.
_QUOTED: Final = re.compile(
    r"(?<=^duplicate inline table key) .*|(?<=^cannot mutate immutable namespace) .*|(?<=^cannot declare) .*(?= twice)",
    re.DOTALL,
)
_MESSAGES: Final = {
    "missing": "is required",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "mapping_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "greater_than": "must be more than {gt:.0f}",
    "greater_than_equal": "must be at least {ge:.0f}",
    "less_than_equal": "must be at most {le:.0f}",
    "literal_error": "must be {expected}",
}


def read_toml(path: Path, file: str) -> dict[str, Any]:
    """The content of a TOML file; ``file`` is its name in messages.

    Raises ConfigurationError for a file that cannot be read; its key is the line.
    """
    try:
        require_file(path)
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(to_one_line(file), "", f"cannot be read ({error.strerror})") from error
    try:
        # Some editors begin a file with a byte order mark.
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(to_one_line(file), f"line {line}", "is not UTF-8") from error
    except ValueError as error:
        # ValueError too: Python raises it for a number of thousands of digits.
        where, message = _syntax_error(str(error), content)
        raise ConfigurationError(to_one_line(file), where, message) from error
    except RecursionError as error:
        raise ConfigurationError(to_one_line(file), "", "is nested too deeply") from error


def _syntax_error(text: str, content: bytes) -> tuple[str, str]:
    """The error of a file that is no TOML: ``line N``, if the parser names it, and the reason."""
    position = _POSITION.search(text)
    message = _POSITION.sub("", text)
    last_line = content.rstrip(b"\n").count(b"\n") + 1
    where = f"line {position[1] or last_line}" if position else ""
    return where, to_one_line(_QUOTED.sub("", message[:1].lower() + message[1:]))


def read_known_keys(
    model: type[Table], raw: Mapping[str, Any], *, file: str, root: Path
) -> tuple[dict[str, Any], list[ConfigurationError]]:
    """The keys of a file that ``model`` has, with references to secrets resolved, and an error for each other key.

    References to files start at ``root``.
    """
    errors: list[ConfigurationError] = []
    return _KeyCheck(to_one_line(file), root, errors).known(model, raw), errors


def validate(
    model: type[M], tables: Mapping[str, Any], *, file: str, extra: Mapping[str, Any]
) -> tuple[M | None, list[ConfigurationError]]:
    """The model of recognised tables, or the error of each value that is wrong.

    ``extra`` are fields of the model that are not keys of the file.
    """
    file = to_one_line(file)
    try:
        return model.model_validate({**tables, **extra}), []
    except ValidationError as invalid:
        return None, [_error_of(details, file, model) for details in invalid.errors(include_url=False)]


#: The table whose keys are settings of Scrapy.
_INDEPENDENT: Final = "settings"


def leave_out_broken(
    tables: Mapping[str, Any], errors: Iterable[ConfigurationError]
) -> tuple[dict[str, Any], frozenset[str]]:
    """``tables`` without the keys that errors are about, and what ``is_about`` takes.

    What is left shows the errors that only sound values show.
    """
    found: dict[str, set[str]] = {}
    for error in errors:
        table, _, key = error.key.partition("[")[0].partition(".")
        found.setdefault(table, set()).add(key.partition(".")[0])
    sound, broken = dict(tables), set()
    for table, keys in found.items():
        inside = sound.pop(table, None)
        # Else a key of the table is missing, or has a name in quotes.
        if isinstance(inside, Mapping) and keys <= inside.keys():
            sound[table] = {name: value for name, value in inside.items() if name not in keys}
        # Keys of other tables depend on each other.
        broken |= {f"{table}.{key}" for key in keys} if table == _INDEPENDENT else {table}
    return sound, frozenset(broken)


def is_about(key: str, broken: frozenset[str]) -> bool:
    """Whether a key is one that was left out, or is in a table of which one was."""
    table, _, below = key.partition("[")[0].partition(".")
    return not broken.isdisjoint({table, f"{table}.{below.partition('.')[0]}"})


def join_errors(errors: list[ConfigurationError], more: list[ConfigurationError]) -> list[ConfigurationError]:
    """Both lists as one; an error of the second is left out if the first has one for the same key."""
    said = {error.key for error in errors}
    return [*errors, *(error for error in more if error.key not in said)]


class _KeyCheck(NamedTuple):
    """Finds the keys of a file that its model has, collects errors for all others, and resolves references."""

    file: str
    root: Path
    errors: list[ConfigurationError]

    def known(
        self, model: type[Table], raw: Mapping[str, Any], above: str = "", privacy: Privacy = Privacy.PUBLIC
    ) -> dict[str, Any]:
        """The keys of ``raw`` that the model has, also in inner tables; ``privacy`` is that of the table at ``above``."""
        fields = _keys(model)
        found: dict[str, Any] = {}
        for name, value in raw.items():
            place = join_key((above, name))
            if name in model.later:
                self.errors.append(NotAvailableYet(self.file, place, "not available yet"))
            elif name in fields:
                field = model.model_fields[fields[name]]
                found[name] = self._inner(field.annotation, value, place, privacy_of(model, fields[name]))
            elif model.takes_key(name, raw):
                # A key of the user's choosing, beside those of the table.
                found[name] = self._without_references(value, place, privacy_of(model, name))
            else:
                shown = _show_unknown(name, value, fields, privacy)
                message = f"unknown key{guess(name, fields)}"
                self.errors.append(ConfigurationError(self.file, join_key((above, shown)), message))
        return found

    def _inner(self, annotation: Any, value: Any, place: str, privacy: Privacy) -> Any:
        """The value of a field. Its type decides whether a table is a reference or has entries of its own."""
        model = _table_of(annotation)
        if isinstance(value, dict) and _is_mapping(annotation):
            return {name: self._entry(model, inner, join_key((place, name)), privacy) for name, inner in value.items()}
        if model is not None and isinstance(value, list | tuple):
            return [self._entry(model, item, f"{place}[{number}]", privacy) for number, item in enumerate(value)]
        return self._entry(model, value, place, privacy)

    def _entry(self, model: type[Table] | None, value: Any, place: str, privacy: Privacy) -> Any:
        if model is not None and isinstance(value, dict):
            return self.known(model, value, place, privacy)
        return self._without_references(value, place, privacy)

    def _without_references(self, value: Any, place: str, privacy: Privacy) -> Any:
        if is_reference(value):
            public = privacy is Privacy.PUBLIC
            try:
                return resolve_reference(value, root=self.root, file=self.file, key=place, public=public)
            except ConfigurationError as error:
                self.errors.append(error)
                return None
        if isinstance(value, dict):
            return {
                name: self._without_references(inner, join_key((place, name)), privacy) for name, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._without_references(item, place, privacy) for item in value]
        return value


def _keys(model: type[Table]) -> dict[str, str]:
    """The names of fields in the model, by those in the file (``from`` can be no name in Python)."""
    return {field.alias or name: name for name, field in model.model_fields.items()}


def _show_unknown(name: str, value: Any, known: Collection[str], privacy: Privacy) -> str:
    """The name of a key that there is none of, or stars where a credential may have got into its place."""
    is_swapped = isinstance(value, str) and value in known
    if is_swapped or (privacy is not Privacy.PUBLIC and not _WORD.fullmatch(name)):
        return HIDDEN
    return show_name(name, value, Privacy.BY_NAME)


def _is_mapping(annotation: Any) -> bool:
    """Whether a field is a table whose keys are chosen by the user."""
    return any(get_origin(candidate) is Mapping for candidate in (annotation, *get_args(annotation)))


def _table_of(annotation: Any) -> type[Table] | None:
    """The model of a field that is a table, or a list or a mapping of tables."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Table):
            return candidate
    return None


def guess(name: str, names: Collection[str]) -> str:
    """``" (did you mean NAME?)"`` for the closest of ``names``, or an empty text."""
    longer = [each for each in names if each.startswith(f"{name}_")]
    # A unit that was left out makes a short name too different.
    close = longer if len(longer) == 1 else difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def join_key(at: Iterable[str | int]) -> str:
    """A key as its user writes it: ``scope.host[0].include_paths``; the first part is not quoted."""
    first, *parts = at
    text = str(first)
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = (
                part
                if _BARE_KEY.fullmatch(part) or part == HIDDEN
                else to_one_line(json.dumps(part, ensure_ascii=False))
            )
            text += f".{shown}" if text else shown
    return text


def _error_of(details: ErrorDetails, file: str, model: type[Table]) -> ConfigurationError:
    at, value = details["loc"], details["input"]
    context = details.get("ctx", {})
    # For the name of an entry, or an item of a list, the value in the message shows which one it is.
    while at and (isinstance(at[-1], int) or at[-1] == "[key]") and not context.get("key"):
        at = at[:-1]
    of_name = details["loc"][-1:] == ("[key]",)
    if of_name:
        at = at[:-1]
    if inner := context.get("key"):
        at = (*at, inner) if isinstance(inner, str) else (*at, *inner)
        value = value.get(inner) if isinstance(value, Mapping) else None
    place = _find_place(model, at, value)
    key, privacy = join_key(("", *place.parts)), place.privacy
    if of_name:
        value, privacy = _find_place(model, (*at, str(value)), None).parts[-1], Privacy.PUBLIC
    got = f" (got {quote_value(value, privacy)})"
    if details["type"] == "not_available":
        return NotAvailableYet(file, key, "not available yet" + got)
    message = _message(details["type"], context, details["msg"])
    if details["type"] == "tuple_type" and isinstance(value, Mapping) and place.of_table:
        message += f": write [[{key}]]"
    silent = details["type"] == "missing" or value is None or privacy is Privacy.SILENT
    return ConfigurationError(file, key, message + ("" if silent else got))


class _Place(NamedTuple):
    """A place in a model: its parts as messages show them, how private its value is, whether it is a key of tables."""

    parts: list[str | int]
    privacy: Privacy
    of_table: bool


def _find_place(model: type[Table], at: Iterable[str | int], value: Any) -> _Place:
    """The place of ``value``; the name of an entry that may be a credential is stars. Names of tables are none."""
    parts: list[str | int] = []
    privacy = above = Privacy.PUBLIC
    current: type[Table] | None = model
    is_named = of_table = False
    entries = frozenset[str]()
    for part in at:
        name = None if current is None or is_named else _keys(current).get(str(part))
        if name is None or current is None:
            # In the place of a table its key: the two were swapped.
            is_swapped = isinstance(part, str) and isinstance(value, str) and value in entries
            shown = show_name(part, value, above) if isinstance(part, str) else part
            parts.append(HIDDEN if is_swapped else shown)
            privacy, is_named, of_table, entries = privacy_below(privacy, str(part)), False, False, frozenset[str]()
            continue
        parts.append(part)
        privacy, annotation = privacy_of(current, name), current.model_fields[name].annotation
        current, is_named = _table_of(annotation), _is_mapping(annotation)
        of_table = current is not None
        above = Privacy.PUBLIC if of_table else privacy
        entries = frozenset(_keys(current)) if is_named and current is not None else frozenset[str]()
    return _Place(parts, privacy, of_table)


def _message(kind: str, context: Mapping[str, Any], otherwise: str) -> str:
    if kind == "refused":
        return str(context["message"])
    if kind == "greater_than_equal" and context["ge"] == 0:
        return "must not be negative"
    if kind == "literal_error":
        return f"must be {context['expected']}".replace("'", '"')
    text = _MESSAGES.get(kind)
    return text.format_map(context) if text else otherwise[:1].lower() + otherwise[1:]


def quote_value(value: Any, privacy: Privacy = Privacy.PUBLIC) -> str:
    """A value as messages show it: on one line, at most 100 characters, without secrets."""
    text = to_one_line(json.dumps(mask(value, privacy), ensure_ascii=False, default=str))
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
