"""What is kept on the disk comes back as it was, as often as it is asked for."""

from __future__ import annotations

from contextlib import closing

from searchcrawl.comparison.differences import Difference, Spool, Suspect, in_groups, spool_differences, spool_suspects
from searchcrawl.index.receiver import IndexEntry


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
    found = [Difference("stale", "u", "w", "r", each, 3, None, mended=True) for each in suspects]
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
