"""The bounded memory of known URLs."""

from __future__ import annotations

from searchcrawl.admission.admit import UrlMemory


def test_find_within_when_learnt_then_the_row_comes_back_down_to_its_depth() -> None:
    memory = UrlMemory()

    memory.add(-(2**63), 7, 3)
    memory.add(2**63 - 1, 2**40, 0)

    assert [memory.find_within(-(2**63), depth) for depth in (2, 3, 4)] == [None, 7, 7]
    assert memory.find_within(2**63 - 1, 0) == 2**40
    assert memory.find_within(1, 9) is None


def test_add_when_known_already_then_the_new_depth_counts() -> None:
    memory = UrlMemory()

    memory.add(1, 7, 3)
    memory.add(1, 7, 2)

    assert [memory.find_within(1, depth) for depth in (1, 2)] == [None, 7]


def test_add_when_the_depth_is_beyond_bounds_then_the_row_is_still_right() -> None:
    memory = UrlMemory()

    memory.add(1, 7, 1_000_000)

    assert [memory.find_within(1, depth) for depth in (65_534, 65_535)] == [None, 7]


def test_add_when_full_then_those_not_asked_for_lately_make_room() -> None:
    memory = UrlMemory(limit=8)
    for key in range(8):
        memory.add(key, key, 0)
        # A link of each page.
        assert memory.find_within(0, 0) == 0

    for key in range(8, 12):
        memory.add(key, key, 0)
        assert memory.find_within(0, 0) == 0

    assert [memory.find_within(key, 0) for key in (1, 2, 3, 4)] == [None] * 4
    assert [memory.find_within(key, 0) for key in (11, 10, 0)] == [11, 10, 0]
