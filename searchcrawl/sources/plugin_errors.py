"""Which classes of users that a source names cannot be had (K4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.config import Source
from searchcrawl.sources.plugin_classes import find_component_errors, import_class, import_spider
from searchcrawl.sources.project import Project


def find_plugin_errors(project: Project, source: Source) -> list[ConfigurationError]:
    """The errors of classes of users that are to see documents, or that are components of Scrapy (K4)."""
    found = [
        ConfigurationError(*source.locate(f"settings.{name}"), message)
        for name, message in find_component_errors(source.settings, root=project.root)
    ]
    imports: tuple[tuple[str, str | None, Callable[..., object]], ...] = (
        ("spider", source.spider, partial(import_spider, base=source.kind.spider)),
        ("document_service", source.document_service, partial(import_class, methods=["process"])),
    )
    for name, plugin, load in imports:
        file, key = source.locate(name)
        try:
            if plugin is not None:
                load(plugin, file=file, key=key, root=project.root)
        except ConfigurationError as error:
            found.append(error)
    return found
