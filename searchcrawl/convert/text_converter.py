"""Plain text, decoded and cleaned, and the values of JSON and CSV as lines of text; no links."""

from __future__ import annotations

import csv
import io
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, TextIO

import orjson

from searchcrawl.bodies import LargeBody, list_pieces, read_whole
from searchcrawl.codes import Code
from searchcrawl.convert.converter import MAX_FILE_MEMORY_BYTES, Converter, build_page, run_in_process, run_in_thread
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.content_type import parse_content_type
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.encoding import decode, find_encoding
from searchcrawl.html.page_text import MAX_CHARACTERS
from searchcrawl.items import Page


def convert_text(body: bytes, context: ConversionContext) -> Page:
    """The page of a text file. Its title is the name of the file; an empty file has none."""
    text, charset = context.decode(body, markup=False)
    return build_page(context, text=text, charset=charset)


def convert_large_text(body: LargeBody, context: ConversionContext) -> Page:
    """As ``convert_text``; raises ConversionFailed (904) for a text that is surely too long without having it in memory."""
    if len(body) > MAX_CHARACTERS and _has_too_much(body, context.content_type):
        raise ConversionFailed(f"a text of over {MAX_CHARACTERS} characters", code=Code.CONVERSION_LIMIT)
    return convert_text(read_whole(body), context)


def _has_too_much(body: LargeBody, content_type: str) -> bool:
    """Whether a text begins with more characters than one may have, in whatever encoding it may be."""
    if find_encoding(parse_content_type(content_type).charset or "utf-8") != "utf-8":
        return False
    decoder, characters = getincrementaldecoder("utf-8")(), 0
    for piece in list_pieces(body):
        # After an escape ISO-2022 has two bytes a character.
        if b"\x1b" in piece:
            return False
        try:
            characters += len(decoder.decode(piece))
        except UnicodeDecodeError:
            return False
        if characters > MAX_CHARACTERS:
            return True
    return False


TEXT: Final = Converter(
    name="text",
    is_kept=True,
    mime_types=("text/plain", "application/yaml", "text/yaml", "application/toml"),
    convert=convert_text,
    convert_large=convert_large_text,
    choose_place=run_in_thread,
    is_text=True,
)


#: What may separate the cells of a row.
_SEPARATORS: Final = ",;\t|"
#: The beginning of a table that tells which of them does.
_SAMPLE_CHARS: Final = 16_384
#: What the parser says where memory is short.
_NO_MEMORY: Final = "Not enough memory"
#: Names under which an object has its title.
_TITLES: Final = ("title", "name", "headline")


def convert_json(body: bytes, context: ConversionContext) -> Page:
    """The names and values of a JSON text, or of each line of it, a line each. A title in it is the title.

    Raises ConversionFailed (903) for what is no JSON.
    """
    text, charset = decode(body, content_type=context.content_type, default_charset="utf-8", markup=False)
    values = _parse(text)
    lines = _take_lines(line for value in values for line in _list_lines(value))
    first = values[0] if len(values) == 1 and isinstance(values[0], dict) else {}
    title = next((first[name] for name in _TITLES if isinstance(first.get(name), str)), "")
    return build_page(context, text="\n".join(lines), title=title, charset=charset)


def _parse(text: str) -> list[Any]:
    if not text.strip():
        return []
    try:
        return [orjson.loads(text)]
    except ValueError as error:
        lines = [line for line in text.split("\n") if line.strip()]
        try:
            return [orjson.loads(line) for line in lines] if len(lines) > 1 else _refuse(error)
        except ValueError:
            return _refuse(error)


def _refuse(error: ValueError) -> list[Any]:
    if _NO_MEMORY in str(error):
        raise MemoryError
    raise ConversionFailed(f"JSON: {error}", code=Code.CONVERSION_FAILED) from error


def _take_lines(lines: Iterable[str]) -> list[str]:
    """The lines; raises ConversionFailed (904) before they are too many: a name is repeated with each of its values."""
    taken, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > MAX_CHARACTERS:
            raise ConversionFailed(f"a text of over {MAX_CHARACTERS} characters", code=Code.CONVERSION_LIMIT)
        taken.append(line)
    return taken


def _list_lines(value: Any) -> Iterator[str]:
    """The values below a value, in order, each with its name; without recursion, whatever is nested."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        name, found = waiting.pop()
        if isinstance(found, dict):
            waiting += reversed(list(found.items()))
        elif isinstance(found, list):
            waiting += [(name, each) for each in reversed(found)]
        elif found is not None and not isinstance(found, bool):
            # Values may have several lines, as they are written.
            yield f"{name} {found}" if name else str(found)


def convert_csv(body: bytes, context: ConversionContext) -> Page:
    """The rows of a table, a line each, its cells separated by blanks."""
    text, charset = context.decode(body, markup=False)
    try:
        rows = list(_list_rows(io.StringIO(text, newline="")))
    except csv.Error:
        # A quote without an end, or a cell that is longer than any: its words are there all the same.
        rows = [text]
    return build_page(context, text="\n".join(rows), charset=charset)


def convert_large_csv(body: LargeBody, context: ConversionContext) -> Page:
    """As ``convert_csv``, with one row after the other in memory, and those that have words."""
    found = context.open_text(body, markup=False)
    if found is not None:
        file, charset = found
        with suppress(csv.Error):
            return build_page(context, text="\n".join(_take_lines(_list_rows(file))), charset=charset)
    return convert_csv(read_whole(body), context)


def _list_rows(file: TextIO) -> Iterator[str]:
    sample = file.read(_SAMPLE_CHARS)
    file.seek(0)
    for row in csv.reader(file, delimiter=max(_SEPARATORS, key=sample.count)):
        yield " ".join(" ".join(row).split())


JSON: Final = Converter(
    name="json",
    is_kept=True,
    mime_types=(
        "application/json",
        "text/json",
        "application/x-ndjson",
        "application/jsonl",
        "application/x-jsonlines",
    ),
    convert=convert_json,
    # A short text may have names that make a long one of it.
    choose_place=run_in_process,
    is_text=True,
    max_memory_bytes=MAX_FILE_MEMORY_BYTES,
)
CSV: Final = Converter(
    name="csv",
    is_kept=True,
    mime_types=("text/csv", "text/tab-separated-values", "application/csv"),
    convert=convert_csv,
    convert_large=convert_large_csv,
    choose_place=run_in_thread,
    is_text=True,
    max_memory_bytes=MAX_FILE_MEMORY_BYTES,
)
