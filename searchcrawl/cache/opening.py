"""Opens the document cache of a source. The only place that knows where ``cache.dir`` and ``cache.location`` put it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.durable import make_folder, sync_folder
from searchcrawl.exceptions import CacheError
from searchcrawl.sources.project import Project


def open_cache(project: Project, source: str) -> DocumentCache:
    """The cache of the source of this name; it need not be there yet."""
    return DocumentCache(_find_folder(project, source))


@contextmanager
def use_cache(project: Project, source: str) -> Iterator[DocumentCache]:
    """The cache of a source for one command; it is closed afterwards."""
    with closing(open_cache(project, source)) as cache:
        yield cache


def has_cache(project: Project, source: str) -> bool:
    """Whether anything of a source is cached."""
    return _find_folder(project, source).is_dir()


def delete_cache(project: Project, source: str) -> None:
    """Deletes all that is cached of a source, durably; raises CacheError."""
    folder = _find_folder(project, source)
    try:
        if folder.is_dir():
            shutil.rmtree(folder)
            sync_folder(project.cache_dir)
    except OSError as error:
        raise CacheError(f"{folder}: {error.strerror or error}") from error


def share_cache(project: Project, trial: Project, source: str) -> None:
    """Gives the cache of a trial all segments of a source, as links; what the trial writes is in new ones."""
    folder, beside = _find_folder(project, source), _find_folder(trial, source)
    make_folder(beside)
    for segment in folder.iterdir() if folder.is_dir() else ():
        (beside / segment.name).symlink_to(segment.resolve())


def _find_folder(project: Project, source: str) -> Path:
    return project.cache_dir / source
