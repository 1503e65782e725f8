"""Writes the documents of a source, as the index has them, to a file (``crawl -o``, ``[feeds]``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from searchcrawl import clock
from searchcrawl.cache.opening import open_cache
from searchcrawl.delivery.documents import read_indexed
from searchcrawl.delivery.file_formats import FORMATS, OF_INDEX, Writer, list_columns
from searchcrawl.durable import sync_folder
from searchcrawl.failpoints import reach
from searchcrawl.index_fields import LANGUAGE_PREFIXES
from searchcrawl.items import IndexedDocument
from searchcrawl.run import Run
from searchcrawl.sources.receivers import NEEDS_LIBRARY, find_no_place, find_target, has_library
from searchcrawl.sources.receivers_table import FORMATS as NAMED_FORMATS
from searchcrawl.sources.receivers_table import PARQUET, Feed, FeedFile, find_wrong_name
from searchcrawl.store.documents import export_table

#: Scrapy's other names of JSON lines.
_OTHER_NAMES: Final[Mapping[str, str]] = {"jl": "jsonl", "jsonlines": "jsonl"}


def export(run: Run, path: Path, kind: str) -> tuple[int, int]:
    """Writes all documents of a source, in the place of what the file had; returns how many, and how many are not in it.

    ``kind`` is one of FORMATS. Not in it are those of which the cache does not have what the index has: given up, lost, or
    another version. Of a link the file that it leads to is written. A file that cannot be written is left as it was; raises
    OSError, CacheError, StoreError.
    """
    path = find_target(path)
    if (wrong := find_no_place(path)) is not None:
        raise OSError(f"{path}: {wrong}")
    beginning = path_of_part(path)
    written = 0
    with open_part(beginning) as file:
        lost = run.read(export_table.count_unreadable, run.source_id)
        with open_writer(run, file, kind) as writer:
            for part in read_indexed(run, open_cache(run.project, run.source.name)):
                for _, document in part.documents:
                    writer.write(show(document))
                written += len(part.documents)
                lost += len(part.lost)
        sync(file)
        reach("feed.written")
        beginning.replace(path)
    sync_folder(path.parent)
    return written, lost


def path_of_part(path: Path) -> Path:
    """Where a file is written before it has its name; of a process that was killed it stays until the next one."""
    return path.with_name(f".{path.name}.part")


@contextmanager
def open_part(path: Path) -> Iterator[IO[bytes]]:
    """A file to be written anew; it is gone where that fails."""
    try:
        with path.open("wb") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def open_writer(run: Run, file: IO[bytes], kind: str, *, delta: bool = False) -> Iterator[Writer]:
    """Writes documents in a format to an open file."""
    writer = FORMATS[kind](file, list_columns(run.attributes, delta=delta))
    yield writer
    writer.close()


def sync(file: IO[bytes]) -> None:
    """Puts what was written on the disk."""
    file.flush()
    os.fsync(file.fileno())


def show(document: IndexedDocument, marks: Iterable[tuple[str, Any]] = ()) -> Mapping[str, Any]:
    """The fields of a document; not those that say the same once more for the analysis by language."""
    fields = {
        name: value
        for name, value in document.fields.items()
        if name not in OF_INDEX and not name.startswith(LANGUAGE_PREFIXES)
    }
    return {"id": document.id, **dict(marks), **fields}


def find_kind(text: str, source: str) -> tuple[Path, str]:
    """The file and the kind that ``FILE`` or ``FILE:KIND`` names; raises ValueError with what is wrong.

    ``%(name)s`` and ``%(time)s`` are those of ``[feeds]``.
    """
    name, colon, kind = text.rpartition(":")
    kind = _OTHER_NAMES.get(kind, kind)
    if not colon or kind not in FORMATS:
        name, kind = text, Path(text).suffix.removeprefix(".")
        kind = _OTHER_NAMES.get(kind, kind)
    if name == "-":
        raise ValueError("must be a file: documents are not written to the standard output")
    form = next((each for each in NAMED_FORMATS if each == kind), None)
    if (wrong := find_wrong_name(name, Feed(format=form))) is not None and (form or "://" in name):
        raise ValueError(wrong)
    if form is None:
        raise ValueError(f"the name must end in {' or '.join(f'.{each}' for each in FORMATS)}, or :KIND follows it")
    if kind == PARQUET and not has_library():
        raise ValueError(NEEDS_LIBRARY)
    path = find_target(Path(FeedFile(name, form, delta=False, receiver="").render(source, clock.now(), 0)))
    if (wrong := find_no_place(path)) is not None:
        raise ValueError(wrong)
    return path, form
