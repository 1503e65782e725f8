"""Which claims may go now."""

from __future__ import annotations

import pytest

from searchcrawl import clock
from searchcrawl.frontier import window
from searchcrawl.frontier.window import FEW_ROWS, REDIRECTED_ROWS, WINDOW_ROWS
from tests.factories import claim
from tests.unit.frontier.support_window import HOST, OTHER, build_window, met, popped


def test_pop_when_there_is_no_delay_then_as_many_as_may_go_at_once(now: list[float]) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1), claim(2), claim(3)])

    first = [popped(tested, now[0]) for _ in range(3)]
    tested.release(1)

    assert first == [1, 2, None]
    assert popped(tested, now[0]) == 3
    assert (tested.size, tested.in_flight) == (0, 2)


def test_pop_when_a_host_is_new_then_one_goes_ahead_of_the_others(now: list[float]) -> None:
    tested = build_window()
    tested.fill(HOST, [claim(1), claim(2), claim(3)])

    first = [popped(tested, now[0]) for _ in range(2)]
    tested.release(1)

    # Its robots.txt may ask for a delay, and for one request at a time.
    assert first == [1, None]
    assert [popped(tested, now[0]) for _ in range(2)] == [2, 3]


def test_pop_when_hosts_are_several_then_they_alternate(now: list[float]) -> None:
    tested = met(met(build_window(), now), now, OTHER)
    tested.fill(HOST, [claim(1), claim(2)])
    tested.fill(OTHER, [claim(3), claim(4)])

    assert [popped(tested, now[0]) for _ in range(4)] == [1, 3, 2, 4]


def test_pop_when_there_is_a_delay_then_one_at_a_time_and_not_before_it_is_over(now: list[float]) -> None:
    tested = build_window(delay_seconds=3.0)
    tested.fill(HOST, [claim(1), claim(2)])

    first = [popped(tested, 1000.0), popped(tested, 1009.0)]
    tested.release(1)
    early, moment = popped(tested, 1002.9), tested.next_moment()

    assert first == [1, None]
    assert (early, moment) == (None, 1003.0)
    assert popped(tested, 1003.0) == 2


def test_pop_when_the_clock_goes_on_meanwhile_then_a_claim_of_that_moment_waits_for_the_next_pop(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = build_window(delay_seconds=3.0)
    tested.fill(HOST, [claim(1), claim(2)])
    popped(tested, 1000.0)
    now[0] = 1003.0
    # Ready by the clock, and not yet at the moment that the pop below is about.
    tested.release(1)
    # A pop that asks for the time again and again would not end.
    monkeypatch.setattr(clock, "monotonic", iter([1003.0] * 100).__next__)

    early, moment = popped(tested, 1002.999), tested.next_moment()

    assert (early, moment) == (None, 1003.0)
    assert popped(tested, 1003.0) == 2


def test_redirected_when_a_claim_comes_to_a_host_then_it_goes_before_the_others(now: list[float]) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1)])

    tested.fill_first(HOST, claim(2))

    assert [popped(tested, now[0]) for _ in range(2)] == [2, 1]
    assert tested.host_of(2) == HOST


def test_redirected_when_others_wait_at_their_host_then_they_go_in_turn(now: list[float]) -> None:
    tested = met(build_window(host_concurrency=9), now)
    tested.fill(HOST, [claim(1), claim(2)])

    for number in (3, 4, 5):
        tested.fill_redirected(HOST, claim(number))

    assert [popped(tested, now[0]) for _ in range(6)] == [3, 1, 4, 2, 5, None]
    assert (tested.size, tested.in_flight) == (0, 5)


def test_redirected_when_very_many_wait_then_other_hosts_have_as_much_room_as_before(now: list[float]) -> None:
    tested = build_window(delay_seconds=60.0)
    rooms = []

    for number in range(REDIRECTED_ROWS):
        rooms.append(tested.has_room_for_redirected)
        tested.fill_redirected(HOST, claim(number))

    assert all(rooms)
    assert (tested.has_room_for_redirected, tested.size, tested.runs_low) == (False, 0, True)
    assert tested.count_room(OTHER) == FEW_ROWS
    assert len(tested.drain()) == REDIRECTED_ROWS
    assert tested.has_room_for_redirected


def test_wanted_when_claims_wait_then_no_more_than_there_is_room_for(now: list[float]) -> None:
    slow, quick = build_window(delay_seconds=1.0), build_window()
    quick.fill(HOST, [claim() for _ in range(WINDOW_ROWS - 10)])

    assert slow.count_room(HOST) == FEW_ROWS
    assert quick.count_room(HOST) is None
    assert quick.count_room(OTHER) == 10


def test_low_when_few_rows_of_a_host_are_left_then_it_is_named_once_unless_the_table_has_no_more(
    now: list[float],
) -> None:
    tested, met_host = build_window(delay_seconds=1.0), [claim(number, host_id=7) for number in (1, 2, 3)]
    tested.fill(HOST, met_host)
    named = []

    for _ in range(3):
        now[0] += 2.0
        tested.release(popped(tested, now[0]) or 0)
        named.append(tested.take_low())
    tested.fill(HOST, met_host)
    tested.note_drained(HOST)
    now[0] += 2.0
    assert popped(tested, now[0]) == 1
    now[0] += 2.0
    tested.release(1)
    popped(tested, now[0])

    assert named == [[], [7], [7]]
    assert tested.take_low() == []


def test_room_when_very_many_hosts_have_claims_then_there_is_none_for_others(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "MOST_HOSTS", 3)
    tested, rooms = build_window(delay_seconds=1.0), []

    for number in range(4):
        rooms.append(tested.has_room)
        tested.fill(f"h{number}.test:80", [claim(number)])
    tested.pop(now[0])
    tested.release(0)

    assert rooms == [True, True, True, False]
    assert tested.hosts_in_hand == 3


def test_drain_when_the_run_ends_then_what_waits_comes_out_and_nothing_goes_any_more(now: list[float]) -> None:
    tested = build_window(delay_seconds=1.0)
    tested.fill(HOST, [claim(1), claim(2), claim(3)])
    tested.pop(now[0])

    drained = tested.drain()

    assert [one.url_id for one in drained] == [2, 3]
    assert (tested.size, tested.in_flight) == (0, 1)
    tested.release(1)
    assert popped(tested, 2000.0) is None


@pytest.mark.parametrize("count", [3, 500])
def test_hosts_when_very_many_were_visited_then_the_window_knows_those_in_use_alone(
    now: list[float], count: int
) -> None:
    tested = build_window()
    tested.fill(HOST, [claim(1)])
    popped(tested, now[0])
    for number in range(count):
        met(tested, now, f"h{number}.test:80")

    assert len(tested._by_host) == 1
    assert tested.host_of(1) == HOST


@pytest.mark.parametrize("delay_seconds", [0.0, 5.0])
def test_host_when_it_left_the_window_while_it_waited_then_its_next_claims_go_once(
    now: list[float], delay_seconds: float
) -> None:
    tested = met(build_window(delay_seconds=delay_seconds), now)
    tested.fill(HOST, [claim(1), claim(2)])
    drained = [one.url_id for one in tested.drain()]
    without = len(tested._by_host)
    tested.fill(HOST, [claim(3), claim(4)])
    now[0] += delay_seconds
    first = popped(tested, now[0])
    second = popped(tested, now[0])

    assert (drained, without) == ([1, 2], 0)
    assert (first, second) == (3, None if delay_seconds else 4)
