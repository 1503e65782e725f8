"""Regular expressions mean the same to each Python that may run them.

Before 3.11.5 a possessive group goes on from where its last try failed, not from where that began
(https://github.com/python/cpython/issues/106052); an atomic group within it goes back.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]  # nothing public shows what an expression consists of
from typing import Any, Final

import pytest

#: Prints the expressions that our modules compile when they are loaded, with their flags.
_LIST: Final = """
import importlib, json, pkgutil, re, sys
found, compile_one = [], re.compile

def note(pattern, flags=0):
    if sys._getframe(1).f_globals.get("__name__", "").startswith("searchcrawl."):
        found.append((pattern if isinstance(pattern, str) else pattern.decode("latin-1"), int(flags)))
    return compile_one(pattern, flags)

re.compile = note
import searchcrawl
for module in pkgutil.walk_packages(searchcrawl.__path__, "searchcrawl."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps(found))
"""
_LEAST: Final = 200
_SAFE: Final = {"ATOMIC_GROUP", "LITERAL", "NOT_LITERAL", "IN", "ANY"}


def list_possessive(items: Any) -> Iterator[Any]:
    """What is repeated possessively in a parsed expression."""
    for kind, arguments in items:
        if kind is _constants.POSSESSIVE_REPEAT:
            yield arguments[2]
        for each in arguments if isinstance(arguments, tuple) else (arguments,):
            for inner in each if isinstance(each, list) else (each,):
                if isinstance(inner, _parser.SubPattern):
                    yield from list_possessive(inner)


def is_safe(pattern: str, flags: int = 0) -> bool:
    """Whether each possessive repetition is that of one character, or of an atomic group."""
    return all(
        len(repeated) == 1 and str(repeated[0][0]) in _SAFE
        for repeated in list_possessive(_parser.parse(pattern, flags))
    )


@pytest.mark.parametrize(
    ("pattern", "safe"),
    [
        ("(?:ab?c)*+", False),
        ("((?:ab?c)?+)", False),
        ("x|(?=(ab?c)++)", False),
        ("(?>ab?c)*+", True),
        ("[ab]*+a++", True),
    ],
)
def test_possessive_groups_when_in_any_place_then_are_found(pattern: str, safe: bool) -> None:
    assert is_safe(pattern) is safe


def test_patterns_when_they_repeat_a_group_possessively_then_it_is_atomic() -> None:
    done = subprocess.run([sys.executable, "-c", _LIST], capture_output=True, check=True, timeout=120)
    patterns = json.loads(done.stdout)

    assert len(patterns) > _LEAST
    assert [pattern for pattern, flags in patterns if not is_safe(pattern, flags)] == []
