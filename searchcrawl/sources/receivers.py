"""Who gets the documents of a source besides the index, where that writes, and what is wrong with it (K4, L14)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.rules.forgotten import FILE as FORGOTTEN
from searchcrawl.sources.checking import guess, join_key, quote_value
from searchcrawl.sources.config import Origin, Source
from searchcrawl.sources.plugin_classes import find_error, import_class
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.receivers_table import PARQUET, FeedFile, list_files

#: What a class of a user's own must have (index.receiver.Receiver).
METHODS = ("begin", "deliver", "end")


def find_receiver_errors(project: Project) -> Iterator[ConfigurationError]:
    """The receivers whose class cannot be had, and those that would write where another one does."""
    places = {_find_place(project): "index"}
    for name, table in project.receivers.items():
        above = ("receivers", name)
        if table.class_ is not None:
            key = join_key((*above, "class"))
            load = partial(import_class, table.class_, METHODS, file=FILE, key=key, root=project.root)
            yield from find_error(partial(load, arguments=table.arguments))
            continue
        if table.type == "files":
            continue
        place = _find_place(project.of_receiver(name))
        if place in places:
            key = join_key((*above, "path" if table.type == "local" else "url"))
            yield ConfigurationError(FILE, key, f"{places[place]} has the same: each needs one of its own")
        places.setdefault(place, f"receivers.{name}")


def find_unknown_receivers(project: Project, source: Source) -> Iterator[ConfigurationError]:
    """The names in ``receivers`` of a source that searchcrawl.toml does not have."""
    for name in source.receivers or ():
        if name not in project.receivers:
            message = f"no such receiver in {FILE}{guess(name, project.receivers)} (got {quote_value(name)})"
            yield source.build_error("receivers", message)


def list_receivers(project: Project, source: Source) -> tuple[str, ...]:
    """The receivers of a source besides the index that are called, in the order of searchcrawl.toml: all but those that are files."""
    return tuple(name for name in list_names(project, source) if project.receivers[name].type != "files")


def list_names(project: Project, source: Source) -> tuple[str, ...]:
    """All receivers of a source, in the order of searchcrawl.toml."""
    return tuple(name for name in project.receivers if source.receivers is None or name in source.receivers)


def _find_place(project: Project) -> str:
    return str(project.index.url) if project.index.type == "solr" else str(project.index_dir.resolve())


_LIBRARY: Final = "pyarrow"
NEEDS_LIBRARY: Final = f"parquet needs {_LIBRARY}: pip install 'searchcrawl[parquet]'"
#: Stands for all moments and numbers, to compare the names of feeds.
_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)
_HINT: Final = ": %(name)s in it is the name of the source"


def has_library() -> bool:
    """Whether files of the format ``parquet`` can be written."""
    return find_spec(_LIBRARY) is not None


def find_target(path: Path) -> Path:
    """The absolute path of what is written at ``path``: where a link leads to."""
    # Path.resolve raises in a circle of links.
    real = Path(os.path.realpath(path))
    # What /dev/stdout leads to has no name where it is a pipe.
    return path.absolute() if path.exists() and not os.path.lexists(real) else real


def find_no_place(path: Path) -> str | None:
    """Why there can be no file at an absolute path; None if there can be."""
    if path.is_dir():
        return "is a folder"
    # It would be replaced, as any file is.
    if os.path.lexists(path) and not path.is_file():
        return "is no file, but a device, a pipe, a socket or a circle of links"
    return None if path.parent.is_dir() else "there is no such folder"


def list_feeds(project: Project, source: Source) -> Iterator[FeedFile]:
    """All files of documents that runs of a source write: those of ``[feeds]``, then its receivers that are files."""
    yield from list_files(source.feeds)
    for name in list_names(project, source):
        if (feed := project.receivers[name].build_feed(name)) is not None:
            yield feed


def find_feed_errors(project: Project, source: Source) -> Iterator[ConfigurationError]:
    """The feeds of a source that no run could write, or that would overwrite something."""
    seen: dict[Path, str] = {}
    for feed in list_feeds(project, source):
        path = find_path(project, source, feed)
        message = find_own_place(project, path) or find_no_place(path)
        if not project.cache.preserve:
            message = "cache.preserve must be true: documents are read from the cache"
        elif feed.format == PARQUET and not has_library():
            message = NEEDS_LIBRARY
        elif path in seen:
            message = f"is the file of {seen[path]}, too"
        seen.setdefault(path, feed.name)
        if message is not None:
            yield _build_error(source, feed, message)


def find_own_place(project: Project, path: Path) -> str | None:
    """Why a file of documents at a path of ``find_target`` would overwrite what the project needs; None where it would not."""
    own = [find_target(each) for each in (*project.stored_paths, project.sources_dir)]
    own += [find_target(project.path(name)) for name in (FILE, FORGOTTEN, "scrapy.cfg")]
    if any(path == each or each in path.parents for each in own):
        return "is a place where the crawler keeps its own files"
    return None


def find_shared_files(project: Project, sources: Iterable[Source]) -> list[tuple[str, ConfigurationError]]:
    """An error for each feed whose file is that of a feed of another source, with the name of the source."""
    uses: dict[Path, list[tuple[Source, FeedFile]]] = {}
    for source in sources:
        for feed in list_feeds(project, source):
            uses.setdefault(find_path(project, source, feed), []).append((source, feed))
    return [
        (source.name, _build_error(source, feed, f"is the file of a feed of {other.path}, too{_HINT}"))
        for several in uses.values()
        for source, feed in several
        for other in [next((each for each, _ in several if each.name != source.name), None)]
        if other is not None
    ]


def find_path(project: Project, source: Source, feed: FeedFile) -> Path:
    """The absolute path of a feed; one name for all deltas."""
    return find_target(project.path(feed.render(source.name, _MOMENT, 0)))


def find_origin(source: Source, feed: FeedFile) -> tuple[str, str]:
    """The file in which a feed was written, and its key there."""
    if feed.name not in source.feeds:
        return FILE, join_key(("receivers", feed.receiver, "path"))
    origin = source.origins.get(f"feeds.{feed.name}") or Origin(source.path)
    return origin.locate(join_key(("feeds", feed.name)))


def _build_error(source: Source, feed: FeedFile, message: str) -> ConfigurationError:
    return ConfigurationError(*find_origin(source, feed), message)
