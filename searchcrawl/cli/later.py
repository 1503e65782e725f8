"""What the command line will have in a later release: refused as "not available yet", never as unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

COMMANDS: Final = frozenset({
    "index", "optimize", "serve",
})  # fmt: skip
#: First arguments, by command.
ACTIONS: Final[Mapping[str, frozenset[str]]] = {
    "cache": frozenset({"list", "show", "check", "repair", "compact", "export", "import", "migrate"}),
    "sources": frozenset({"rename", "export", "import", "apply", "rollback"}),
}


def find(command: str, args: Sequence[str]) -> str | None:
    """What of a command's ``args`` (those that it does not know, and no options) a later release brings."""
    return next((arg for arg in args[:1] if arg in ACTIONS.get(command, ())), None)
