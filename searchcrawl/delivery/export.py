"""Writes the documents of a source, as the index has them, to a file (``crawl -o``)."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

import orjson

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery.documents import read_indexed
from searchcrawl.durable import sync_folder
from searchcrawl.index_fields import FIELDS, LANGUAGE_PREFIXES, SUFFIXES
from searchcrawl.items import IndexedDocument
from searchcrawl.run import Run
from searchcrawl.sources.attribute_table import FIXED

#: Fields that only help an index.
_OF_INDEX: Final = frozenset({"text_signature"})
_NAMES: Final = tuple(field.name for field in FIELDS if field.name not in _OF_INDEX)

Write = Callable[[Mapping[str, Any]], None]


def export(run: Run, path: Path, kind: str) -> tuple[int, int]:
    """Writes all documents of a source, in the place of what the file had; returns how many, and how many are not in it.

    ``kind`` is one of KINDS. Not in it are those whose record the cache has lost or given up. A file that cannot be
    written is left as it was; raises OSError, CacheError, StoreError.
    """
    written = lost = 0
    # A process that is killed leaves it; the next export begins it anew.
    beginning = path.with_name(f".{path.name}.part")
    try:
        with beginning.open("wb") as file:
            write = KINDS[kind](file, run)
            for part in read_indexed(run, DocumentCache(run.project.cache_dir / run.source.name)):
                for _, document in part.documents:
                    write(_show(document))
                written += len(part.documents)
                lost += len(part.lost)
            file.flush()
            os.fsync(file.fileno())
        beginning.replace(path)
    except BaseException:
        beginning.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return written, lost


def _show(document: IndexedDocument) -> dict[str, Any]:
    """The fields of a document; not those that say the same once more for the analysis by language."""
    fields = {
        name: _format(value)
        for name, value in document.fields.items()
        if name not in _OF_INDEX and not name.startswith(LANGUAGE_PREFIXES)
    }
    return {"id": document.id, **fields}


def _format(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, list | tuple):
        return [_format(each) for each in value]
    # A text of a page may have half of a character.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _open_lines(file: IO[bytes], run: Run) -> Write:
    """A JSON object a line."""
    return lambda fields: _write(file, [orjson.dumps(fields), b"\n"])


def _write(file: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        file.write(piece)


class _Rows:
    """What ``csv`` writes to: text, as UTF-8."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


def _open_table(file: IO[bytes], run: Run) -> Write:
    """CSV with a line of names; lists are JSON."""
    mapped = run.attributes.mapped if run.attributes is not None else ()
    own = dict.fromkeys(each.attribute + SUFFIXES[each.type] for each in mapped if each.attribute not in FIXED)
    columns = [*_NAMES, *own]
    rows = csv.writer(_Rows(file))
    rows.writerow(columns)

    def write(fields: Mapping[str, Any]) -> None:
        values = (fields.get(name, "") for name in columns)
        rows.writerow([orjson.dumps(value).decode() if isinstance(value, list | tuple) else value for value in values])

    return write


#: How each kind of file is written, by the ending of its name.
KINDS: Final[Mapping[str, Callable[[IO[bytes], Run], Write]]] = {"jsonl": _open_lines, "csv": _open_table}
#: A kind that a later release brings.
LATER_KIND: Final = "parquet"


def find_kind(text: str) -> tuple[Path, str]:
    """The file and the kind that ``FILE`` or ``FILE:KIND`` names; raises ValueError with what is wrong."""
    name, colon, kind = text.rpartition(":")
    if not colon or kind not in {*KINDS, LATER_KIND}:
        name, kind = text, Path(text).suffix.removeprefix(".")
    path = Path(name)
    if kind == LATER_KIND:
        raise ValueError("parquet: not available yet")
    if kind not in KINDS:
        raise ValueError(f"the name must end in {' or '.join(f'.{each}' for each in KINDS)}, or :KIND follows it")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ValueError("is a folder" if path.is_dir() else "there is no such folder")
    return path.absolute(), kind
