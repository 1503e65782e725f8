"""From the text of a TOML file to a checked model, or to one error a line (``FILE: KEY: what is wrong (got …)``)."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from searchcrawl.exceptions import ConfigurationError, NotAvailableYet

M = TypeVar("M", bound=BaseModel)

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_POSITION: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_MAX_SHOWN: Final = 100
#: A password in a URL, and one as its parameter.
_PASSWORD: Final = re.compile(r'(://[^/?#\s:@"]*:)[^\s"]+@|(\w*password=)[^&\s"]+', re.IGNORECASE)
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


def one_line(text: str) -> str:
    """``text`` with everything escaped that would start a line or steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def read_toml(path: Path, file: str) -> dict[str, Any]:
    """The content of a TOML file; ``file`` is its name in messages.

    Raises ConfigurationError, whose key is the line, for what cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(one_line(file), "", f"cannot be read ({error.strerror})") from error
    try:
        # Some editors begin a file with a byte order mark.
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(one_line(file), f"line {line}", "is not UTF-8") from error
    except ValueError as error:
        # Also plain ones: a number of thousands of digits is none of Python.
        where, message = _syntax_error(str(error), content)
        raise ConfigurationError(one_line(file), where, message) from error
    except RecursionError as error:
        raise ConfigurationError(one_line(file), "", "is nested too deeply") from error


def _syntax_error(text: str, content: bytes) -> tuple[str, str]:
    """Where a file is no TOML, as ``line N`` where the parser says it, and why."""
    position = _POSITION.search(text)
    message = _POSITION.sub("", text)
    last_line = content.rstrip(b"\n").count(b"\n") + 1
    where = f"line {position[1] or last_line}" if position else ""
    return where, one_line(message[:1].lower() + message[1:])


def check(
    model: type[M], raw: Mapping[str, Any], *, file: str, later: Collection[str], extra: Mapping[str, Any]
) -> tuple[M | None, list[ConfigurationError]]:
    """The model of a table of a file, or every error in it.

    ``later`` are dotted keys of later releases; ``extra`` are fields of the model that are not keys
    of the file.
    """
    file = one_line(file)
    errors: list[ConfigurationError] = []
    keys = _KeyCheck(file=file, later=later, errors=errors)
    known = keys.known(model, raw, (), frozenset(extra))
    checked: M | None = None
    try:
        checked = model.model_validate({**known, **extra})
    except ValidationError as invalid:
        for details in invalid.errors(include_url=False):
            error = _error_of(details, file)
            if (error.key, error.message) not in {(e.key, e.message) for e in errors}:
                errors.append(error)
    return (None if errors else checked), errors


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeyCheck:
    """Tells the keys of a file that its model has from those that are errors."""

    file: str
    later: Collection[str]
    errors: list[ConfigurationError]

    def known(
        self, model: type[BaseModel], raw: Mapping[str, Any], above: tuple[str | int, ...], hidden: Collection[str]
    ) -> dict[str, Any]:
        """What of ``raw`` the model has, in inner tables too; ``hidden`` fields are no keys."""
        names = [key for key in _keys(model) if key not in hidden]
        found: dict[str, Any] = {}
        for name, value in raw.items():
            at = (*above, name)
            if _dotted(at, indexed=False) in self.later:
                self.errors.append(NotAvailableYet(self.file, _dotted(at), "not available yet"))
            elif name not in names:
                message = f"unknown key{_guess(name, names)}"
                self.errors.append(ConfigurationError(self.file, _dotted(at), message))
            else:
                found[name] = self._inner(_table_of(model, name), value, at)
        return found

    def _inner(self, model: type[BaseModel] | None, value: Any, at: tuple[str | int, ...]) -> Any:
        if model is not None and isinstance(value, dict):
            return self.known(model, value, at, ())
        if model is not None and isinstance(value, list | tuple):
            return [self._inner(model, item, (*at, number)) for number, item in enumerate(value)]
        return value


def _keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by their names in the file (``from`` can be no name in Python)."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _table_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model of a field that is a table or a list of tables."""
    annotation: Any = _keys(model)[name].annotation
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _guess(name: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _dotted(at: tuple[str | int, ...], *, indexed: bool = True) -> str:
    """A place in a file as its user would write it: ``scope.host[0].include_paths``."""
    text = ""
    for part in at:
        if isinstance(part, int):
            text += f"[{part}]" if indexed else ""
        else:
            shown = part if _BARE_KEY.fullmatch(part) else one_line(json.dumps(part, ensure_ascii=False))
            text += f".{shown}" if text else shown
    return text


def _error_of(details: ErrorDetails, file: str) -> ConfigurationError:
    at, value = details["loc"], details["input"]
    context = details.get("ctx", {})
    # For the name of a mapping's entry, or an item of a list, "got" says which.
    while at and (isinstance(at[-1], int) or at[-1] == "[key]"):
        at = at[:-1]
    if details["loc"][-1:] == ("[key]",):
        at = at[:-1]
    if context.get("key"):
        at = (*at, context["key"])
        value = value.get(context["key"]) if isinstance(value, Mapping) else None
    key = _dotted(at)
    is_text = details["type"] in {"string_type", "literal_error"}
    is_secret = is_text and isinstance(value, dict) and set(value) in ({"env"}, {"file"})
    if is_secret or details["type"] == "not_available":
        return NotAvailableYet(file, key, "not available yet" + f" (got {shown(value)})")
    got = "" if details["type"] == "missing" or value is None else f" (got {shown(value)})"
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


def shown(value: Any) -> str:
    """A value of a file as messages show it: as in the file, on one line, of bounded length, without passwords."""
    text = one_line(json.dumps(value, ensure_ascii=False, default=str))
    text = _PASSWORD.sub(lambda found: f"{found[1]}***@" if found[1] else f"{found[2]}***", text)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
