"""Classes of a user's own, named as ``module:Class``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Final

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.files import make_importable
from searchcrawl.sources.source_settings import COMPONENTS
from searchcrawl.sources.values import Check, PublicText, refuse
from searchcrawl.user_code import name_error, ordinary_errors


def _check_name(text: str) -> str:
    module, colon, name = text.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        refuse('must be "module:Class"')
    return text


PluginName = Annotated[PublicText, Check(_check_name, "`module:Class`")]


_HAS: Final = "a source has list_start_urls, find_opening, choose_links, read_fields and find_refusal for that"
#: Methods of Scrapy's spiders that would have no effect in a source, or not the one that they have with Scrapy.
_NOT_OVERRIDDEN: Final = {
    "parse": _HAS,
    "start": _HAS,
    "start_requests": _HAS,
    "update_settings": "use [settings]",
}


def find_class(plugin: str, root: Path) -> Any:
    """What a name stands for; raises whatever the module of a user does when it is loaded, as an ordinary error.

    Modules are found as Scrapy finds those of a project: ``root`` is looked into as well.
    """
    module, _, name = plugin.partition(":")
    make_importable(root)
    with ordinary_errors():
        return attrgetter(name)(importlib.import_module(module))


def import_class(
    plugin: str,
    methods: Sequence[str],
    *,
    file: str,
    key: str,
    root: Path,
    arguments: Mapping[str, Any] | None = None,
) -> Any:
    """The class of a name, which has these methods and takes ``arguments``, or none.

    Raises ConfigurationError with the file and key to be edited.
    """
    refuse_class = partial(_build_error, plugin, file, key)
    try:
        found = find_class(plugin, root)
    except Exception as error:
        # A module of a user may raise any error when it is loaded.
        reason = name_error(error).splitlines()[0]
        raise refuse_class(f"cannot be imported: {reason}") from error
    if not isinstance(found, type):
        raise refuse_class("is no class")
    missing = [method for method in methods if not callable(getattr(found, method, None))]
    if missing:
        raise refuse_class(f"has no method {', '.join(missing)}")
    if methods and (needed := _find_wrong_arguments(found, arguments or {})):
        how = "without arguments" if arguments is None else f"with {', '.join(arguments) or 'no arguments'}"
        raise refuse_class(f"must be made {how}: {needed}")
    return found


def find_error(work: Callable[[], object]) -> list[ConfigurationError]:
    """The error that some work ends with; none where it does not."""
    try:
        work()
    except ConfigurationError as error:
        return [error]
    return []


def import_converter(plugin: str, *, file: str, key: str, root: Path) -> Any:
    """The class of a converter; raises ConfigurationError as ``import_class`` does."""
    found = import_class(plugin, ["convert"], file=file, key=key, root=root)
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    if any(is_kind(found.convert) for is_kind in kinds):
        raise _build_error(plugin, file, key, "convert must be an ordinary method, without async and yield")
    return found


def _find_wrong_arguments(found: type, arguments: Mapping[str, Any]) -> str:
    """Why a class cannot be made with such arguments; empty where it can, or does not tell."""
    try:
        inspect.signature(found).bind(**arguments)
    except TypeError as error:
        return str(error)
    except ValueError:
        # A class of an extension module has no signature.
        return ""
    return ""


def import_spider(plugin: str, *, base: str, file: str, key: str, root: Path) -> Any:
    """The class of a ``spider``; raises ConfigurationError for one that no source can have.

    ``base`` is ``module.Class`` of which it must be a subclass; that is not imported here, because it loads Scrapy.
    """
    refuse_class = partial(_build_error, plugin, file, key)
    found = import_class(plugin, (), file=file, key=key, root=root)
    if base not in {_name(each) for each in found.__mro__[1:]}:
        raise refuse_class(f"is no subclass of {base}")
    if getattr(found, "custom_settings", None):
        raise refuse_class("must have no custom_settings: use [settings]")
    for each in found.__mro__:
        if _name(each) == base:
            return found
        for name in vars(each).keys() & _NOT_OVERRIDDEN.keys():
            raise refuse_class(f"must not override {name}: {_NOT_OVERRIDDEN[name]}")
    return found


def _build_error(plugin: str, file: str, key: str, message: str) -> ConfigurationError:
    return ConfigurationError(file, key, f'{message} (got "{plugin}")')


def _name(found: type) -> str:
    return f"{found.__module__}.{found.__qualname__}"


def find_component_errors(settings: Mapping[str, Any], *, root: Path) -> Iterator[tuple[str, str]]:
    """The setting and the reason of each component of a source's settings that cannot be loaded."""
    for name in COMPONENTS:
        for path, place in (settings.get(name) or {}).items():
            module, dot, attribute = path.rpartition(".")
            if place is None:
                continue
            try:
                if not dot:
                    raise ValueError("must be module.Class")
                find_class(f"{module}:{attribute}", root)
            except Exception as error:  # noqa: BLE001 - a module of a user may raise any error when it is loaded
                reason = name_error(error).splitlines()[0]
                yield name, f'cannot be imported: {reason} (got "{path}")'
