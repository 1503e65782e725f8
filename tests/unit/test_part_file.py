"""Records in a file without a name, read in their order and merged."""

from __future__ import annotations

import heapq
import random
from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl.part_file import PartFile


@pytest.mark.parametrize("records", [0, 1, 1000, 2501])
def test_records_when_parts_are_merged_then_all_rise(records: int) -> None:
    parts = [
        sorted(b"\n\xff%d" % each for each in random.Random(seed).sample(range(10_000), records)) for seed in range(4)
    ]

    with closing(PartFile()) as file:
        for part in parts:
            file.add(iter(part))
        merged = list(heapq.merge(*file.parts()))
        in_order = list(file)

    assert merged == sorted(each for part in parts for each in part)
    assert in_order == [each for part in parts for each in part]
    assert len(file) == 4


def test_records_when_they_are_read_side_by_side_then_each_reader_sees_all(tmp_path: Path) -> None:
    numbers = [b"%d" % number for number in range(1500)]
    with closing(PartFile(tmp_path / "folder")) as file:
        file.add(numbers)
        one = iter(file)
        first = [next(one) for _ in range(1200)]
        file.add([b"last", b""])
        both = list(zip(file, file, strict=True))

        assert [*first, *one] == [*numbers, b"last", b""]
        assert both == [(each, each) for each in [*numbers, b"last", b""]]
        assert list((tmp_path / "folder").iterdir()) == []
