"""Formats of files of documents: what each makes of values, and that no more than a part of a file is in memory (K4)."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from searchcrawl.delivery import export
from searchcrawl.delivery.export import FORMATS, list_columns
from searchcrawl.rules.attribute_values import AttributeMap, Mapped

MOMENT = datetime(2030, 1, 31, 1, 2, 3, 456789, tzinfo=UTC)
MAPPED = [
    Mapped("meta:price", "price", "number"), Mapped("meta:seen", "seen", "date"), Mapped("meta:tag", "tag", "string"),
    Mapped("meta:by", "author", "string"), Mapped("meta:day", "last_modified", "date"),
]  # fmt: skip
DOCUMENT = {
    "id": "demo:1", "title": "half \ud800 of a character", "depth": 2, "crawl_version": 1 << 60, "crawled_at": MOMENT,
    "duplicates": ["http://a.test/"], "price_l": [3, 4.5], "seen_dt": "2030-01-31T00:00:00Z", "tag_s": ["=1+1", "b"],
    "author": ("one", "two"), "last_modified": ("2030-01-31T00:00:00Z",),
}  # fmt: skip
GONE = {"id": "demo:2", "deleted": True}


def write(kind: str, rows: list[dict[str, Any]], *, delta: bool = False) -> bytes:
    file = io.BytesIO()
    writer = FORMATS[kind](file, list_columns(AttributeMap(MAPPED), delta=delta))
    for row in rows:
        writer.write(row)
    writer.close()
    return file.getvalue()


def test_lines_when_written_then_times_are_iso_and_a_removal_has_nothing_else() -> None:
    first, second = map(json.loads, write("jsonl", [DOCUMENT, GONE], delta=True).splitlines())

    assert (first["crawled_at"], first["title"]) == ("2030-01-31T01:02:03.456789Z", "half ? of a character")
    assert second == GONE


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_json_when_a_field_of_several_values_has_one_then_it_is_a_list_as_of_more(kind: str) -> None:
    row = {"id": "demo:1", "groups": "press", "tag_s": "a", "price_l": 3, "author": "one", "duplicates": None}

    written = json.loads(write(kind, [row]))

    (read,) = written if isinstance(written, list) else [written]
    assert read == {**row, "groups": ["press"], "tag_s": ["a"], "price_l": [3]}


def test_rows_when_written_then_each_has_all_columns_and_lists_are_json() -> None:
    text = write("csv", [{**DOCUMENT, "deleted": False}, GONE], delta=True).decode()

    first, second = csv.DictReader(io.StringIO(text, newline=""))

    assert list(first)[:2] == ["id", "deleted"]
    assert (first["deleted"], first["price_l"], first["tag_s"], first["author"]) == (
        "false", "[3,4.5]", '["=1+1","b"]', '["one","two"]',
    )  # fmt: skip
    assert (second["deleted"], set(second.values())) == ("true", {"demo:2", "true", ""})


@pytest.mark.parametrize(
    ("title", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+49 30", "'+49 30"),
        ("-", "'-"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        (" \r\n=1", "' \r\n=1"),
        ("＝1+1", "'＝1+1"),
        # One quote is taken away by who wants the text as it was.
        ("'=1", "''=1"),
        ("'tis", "'tis"),
        ("a=1", "a=1"),
        ("", ""),
    ],
)
def test_rows_when_a_text_begins_like_a_formula_then_it_is_text_to_a_spreadsheet(title: str, cell: str) -> None:
    text = write("csv", [{"id": "demo:1", "title": title, "depth": -2}]).decode()

    (row,) = csv.DictReader(io.StringIO(text, newline=""))

    assert (row["title"], row["depth"], row["author"]) == (cell, "-2", "")


def test_table_when_written_then_values_have_the_types_of_their_columns() -> None:
    table = pyarrow.parquet.read_table(io.BytesIO(write("parquet", [{**DOCUMENT, "deleted": False}, GONE], delta=True)))

    first, second = table.to_pylist()

    assert (first["deleted"], first["depth"], first["crawl_version"], first["crawled_at"]) == (
        False,
        2,
        1 << 60,
        MOMENT,
    )
    assert (first["title"], first["author"]) == ("half ? of a character", "one; two")
    assert (first["price_l"], first["tag_s"]) == ([3.0, 4.5], ["=1+1", "b"])
    assert first["seen_dt"] == [first["last_modified"]] == [datetime(2030, 1, 31, tzinfo=UTC)]
    assert {name for name, value in second.items() if value is not None} == {"id", "deleted"}
    assert str(table.schema.field("seen_dt").type) == "list<element: timestamp[us, tz=UTC]>"


def test_table_when_no_document_is_written_then_it_has_its_columns() -> None:
    table = pyarrow.parquet.read_table(io.BytesIO(write("parquet", [])))

    assert (table.num_rows, "deleted" in table.schema.names, "price_l" in table.schema.names) == (0, False, True)


def test_table_when_it_is_long_then_it_is_written_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_GROUP_ROWS", 100)
    monkeypatch.setattr(export, "_GROUP_CHARACTERS", 1000)

    many = pyarrow.parquet.ParquetFile(io.BytesIO(write("parquet", [{"id": str(number)} for number in range(250)])))
    long = pyarrow.parquet.ParquetFile(io.BytesIO(write("parquet", [{"id": "a", "content": "x" * 600}] * 4)))

    assert [many.metadata.row_group(each).num_rows for each in range(many.num_row_groups)] == [100, 100, 50]
    assert long.num_row_groups == 2


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_file_when_its_writer_is_closed_then_it_stays_open(kind: str, tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        FORMATS[kind](file, list_columns(None, delta=False)).close()

        assert not file.closed
