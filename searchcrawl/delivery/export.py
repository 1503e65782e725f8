"""Writes the documents of a source, as the index has them, to a file (``crawl -o``, ``[feeds]``), in formats of K4.

A writer gets one document after the other, as its fields, and keeps no more than a few MB of them.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol
from xml.sax.saxutils import escape

import orjson

from searchcrawl import clock
from searchcrawl.cache.opening import open_cache
from searchcrawl.delivery.documents import read_indexed
from searchcrawl.durable import sync_folder
from searchcrawl.failpoints import reach
from searchcrawl.index_fields import ATTRIBUTE_FIELDS, FIELDS, LANGUAGE_PREFIXES, SUFFIXES, FieldKind
from searchcrawl.items import IndexedDocument
from searchcrawl.rules.attribute_values import AttributeMap
from searchcrawl.run import Run
from searchcrawl.sources.attribute_table import FIXED
from searchcrawl.sources.receivers import NEEDS_LIBRARY, find_no_place, find_target, has_library
from searchcrawl.sources.receivers_table import FORMATS as NAMED_FORMATS
from searchcrawl.sources.receivers_table import PARQUET, Feed, FeedFile, find_wrong_name
from searchcrawl.store.documents import document_queries

#: Fields that only help an index.
OF_INDEX: Final = frozenset({"text_signature"})
#: The field of a delta that says whether the document is gone.
DELETED: Final = "deleted"
#: A group of rows of a Parquet file has about so much text, and no more rows than this.
_GROUP_CHARACTERS: Final = 16_000_000
_GROUP_ROWS: Final = 10_000
#: What XML 1.0 has no way to write.
_NOT_OF_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: What spreadsheets begin a formula with, in the widths of East Asian texts as well, and what they pass over before it.
_BEGINS_FORMULA: Final = frozenset("=+-@＝＋－＠")  # the same
_PASSED_OVER: Final = "' \t\r\n\v\f\0\xa0\u3000\ufeff"
_WHOLE_NUMBERS: Final = frozenset(field.name for field in FIELDS if field.kind is FieldKind.NUMBER)


class Column(NamedTuple):
    """A field that documents may have; ``kind`` is None for one that is true or false."""

    name: str
    kind: FieldKind | None
    is_multi_valued: bool


class Writer(Protocol):
    """Writes documents to an open file."""

    def write(self, fields: Mapping[str, Any]) -> None:
        """Writes one document; what is None or missing is left out or empty."""

    def close(self) -> None:
        """Writes what is left; the file stays open."""


def list_columns(attributes: AttributeMap | None, *, delta: bool) -> list[Column]:
    """All fields that a document of a source may have; those of a delta say first whether it is gone."""
    columns = [Column(each.name, each.kind, each.is_multi_valued) for each in FIELDS if each.name not in OF_INDEX]
    mapped = attributes.mapped if attributes is not None else ()
    own = {each.attribute + SUFFIXES[each.type]: each.type for each in mapped if each.attribute not in FIXED}
    columns += [Column(name, ATTRIBUTE_FIELDS[kind].kind, True) for name, kind in own.items()]
    if delta:
        columns.insert(1, Column(DELETED, None, False))
    return columns


class _OfObjects:
    """A writer of fields as JSON and XML have them: one that may have several values is always a list."""

    def __init__(self, file: IO[bytes], columns: Iterable[Column]) -> None:
        self._file = file
        self._lists = frozenset(column.name for column in columns if column.is_multi_valued)

    def close(self) -> None:
        """Nothing is left."""

    def _show(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._show_value(name, value) for name, value in fields.items()}

    def _show_value(self, name: str, value: Any) -> Any:
        shown = _show(value)
        return [shown] if name in self._lists and shown is not None and not isinstance(shown, list) else shown


def _show(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, list | tuple):
        return [_show(each) for each in value]
    return _mend(value)


def _mend(value: Any) -> Any:
    # A text of a page may have half of a character.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


class _Lines(_OfObjects):
    """A JSON object a line."""

    def write(self, fields: Mapping[str, Any]) -> None:
        self._file.write(orjson.dumps(self._show(fields)))
        self._file.write(b"\n")


class _Array(_OfObjects):
    """One JSON array, an object a line, as Scrapy writes it."""

    _before = b"[\n"

    def write(self, fields: Mapping[str, Any]) -> None:
        self._file.write(self._before + orjson.dumps(self._show(fields)))
        self._before = b",\n"

    def close(self) -> None:
        """Ends the array."""
        self._file.write(b"[]\n" if self._before == b"[\n" else b"\n]\n")


class _Elements(_OfObjects):
    """XML as Scrapy writes it: ``items``, an ``item`` for each document, an element a field, ``value`` for those of a list."""

    def __init__(self, file: IO[bytes], columns: Iterable[Column]) -> None:
        super().__init__(file, columns)
        self._file.write(b'<?xml version="1.0" encoding="utf-8"?>\n<items>')

    def write(self, fields: Mapping[str, Any]) -> None:
        written = "".join(f"<{name}>{_build_xml(value)}</{name}>" for name, value in self._show(fields).items())
        self._file.write(f"\n<item>{written}</item>".encode())

    def close(self) -> None:
        """Ends the list."""
        self._file.write(b"\n</items>\n")


def _build_xml(value: Any) -> str:
    if isinstance(value, list):
        return "".join(f"<value>{_build_xml(each)}</value>" for each in value)
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    # A parser would read a bare carriage return as a line feed.
    return escape(_NOT_OF_XML.sub("\ufffd", text), {"\r": "&#13;"})


class _Text:
    """What ``csv`` writes to: text, as UTF-8."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


def _guard(text: str) -> str:
    """A text that a spreadsheet takes for one: a formula of a page is data, and must not be run by who opens the file."""
    # Also where it has quotes already: so a reader that takes one away has the text as it was.
    return f"'{text}" if text.lstrip(_PASSED_OVER)[:1] in _BEGINS_FORMULA else text


class _Rows:
    """CSV with a line of names; lists are JSON, and so is what is true or false."""

    def __init__(self, file: IO[bytes], columns: Iterable[Column]) -> None:
        self._names = [column.name for column in columns]
        self._rows = csv.writer(_Text(file))
        self._rows.writerow(self._names)

    def write(self, fields: Mapping[str, Any]) -> None:
        self._rows.writerow([self._write_cell(_show(fields.get(name, ""))) for name in self._names])

    @staticmethod
    def _write_cell(value: Any) -> Any:
        if isinstance(value, list | bool):
            return orjson.dumps(value).decode()
        return _guard(value) if isinstance(value, str) else value

    def close(self) -> None:
        """Nothing is left."""


class _Table:
    """Parquet: each field with its type, the rows in groups."""

    def __init__(self, file: IO[bytes], columns: Iterable[Column]) -> None:
        # The library is an extra; it is loaded where such a file is written.
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415

        self._build = pyarrow.Table.from_pylist
        self._columns = list(columns)
        kinds = {
            FieldKind.NAME: pyarrow.string(),
            FieldKind.TEXT: pyarrow.string(),
            FieldKind.DATE: pyarrow.timestamp("us", tz="UTC"),
            None: pyarrow.bool_(),
        }
        types = [
            (pyarrow.int64() if column.name in _WHOLE_NUMBERS else pyarrow.float64())
            if column.kind is FieldKind.NUMBER
            else kinds[column.kind]
            for column in self._columns
        ]
        self._schema = pyarrow.schema(
            [
                (column.name, pyarrow.list_(kind) if column.is_multi_valued else kind)
                for column, kind in zip(self._columns, types, strict=True)
            ]
        )
        self._writer = pyarrow.parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._characters = 0

    def write(self, fields: Mapping[str, Any]) -> None:
        self._rows.append({column.name: _type(fields.get(column.name), column) for column in self._columns})
        self._characters += sum(len(value) for value in fields.values() if isinstance(value, str))
        if self._characters >= _GROUP_CHARACTERS or len(self._rows) >= _GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Writes the last rows, and where which group is."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._build(self._rows, schema=self._schema))
            self._rows, self._characters = [], 0


def _type(value: Any, column: Column) -> Any:
    """A value as a column has it: attributes may have several where the field has one, and dates of them are text."""
    values = value if isinstance(value, list | tuple) else [] if value is None else [value]
    if column.kind is FieldKind.DATE:
        values = [datetime.fromisoformat(each) if isinstance(each, str) else each for each in values]
    if column.kind is FieldKind.NUMBER and column.name not in _WHOLE_NUMBERS:
        values = [float(each) for each in values]
    values = [_mend(each) for each in values]
    if column.is_multi_valued:
        return values or None
    if column.kind is FieldKind.TEXT and len(values) > 1:
        return "; ".join(values)
    return values[0] if values else None


#: How each format is written.
FORMATS: Final[Mapping[str, Callable[[IO[bytes], Iterable[Column]], Writer]]] = {
    "jsonl": _Lines,
    "json": _Array,
    "csv": _Rows,
    "xml": _Elements,
    "parquet": _Table,
}


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
        lost = run.read(document_queries.count_unreadable, run.source_id)
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
