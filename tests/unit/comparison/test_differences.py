"""Sorting outside memory."""

from __future__ import annotations

import hashlib
from contextlib import closing

import pytest

from searchcrawl import urls
from searchcrawl.comparison.differences import (
    IndexDifference,
    Spool,
    Suspect,
    in_groups,
    spool_differences,
    spool_suspects,
)
from searchcrawl.comparison.sorted_merge import sort_rows
from searchcrawl.index.receiver import IndexEntry
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


def test_spool_when_values_are_read_and_added_in_turns_then_all_come_in_their_order() -> None:
    with closing(Spool[int](int, int)) as spool:
        for number in range(2500):
            spool.add(number)
        half = [number for number, _ in zip(spool, range(1500), strict=False)]
        spool.add(2500)
        both = list(zip(spool, spool, strict=True))

        assert half == list(range(1500))
        assert both == [(number, number) for number in range(2501)]
        assert len(spool) == 2501


def test_spools_when_suspects_and_differences_are_kept_then_they_come_back_as_they_were() -> None:
    entry = IndexEntry("demo:1", 7, "ab", "http://a.test/\ud800", "http://a.test/", 2)
    suspects = [Suspect("demo", "demo:1", 5, entry), Suspect("demo", "demo:2", None, None)]
    found = [IndexDifference("stale", "u", "w", "r", each, 3, None, mended=True) for each in suspects]
    with spool_suspects() as one, spool_differences() as other:
        for each in suspects:
            one.add(each)
        for difference in found:
            other.add(difference)

        assert list(one) == suspects
        assert list(other) == found


def test_groups_when_there_are_more_than_one_takes_then_the_last_is_smaller() -> None:
    assert list(in_groups(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(in_groups([], 2)) == []
