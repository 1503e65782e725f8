"""A disk with little room left is refused before it is full (X-D18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.cache.disk_space import free_bytes, refuse_low
from searchcrawl.exceptions import DiskFull


def test_refuse_low_when_there_is_room_then_returns_also_for_folders_to_come(tmp_path: Path) -> None:
    refuse_low([tmp_path, tmp_path / "to" / "come"], min_free_bytes=1)

    assert free_bytes(tmp_path / "to" / "come") == pytest.approx(free_bytes(tmp_path), rel=0.5)


def test_refuse_low_when_less_is_left_then_names_the_folder_and_the_setting(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match=r"/come: only \d+ MB are left .*SEARCHCRAWL_MIN_FREE_MB"):
        refuse_low([tmp_path / "come"], min_free_bytes=1 << 60)
