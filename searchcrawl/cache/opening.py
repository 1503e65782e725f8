"""Opens the document cache of a source. The only place that knows where ``cache.dir`` and ``cache.location`` put it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.cache.storage import Storage
from searchcrawl.durable import make_folder
from searchcrawl.exceptions import CacheError
from searchcrawl.sources.project import Project

#: What ``cache.location`` may be: each opens the segments of the source of a name.
STORAGES: Final[dict[str, Callable[[Project, str], Storage]]] = {
    "files": lambda project, source: SegmentFolder(project.cache_dir / source),
}


def open_cache(project: Project, source: str) -> DocumentCache:
    """The cache of the source of this name; it need not be there yet."""
    return DocumentCache(_open_storage(project, source), project.cache_dir)


@contextmanager
def use_cache(project: Project, source: str) -> Iterator[DocumentCache]:
    """The cache of a source for one command; it is closed afterwards."""
    with closing(open_cache(project, source)) as cache:
        yield cache


def has_cache(project: Project, source: str) -> bool:
    """Whether anything of a source is cached."""
    with closing(_open_storage(project, source)) as storage:
        return storage.is_there()


def delete_cache(project: Project, source: str) -> None:
    """Deletes all that is cached of a source, durably; raises CacheError."""
    try:
        with closing(_open_storage(project, source)) as storage:
            storage.delete_all()
    except OSError as error:
        raise CacheError(f"{error.filename or source}: {error.strerror or error}") from error


def share_cache(project: Project, trial: Project, source: str) -> None:
    """Gives the cache of a trial, which is files, all segments of a source; what the trial writes is in new ones."""
    folder = trial.cache_dir / source
    make_folder(folder)
    with closing(_open_storage(project, source)) as storage:
        storage.lend(folder)


def _open_storage(project: Project, source: str) -> Storage:
    return STORAGES[project.cache.location](project, source)
