"""The bounded memory of known URLs."""

from __future__ import annotations

from searchcrawl.admission.seen import Seen


def test_get_when_learnt_then_row_and_depth_come_back() -> None:
    seen = Seen()

    seen.learn(-(2**63), 7, 3)
    seen.learn(2**63 - 1, 2**40, 0)

    assert seen.get(-(2**63)) == (7, 3)
    assert seen.get(2**63 - 1) == (2**40, 0)
    assert seen.get(1) is None


def test_learn_when_known_already_then_the_new_depth_counts() -> None:
    seen = Seen()

    seen.learn(1, 7, 3)
    seen.learn(1, 7, 2)

    assert seen.get(1) == (7, 2)


def test_learn_when_the_depth_is_beyond_bounds_then_the_row_is_still_right() -> None:
    seen = Seen()

    seen.learn(1, 7, 1_000_000)

    assert seen.get(1) == (7, 65_535)


def test_learn_when_full_then_the_oldest_quarter_makes_room() -> None:
    seen = Seen(limit=8)

    for key in range(9):
        seen.learn(key, key, 0)

    assert [key for key in range(9) if seen.get(key) is None] == [0, 1]
