from __future__ import annotations

from searchcrawl.sitemaps.reading import Turns


def take_all(turns: Turns[int]) -> list[int]:
    found = []
    while (taken := turns.take()) is not None:
        found.append(taken[1])
    return found


def test_jobs_when_one_origin_has_many_then_others_take_turns_with_it() -> None:
    turns: Turns[int] = Turns(100)
    for origin, job in [("evil", 1), ("evil", 2), ("evil", 3), ("good", 4), ("good", 5), ("other", 6)]:
        turns.add(origin, job)

    assert take_all(turns) == [1, 4, 6, 2, 5, 3]


def test_jobs_when_an_origin_has_as_many_under_way_as_it_may_then_the_next_waits_for_one_to_end() -> None:
    turns: Turns[int] = Turns(2)
    for job in range(4):
        turns.add("evil", job)
    first = take_all(turns)
    turns.add("good", 4)

    second = take_all(turns)
    turns.end("evil")

    assert (first, second, take_all(turns), take_all(turns)) == ([0, 1], [4], [2], [])


def test_jobs_when_cleared_then_none_is_left() -> None:
    turns: Turns[int] = Turns(1)
    turns.add("good", 1)
    turns.clear()

    assert turns.take() is None
