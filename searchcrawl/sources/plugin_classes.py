"""Classes of a user's own, named as ``module:Class``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.values import Check, PublicText, refuse


def _check_name(text: str) -> str:
    module, colon, name = text.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        refuse('must be "module:Class"')
    return text


PluginName = Annotated[PublicText, Check(_check_name, "`module:Class`")]


def find_class(plugin: str, root: Path) -> Any:
    """What a name stands for; raises whatever the module of a user does when it is loaded.

    Modules are found as Scrapy finds those of a project: ``root`` is looked into as well.
    """
    module, _, name = plugin.partition(":")
    if str(root) not in sys.path:
        sys.path.append(str(root))
    return attrgetter(name)(importlib.import_module(module))


def import_class(plugin: str, methods: Sequence[str], *, file: str, key: str, root: Path) -> Any:
    """The class of a name, which has these methods; raises ConfigurationError with the file and key to be edited."""
    try:
        found = find_class(plugin, root)
    except Exception as error:
        # A module of a user may raise any error when it is loaded.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ConfigurationError(file, key, f'cannot be imported: {reason} (got "{plugin}")') from error
    if not isinstance(found, type):
        raise ConfigurationError(file, key, f'is no class (got "{plugin}")')
    missing = [method for method in methods if not callable(getattr(found, method, None))]
    if missing:
        raise ConfigurationError(file, key, f'has no method {", ".join(missing)} (got "{plugin}")')
    return found
