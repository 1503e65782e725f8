"""Keys of a source file that a command line sets for one run: ``--set fetch.delay_seconds=5``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from typing import Any, Final

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.terminal import to_one_line

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
