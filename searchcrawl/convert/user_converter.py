"""Converters of a user's own: a class named in searchcrawl.toml, which runs in a worker process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from searchcrawl.codes import Code
from searchcrawl.convert.converter import MAX_FILE_MEMORY_BYTES, Converter, build_page, run_in_process
from searchcrawl.exceptions import ConfigurationError, ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import Page
from searchcrawl.plugins import Converted, DocumentConverter
from searchcrawl.sources.checking import join_key
from searchcrawl.sources.plugin_classes import find_class
from searchcrawl.sources.project import FILE, Project
from searchcrawl.user_code import ordinary_errors
from searchcrawl.worker_pool import WorkerPool
from searchcrawl.worker_process import format_error

#: The objects of this process, by name; in the process of a crawl there are none.
_made: Final[dict[str, DocumentConverter]] = {}
_TEXTS: Final = ("text", "title", "author", "subject", "description", "language")


@dataclass(frozen=True, slots=True)
class UserConversion:
    """Calls the class ``plugin`` (``module:Class``) of the project in the folder ``root``; it can be pickled."""

    plugin: str
    root: str

    def __call__(self, body: bytes, context: ConversionContext) -> Page:
        """The page of a body; whatever the class raises becomes ConversionFailed (903) with its name."""
        try:
            with ordinary_errors():
                converted = self._make().convert(body, url=context.url, mimetype=context.mimetype)
                texts, values = _read_texts(converted)
        except MemoryError:
            raise
        except Exception as error:
            message = f"{self.plugin}: {format_error(error)}"
            raise ConversionFailed(message, code=Code.CONVERSION_FAILED) from error
        return build_page(context, **texts, values=values)

    def try_make(self) -> None:
        """Makes the object of this process; raises whatever the class does."""
        with ordinary_errors():
            self._make()

    def _make(self) -> DocumentConverter:
        """The object of this process."""
        converter = _made.get(self.plugin)
        if converter is None:
            converter = _made[self.plugin] = find_class(self.plugin, Path(self.root))()
        return converter


def page_of_plugin(converted: Any, plugin: str, context: ConversionContext) -> Page:
    """The page of what a class answered; raises TypeError for anything but a ``Converted`` of strings."""
    try:
        texts, values = _read_texts(converted)
    except TypeError as error:
        raise TypeError(f"{plugin}: {error}") from error
    return build_page(context, **texts, values=values)


def _read_texts(converted: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields of what a class answered, and its further values; TypeError for anything but strings."""
    if not isinstance(converted, Converted):
        raise TypeError(f"must return a Converted (got {type(converted).__name__})")
    if not isinstance(converted.values, Mapping):
        raise TypeError(f"values must be a mapping (got {type(converted.values).__name__})")
    texts, values = {name: getattr(converted, name) for name in _TEXTS}, dict(converted.values)
    for name, text in (*texts.items(), *((f"values[{name!r}]", text) for name, text in values.items())):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string (got {type(text).__name__})")
    for name in values:
        if not isinstance(name, str):
            raise TypeError(f"a name in values must be a string (got {name!r})")
    return texts, values


def list_user_converters(project: Project) -> Iterator[Converter]:
    """The converters that searchcrawl.toml names."""
    for mimetype, plugin in project.converters.items():
        yield Converter(
            name=plugin,
            mime_types=(mimetype,),
            convert=UserConversion(plugin, str(project.root)),
            choose_place=run_in_process,
            is_text=mimetype.startswith("text/"),
            max_memory_bytes=MAX_FILE_MEMORY_BYTES,
        )


def find_converter_errors(project: Project) -> list[ConfigurationError]:
    """The converters that searchcrawl.toml names and that cannot be made, which is tried where they are to run.

    Raises WorkersUnavailable.
    """
    if not project.converters:
        return []
    errors: list[ConfigurationError] = []
    with closing(WorkerPool(max_memory_bytes=MAX_FILE_MEMORY_BYTES)) as pool:
        for mimetype, plugin in project.converters.items():
            try:
                pool.submit(UserConversion(plugin, str(project.root)).try_make).result()
            except ConversionFailed as error:
                key = join_key(("converters", mimetype))
                errors.append(ConfigurationError(FILE, key, f'cannot be made: {error} (got "{plugin}")'))
    return errors


def refuse_wrong_converters(project: Project) -> None:
    """Raises ConfigurationError for the first of them."""
    for error in find_converter_errors(project):
        raise error
