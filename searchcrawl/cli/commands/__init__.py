"""The commands, one module each, named like the command. `searchcrawl --help` shows the first line of each module."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

#: What a later release brings: refused as "not available yet", never as unknown.
LATER: Final = frozenset({"index", "optimize", "serve"})
#: The same of first arguments, by command.
LATER_ACTIONS: Final[Mapping[str, frozenset[str]]] = {
    "cache": frozenset({"list", "show", "check", "repair", "compact", "export", "import", "migrate"}),
    "sources": frozenset({"rename", "export", "import", "apply", "rollback"}),
}


def list_names() -> list[str]:
    """The names of all commands, in alphabetical order; imports none of them."""
    return [module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg]


def describe(name: str) -> str:
    """What a command does, in one line; does not import it where its source is there."""
    try:
        source = pkgutil.get_data(__name__, f"{name}.py") or b""
    except OSError:  # Installed without sources.
        source = (import_module(f"{__name__}.{name}").__doc__ or "").encode()
    return source.partition(b"\n")[0].decode().strip('".')


def find_later(command: str, args: Sequence[str]) -> str | None:
    """What of a command's ``args`` (those that it does not know, and no options) a later release brings."""
    return next((arg for arg in args[:1] if arg in LATER_ACTIONS.get(command, ())), None)
