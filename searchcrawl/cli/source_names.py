"""What Scrapy's own commands are told of sources, of which they know nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scrapy.exceptions import UsageError

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.loading import find_project, is_source_name


def find_source_file(name: str) -> Path | None:
    """The file of a source, broken or not; None where there is none of this name."""
    try:
        path = find_project() / "sources" / f"{name}.toml"
    except ConfigurationError:
        return None
    return path if is_source_name(name) and path.is_file() else None


def refuse_sources(names: Iterable[str | None], instead: str) -> None:
    """Raises Scrapy's UsageError where one of the names is that of a source; ``instead`` has ``NAME`` for it."""
    for name in names:
        if name and find_source_file(name) is not None:
            raise UsageError(f"{name} is a source, which has no callbacks: use {instead.replace('NAME', name)}")
