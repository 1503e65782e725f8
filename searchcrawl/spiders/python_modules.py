"""Imports the modules in which a project has spiders in Python, each by itself: one that is broken costs its own alone."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.own_code import name_error, ordinary_errors


def import_all(name: str) -> Iterator[ModuleType | ConfigurationError]:
    """The module of this name and all below it; an error in the place of one that cannot be loaded."""
    try:
        # It may raise anything.
        with ordinary_errors():
            module = importlib.import_module(name)
    except Exception as error:  # noqa: BLE001  # see above
        yield ConfigurationError("settings module", "SPIDER_MODULES", describe_broken(name, error))
        return
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield from import_all(f"{name}.{found.name}")


def describe_broken(what: str, error: Exception) -> str:
    """What is said of something of a user's that is imported, and raised."""
    return f"{what} cannot be loaded: {name_error(error).splitlines()[0]}"
