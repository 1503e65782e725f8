"""What a source comes to, key by key, and where each value was written (A2, A3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from searchcrawl.sources.checking import dotted
from searchcrawl.sources.config import Source, SourceFile
from searchcrawl.sources.layering import referenced
from searchcrawl.sources.project import Project
from searchcrawl.sources.refused_settings import is_credential
from searchcrawl.sources.secrets import HIDDEN, masked

BUILT_IN: Final = "built-in"

#: Request headers whose values open doors.
_CREDENTIAL_HEADER: Final = re.compile(r"authorization|cookie|token|secret|passw|key|session", re.IGNORECASE)


def effective_values(project: Project, source: Source) -> dict[str, dict[str, Any]]:
    """``{key: {"value", "origin"}}`` of every key that a source file may have, with dotted keys as in the file.

    The origin is the file, or the file and its table in brackets, or ``built-in``. Values that came
    from the environment or a file are shown as their references, other credentials as stars.
    """
    dumped = source.model_dump(mode="json", by_alias=True, include=set(SourceFile.model_fields))
    if dumped["robots"]["user_agent"] is None:
        dumped["robots"]["user_agent"] = project.user_agent
    found: dict[str, dict[str, Any]] = {}
    for name in ("type", "title", "parameters"):
        found[name] = _entry(source, name, dumped.pop(name))
    for name, value in dumped.items():
        for key, inner in _keys_of(name, value):
            found[dotted((name, key)) if key else name] = _entry(source, f"{name}.{key}" if key else name, inner)
    return found


def _keys_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The keys of a table; a list of tables is one key."""
    if isinstance(value, Mapping):
        yield from value.items()
    else:
        yield "", value


def _entry(source: Source, key: str, value: Any) -> dict[str, Any]:
    origin = source.origins.get(key)
    shown = masked(referenced(value, key, source.references))
    if key == "fetch.headers":
        shown = {name: _hidden(text) if _CREDENTIAL_HEADER.search(name) else text for name, text in shown.items()}
    if key == "login.fields":
        shown = {name: _hidden(text) for name, text in shown.items()}
    if key == "login.password":
        shown = _hidden(shown)
    if key.startswith("settings.") and is_credential(key.removeprefix("settings.")):
        shown = _hidden(shown)
    return {"value": shown, "origin": BUILT_IN if origin is None else str(origin)}


def _hidden(value: Any) -> Any:
    """Stars for a plain text; a reference says nothing that is secret."""
    return HIDDEN if isinstance(value, str) else value
