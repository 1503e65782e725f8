"""Makes a spider of each source file, beside the spiders that users write in Python: one that is broken costs its own alone."""

from __future__ import annotations

import builtins
import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from scrapy import Spider
from scrapy.settings import BaseSettings
from scrapy.spiderloader import SpiderLoader
from scrapy.utils.misc import load_object

from searchcrawl.exceptions import ConfigurationError, InvalidFile, UnknownSource
from searchcrawl.sources.config import Source
from searchcrawl.sources.files import SPIDERS_DIR, has_spiders_folder, make_importable
from searchcrawl.sources.loading import (
    find_project,
    has_project_file,
    list_source_names,
    load_project,
    load_source,
    load_sources,
)
from searchcrawl.sources.plugin_classes import import_spider
from searchcrawl.sources.project import Project
from searchcrawl.sources.stored_modes import apply_umask
from searchcrawl.user_code import name_error, ordinary_errors


class SourceSpiderLoader(SpiderLoader):
    """The SPIDER_LOADER_CLASS of every project.

    Files are read when a method needs them, and only then their errors are raised or kept, so that Scrapy can always
    make a loader. A source and a Python spider with the same name are both refused. Python spiders need no
    searchcrawl.toml; where SPIDER_MODULES names none they are those of the folder ``spiders``. A module of theirs that
    cannot be loaded is refused where somebody asks for a name that nothing else has.
    """

    def __init__(self, settings: BaseSettings) -> None:
        #: An error for each module of Python spiders that cannot be loaded.
        self.spider_errors: builtins.list[ConfigurationError] = []
        super().__init__(settings)
        if not self.spider_modules and _has_own_folder():
            self.spider_modules = [SPIDERS_DIR]
            self._load_all_spiders()
        self._classes: dict[str, type[Spider]] = {}
        self._names: tuple[str, ...] | None = None
        self._errors: tuple[ConfigurationError, ...] = ()
        self._project: Project | None = None
        #: The error of searchcrawl.toml, with which no source can be loaded.
        self.project_error: ConfigurationError | None = None
        try:
            self._project = load_project(find_project())
        except ConfigurationError as error:
            self.project_error = error
            self._errors = error.errors

    @property
    def errors(self) -> tuple[ConfigurationError, ...]:
        """Every error of searchcrawl.toml, or of the source files; then those of Python spiders."""
        self._load_names()
        return (*self._errors, *self.spider_errors)

    @property
    def name_clashes(self) -> builtins.list[ConfigurationError]:
        """An error for each name that both a source and a Python spider have."""
        return [error for _, error in self._find_clashes()]

    def list(self) -> builtins.list[str]:
        """The names of all good sources and of the Python spiders; ``errors`` has what is broken."""
        clashing = {name for name, _ in self._find_clashes()}
        in_python = [name for name in super().list() if not _is_of_source(self._spiders[name])]
        return [name for name in dict.fromkeys((*self._load_names(), *in_python)) if name not in clashing]

    def load(self, spider_name: str, overrides: Mapping[str, Any] | None = None) -> type[Spider]:
        """The spider class of a source, with class attributes ``name``, ``source`` and ``project``.

        ``overrides`` are tables that go before all files, for the first call with this name.
        Raises ConfigurationError for a broken source, for a name that a Python spider has as well, in a broken
        project for any name that no Python spider has, and for one that a broken module may have; KeyError for a name
        that is neither a source nor a Python spider.
        """
        if spider_name not in self._classes:
            for name, error in self._find_clashes():
                if name == spider_name:
                    raise error
            if spider_name in self._spiders:
                spider: Any = super().load(spider_name)
                if _is_of_source(spider):
                    spider.require_source()
                return spider  # type: ignore[no-any-return]
            if self._project is None:
                if self.spider_errors and not has_project_file():
                    raise InvalidFile(self.spider_errors)
                raise self.project_error or KeyError(spider_name)
            try:
                source = load_source(self._project, spider_name, overrides=overrides)
            except UnknownSource:
                if self.spider_errors:
                    raise InvalidFile(self.spider_errors) from None
                raise KeyError(f"Spider not found: {spider_name}") from None
            # Files of Python spiders get the mode that Scrapy gives them.
            apply_umask(self._project)
            self._classes[spider_name] = build_spider_class(self._project, source)
        return self._classes[spider_name]

    def _load_all_spiders(self) -> None:
        for name in self.spider_modules:
            for found in import_all(name):
                if isinstance(found, ConfigurationError):
                    self.spider_errors.append(found)
                else:
                    self._load_spiders(found)
        self._check_name_duplicates()

    def _load_names(self) -> tuple[str, ...]:
        if self._names is None:
            sources: dict[str, Source] = {}
            if self._project is not None:
                sources, errors = load_sources(self._project)
                self._errors = (*errors, *self.name_clashes)
            self._names = tuple(sources)
        return self._names

    def _find_clashes(self) -> builtins.list[tuple[str, ConfigurationError]]:
        """Each name that both a source and a Python spider have, and what is said of it."""
        if self._project is None or not self._spiders:
            return []
        return [
            (name, ConfigurationError(f"sources/{name}.toml", "name", f"a spider in Python has it too: {place}"))
            for name in list_source_names(self._project)
            if name in self._spiders
            for place in [f"{self._spiders[name].__module__}.{self._spiders[name].__qualname__}"]
        ]


def _has_own_folder() -> bool:
    """Whether there is a project with a folder of spiders, which can be imported then."""
    try:
        root = find_project()
    except ConfigurationError:
        return False
    if has_spiders_folder(root):
        make_importable(root)
        return True
    return False


def _is_of_source(spider: type[Spider]) -> bool:
    """Whether a class of a user is one that a source names as its ``spider``."""
    # Not imported here: without it there is no subclass of it.
    loaded = sys.modules.get("searchcrawl.spiders.base_spider")
    return loaded is not None and issubclass(spider, loaded.SourceSpider)


def build_spider_class(
    project: Project, source: Source, beside: type[Spider] | None = None, **values: Any
) -> type[Any]:
    """The class of the spider of a source, with ``name``, ``source``, ``project`` and ``values``; that of ``beside`` goes before.

    Raises ConfigurationError.
    """
    own = find_spider_class(project, source)
    bases = (own,) if beside is None else (beside, own)
    first = bases[0]
    attributes = {"name": source.name, "source": source, "project": project, "__module__": first.__module__}
    return type(f"{first.__name__}_{source.name.replace('-', '_')}", bases, attributes | values)


def find_spider_class(project: Project, source: Source) -> type[Spider]:
    """The ``spider`` of a source, or that of its kind.

    Raises ConfigurationError.
    """
    if source.spider is not None:
        file, key = source.locate("spider")
        own: type[Spider] = import_spider(source.spider, base=source.kind.spider, file=file, key=key, root=project.root)
        return own
    # Imported with the first source of the kind, so that ``list`` stays quick.
    found: type[Spider] = load_object(source.kind.spider)
    return found


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
