"""Reads TOML files and checks them against models; each error is one line: ``FILE: KEY: what is wrong (got …)``."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from searchcrawl.exceptions import ConfigurationError, NotAvailableYet
from searchcrawl.sources.secrets import is_reference, remove_secrets, resolve_reference
from searchcrawl.terminal import to_one_line

M = TypeVar("M", bound=BaseModel)

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_POSITION: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_MAX_SHOWN: Final = 100
#: The values of these keys are credentials: messages never show them, not even wrong ones.
_UNSHOWN: Final = re.compile(r"(.*\.)?login\.(password|fields)(\..*)?")
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
    return where, to_one_line(message[:1].lower() + message[1:])


def read_known_keys(
    model: type[BaseModel],
    raw: Mapping[str, Any],
    *,
    file: str,
    root: Path,
    later: Collection[str],
    hidden: Collection[str] = (),
) -> tuple[dict[str, Any], list[ConfigurationError]]:
    """The keys of a file that ``model`` has, with references to secrets resolved, and an error for each other key.

    ``later`` are dotted keys of later releases (``*`` for any name); ``hidden`` fields of the model
    are no keys of the file. References to files start at ``root``.
    """
    errors: list[ConfigurationError] = []
    keys = _KeyCheck(file=to_one_line(file), root=root, later=later, errors=errors)
    return keys.known(model, raw, _TOP, hidden), errors


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
        return None, [_error_of(details, file) for details in invalid.errors(include_url=False)]


def join_errors(errors: list[ConfigurationError], more: list[ConfigurationError]) -> list[ConfigurationError]:
    """Both lists as one; an error of the second is left out if the first has one for the same key."""
    said = {error.key for error in errors}
    return [*errors, *(error for error in more if error.key not in said)]


class _Place(NamedTuple):
    """A place in a file: ``key`` as its user writes it; ``pattern`` as LATER_KEYS has it, with ``*`` for names."""

    key: str
    pattern: str

    def at(self, name: str, *, any_name: bool = False) -> _Place:
        """The entry ``name`` of the table here."""
        return _Place(join_key((self.key, name)), f"{self.pattern}.{'*' if any_name else name}".lstrip("."))

    def item(self, number: int) -> _Place:
        return _Place(f"{self.key}[{number}]", self.pattern)


_TOP: Final = _Place("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeyCheck:
    """Finds the keys of a file that its model has, collects errors for all others, and resolves references."""

    file: str
    root: Path
    later: Collection[str]
    errors: list[ConfigurationError]

    def known(
        self, model: type[BaseModel], raw: Mapping[str, Any], above: _Place, hidden: Collection[str] = ()
    ) -> dict[str, Any]:
        """The keys of ``raw`` that the model has, also in inner tables; ``hidden`` fields of the model are not keys."""
        fields = {key: field for key, field in _keys(model).items() if key not in hidden}
        found: dict[str, Any] = {}
        for name, value in raw.items():
            place = above.at(name)
            if place.pattern in self.later:
                self.errors.append(NotAvailableYet(self.file, place.key, "not available yet"))
            elif name in fields:
                found[name] = self._inner(fields[name].annotation, value, place)
            elif ":" in name and model.model_config.get("extra") == "allow":
                # A key of the user's choosing, beside those of the table.
                found[name] = self._without_references(value, place)
            else:
                message = f"unknown key{guess(name, fields)}"
                self.errors.append(ConfigurationError(self.file, place.key, message))
        return found

    def _inner(self, annotation: Any, value: Any, place: _Place) -> Any:
        """The value of a field. Its type decides whether a table is a reference or has entries of its own."""
        model = _table_of(annotation)
        if isinstance(value, dict) and _is_mapping(annotation):
            return {name: self._entry(model, inner, place.at(name, any_name=True)) for name, inner in value.items()}
        if model is not None and isinstance(value, list | tuple):
            return [self._entry(model, item, place.item(number)) for number, item in enumerate(value)]
        return self._entry(model, value, place)

    def _entry(self, model: type[BaseModel] | None, value: Any, place: _Place) -> Any:
        if model is not None and isinstance(value, dict):
            return self.known(model, value, place)
        return self._without_references(value, place)

    def _without_references(self, value: Any, place: _Place) -> Any:
        if is_reference(value):
            try:
                return resolve_reference(value, root=self.root, file=self.file, key=place.key)
            except ConfigurationError as error:
                self.errors.append(error)
                return None
        if isinstance(value, dict):
            return {name: self._without_references(inner, place.at(name)) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._without_references(item, place) for item in value]
        return value


def _keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by their names in the file (``from`` can be no name in Python)."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _is_mapping(annotation: Any) -> bool:
    """Whether a field is a table whose keys are chosen by the user."""
    return any(get_origin(candidate) is Mapping for candidate in (annotation, *get_args(annotation)))


def _table_of(annotation: Any) -> type[BaseModel] | None:
    """The model of a field that is a table, or a list or a mapping of tables."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def guess(name: str, names: Collection[str]) -> str:
    """``" (did you mean NAME?)"`` for the closest of ``names``, or an empty text."""
    close = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def join_key(at: Iterable[str | int]) -> str:
    """A key as its user writes it: ``scope.host[0].include_paths``; the first part is not quoted."""
    first, *parts = at
    text = str(first)
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if _BARE_KEY.fullmatch(part) else to_one_line(json.dumps(part, ensure_ascii=False))
            text += f".{shown}" if text else shown
    return text


def _error_of(details: ErrorDetails, file: str) -> ConfigurationError:
    at, value = details["loc"], details["input"]
    context = details.get("ctx", {})
    # For the name of an entry, or an item of a list, the value in the message shows which one it is.
    while at and (isinstance(at[-1], int) or at[-1] == "[key]") and not context.get("key"):
        at = at[:-1]
    if details["loc"][-1:] == ("[key]",):
        at = at[:-1]
    if context.get("key"):
        at = (*at, context["key"])
        value = value.get(context["key"]) if isinstance(value, Mapping) else None
    key = join_key(("", *at))
    if details["type"] == "not_available":
        return NotAvailableYet(file, key, "not available yet" + f" (got {quote_value(value)})")
    silent = details["type"] == "missing" or value is None or _UNSHOWN.fullmatch(key)
    got = "" if silent else f" (got {quote_value(value)})"
    return ConfigurationError(file, key, _message(details["type"], context, details["msg"]) + got)


def _message(kind: str, context: Mapping[str, Any], otherwise: str) -> str:
    if kind == "refused":
        return str(context["message"])
    if kind == "greater_than_equal" and context["ge"] == 0:
        return "must not be negative"
    if kind == "literal_error":
        return f"must be {context['expected']}".replace("'", '"')
    text = _MESSAGES.get(kind)
    return text.format_map(context) if text else otherwise[:1].lower() + otherwise[1:]


def quote_value(value: Any) -> str:
    """A value as messages show it: on one line, at most 100 characters, without secrets."""
    text = to_one_line(json.dumps(remove_secrets(value), ensure_ascii=False, default=str))
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
