"""What Scrapy's own commands are told of sources, of which they know nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scrapy.exceptions import UsageError

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.loading import find_project, is_source_name
from searchcrawl.sources.project import SOURCES_DIR
from searchcrawl.sources.source_files import has_source_file


def find_source_file(name: str) -> Path | None:
    """The file of a source, broken or not; None where there is none of this name."""
    try:
        root = find_project()
        there = is_source_name(name) and has_source_file(root, name)
    except ConfigurationError:
        return None
    return root / SOURCES_DIR / f"{name}.toml" if there else None


def refuse_sources(names: Iterable[str | None], instead: str) -> None:
    """Raises Scrapy's UsageError where one of the names is that of a source; ``instead`` has ``NAME`` for it."""
    for name in names:
        if name and find_source_file(name) is not None:
            raise UsageError(f"{name} is a source, which has no callbacks: use {instead.replace('NAME', name)}")
