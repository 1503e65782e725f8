"""Sorting outside memory."""

from __future__ import annotations

import hashlib

import pytest

from searchcrawl import urls
from searchcrawl.comparison.sorted_merge import RowSorter
from searchcrawl.store.urls.url_queries import IndexedRow


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

    with RowSorter(part_rows=part_rows) as sorter:
        for row in added:
            sorter.add(row, urls.document_id("demo", row.url))
        found = list(sorter.by_id())

    by_id = sorted(added, key=lambda row: urls.document_id("demo", row.url))
    assert [row.digest.hex() for row in found] == [urls.document_id("demo", row.url)[5:] for row in by_id]
    assert [row[1:] for row in found] == [
        (row.url_id, row.crawl_version, row.settled, row.fields_digest) for row in by_id
    ]


def test_rows_when_there_are_none_then_nothing_comes_back() -> None:
    with RowSorter() as sorter:
        found = list(sorter.by_id())

    assert found == []
