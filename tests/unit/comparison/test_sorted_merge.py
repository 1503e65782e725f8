"""Sorting outside memory."""

from __future__ import annotations

import hashlib
from contextlib import closing

import pytest

from searchcrawl import urls
from searchcrawl.comparison.sorted_merge import sort_rows
from searchcrawl.store.urls.url_queries import IndexedRow
from searchcrawl.temporary_files import PartFile


def indexed(number: int) -> IndexedRow:
    return IndexedRow(
        url_id=number,
        url=f"http://a.example/{number}",
        crawl_version=1_795_278_584_111 + number,
        fields_digest=hashlib.sha256(b"%d" % number).digest(),
        settled=number % 2 == 0,
    )


@pytest.mark.parametrize("part_rows", [50, 701, 5000, 10_000])
def test_rows_when_sorted_in_parts_then_all_come_back_by_rising_id(part_rows: int) -> None:
    added = [indexed(number) for number in range(1, 5001)]

    with closing(PartFile()) as file:
        found = list(sort_rows(added, "demo", file, part_rows=part_rows))

    by_id = sorted(added, key=lambda row: urls.document_id("demo", row.url))
    assert [row.digest.hex() for row in found] == [urls.document_id("demo", row.url)[5:] for row in by_id]
    assert [row[1:] for row in found] == [
        (row.url_id, row.crawl_version, row.settled, row.fields_digest) for row in by_id
    ]


def test_rows_when_there_are_none_then_nothing_comes_back() -> None:
    with closing(PartFile()) as file:
        assert list(sort_rows([], "demo", file)) == []
