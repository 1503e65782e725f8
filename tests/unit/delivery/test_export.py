"""A file with the documents of a source: what is in it, and what becomes of the old one where it cannot be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from searchcrawl.delivery import export as module
from searchcrawl.delivery.documents import BatchPart
from searchcrawl.delivery.export import export, find_kind
from searchcrawl.exceptions import CacheError
from searchcrawl.items import IndexedDocument


def part(*titles: str, lost: int = 0) -> BatchPart:
    fields = {"crawled_at": datetime(2030, 1, 31, tzinfo=UTC), "depth": 1, "title_txt_en": "x", "text_signature": "y"}
    found = [
        (number, IndexedDocument(id=f"demo:{number}", fields={"title": title, **fields}))
        for number, title in enumerate(titles)
    ]
    return BatchPart(documents=found, lost=range(lost))


@pytest.fixture
def run(tmp_path: Path) -> Any:
    return SimpleNamespace(
        project=SimpleNamespace(cache_dir=tmp_path / "cache", cache=SimpleNamespace(location="files")),
        source=SimpleNamespace(name="demo"),
        attributes=None,
        source_id=1,
        read=lambda work, *arguments: 2,
    )


def test_export_when_documents_come_in_parts_then_all_are_written_and_the_lost_ones_counted(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "read_indexed", lambda run, cache: iter([part("a", "b\ud800", lost=1), part("c", lost=2)])
    )
    lines, table = tmp_path / "docs.jsonl", tmp_path / "docs.csv"

    assert [export(run, path, path.suffix[1:]) for path in (lines, table)] == [(3, 5), (3, 5)]

    first = '{"id":"demo:0","title":"a","crawled_at":"2030-01-31T00:00:00Z","depth":1}'
    assert lines.read_text("utf-8").splitlines()[0] == first
    header, row, *_ = table.read_text("utf-8").splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=True))["crawled_at"] == "2030-01-31T00:00:00Z"
    assert "text_signature" not in header


def test_export_when_it_breaks_off_then_the_file_stays_as_it_was(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(run: Any, cache: Any) -> Iterator[BatchPart]:
        yield part("a")
        raise CacheError("the disk is gone")

    monkeypatch.setattr(module, "read_indexed", break_off)
    path = tmp_path / "docs.jsonl"
    path.write_text("before")

    with pytest.raises(CacheError):
        export(run, path, "jsonl")

    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["docs.jsonl"]


def test_kind_when_a_name_has_a_colon_then_only_a_kind_after_it_counts(tmp_path: Path) -> None:
    assert find_kind(f"{tmp_path}/a.txt:csv", "demo") == (tmp_path / "a.txt", "csv")
    assert find_kind(f"{tmp_path}/a:b.jsonl", "demo") == (tmp_path / "a:b.jsonl", "jsonl")


def test_export_when_the_file_is_a_link_then_what_it_leads_to_is_written(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "read_indexed", lambda run, cache: iter([part("a")]))
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "docs.jsonl", tmp_path / "there" / "docs.jsonl"
    link.symlink_to(target)

    export(run, link, "jsonl")

    assert link.is_symlink()
    assert target.read_text("utf-8").startswith('{"id":"demo:0"')


def test_export_when_a_pipe_has_taken_the_place_then_it_stays(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    os.mkfifo(path)

    with pytest.raises(OSError, match="is no file, but a device"):
        export(run, path, "jsonl")

    assert path.is_fifo()


def test_kind_when_it_is_a_pipe_without_a_name_as_standard_output_may_be_then_it_says_why() -> None:
    reading, writing = os.pipe()
    with (
        os.fdopen(reading),
        os.fdopen(writing, "w"),
        pytest.raises(ValueError, match="is no file, but a device, a pipe"),
    ):
        find_kind(f"/dev/fd/{writing}:csv", "demo")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("-:jsonl", "must be a file"),
        ("/dev/null:csv", "is no file, but a device"),
        ("circle.jsonl", "is no file, but a device, a pipe, a socket or a circle of links"),
        ("dangling.jsonl", "there is no such folder"),
        ("%(spider)s.csv", "and %% for a percent sign"),
    ],
)
def test_kind_when_there_can_be_no_file_then_it_says_why(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("circle.jsonl").symlink_to("circle.jsonl")
    Path("dangling.jsonl").symlink_to("/nowhere/docs.jsonl")

    with pytest.raises(ValueError, match=message):
        find_kind(name, "demo")
