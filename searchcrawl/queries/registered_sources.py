"""Sources that have no file here, or none that can be read, by what their crawls registered in the store (A7)."""

from __future__ import annotations

import logging
from collections.abc import Collection

from searchcrawl.exceptions import ConfigurationError, StoreError, UnknownSource
from searchcrawl.sources.loading import list_source_names
from searchcrawl.sources.project import Project
from searchcrawl.sources.registered import Registered, load_registered
from searchcrawl.store.opening import use_store
from searchcrawl.store.runs import run_table

logger = logging.getLogger(__name__)


def read_registered(project: Project, *, without: Collection[str]) -> dict[str, Registered]:
    """What is registered of all sources but those ``without``, by name; nothing where the store is away."""
    try:
        with use_store(project) as database:
            found = database.read(run_table.find_registered)
    except (StoreError, ConfigurationError) as error:
        logger.debug("what is registered of sources cannot be read: %s", error)
        return {}
    return {name: load_registered(text) for name, text in sorted(found.items()) if name not in without}


def require_source(project: Project, name: str) -> str:
    """``name``, if a source of this name has a file, or was crawled; raises UnknownSource."""
    if name not in list_source_names(project) and name not in read_registered(project, without=()):
        raise UnknownSource(f"unknown source: {name}")
    return name
