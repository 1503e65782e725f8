"""The commands, one module each, named like the command. `searchcrawl --help` shows the first line of each module."""

from __future__ import annotations

import pkgutil
from importlib import import_module


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
