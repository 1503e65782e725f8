"""Which claims may go now: concurrency, delays, hosts that are left alone."""

from __future__ import annotations

import pytest

from searchcrawl import clock
from searchcrawl.frontier.window import WINDOW_ROWS, Window
from searchcrawl.politeness.host_state import FAILURES_TO_PARK
from tests.factories import claim
from tests.unit.frontier.support_window import HOST, OTHER, met, popped


def window(*, delay_seconds: float = 0.0, host_concurrency: int = 2) -> Window:
    return Window(host_concurrency=host_concurrency, delay_seconds=delay_seconds)


def test_pop_when_there_is_no_delay_then_as_many_as_may_go_at_once(now: list[float]) -> None:
    tested = met(window(), now)
    tested.fill(HOST, [claim(1), claim(2), claim(3)])

    first = [popped(tested, now[0]) for _ in range(3)]
    tested.ended(1)

    assert first == [1, 2, None]
    assert popped(tested, now[0]) == 3
    assert (tested.size, tested.in_flight) == (0, 2)


def test_pop_when_a_host_is_new_then_one_goes_ahead_of_the_others(now: list[float]) -> None:
    tested = window()
    tested.fill(HOST, [claim(1), claim(2), claim(3)])

    first = [popped(tested, now[0]) for _ in range(2)]
    tested.ended(1)

    # Its robots.txt may ask for a delay, and for one request at a time.
    assert first == [1, None]
    assert [popped(tested, now[0]) for _ in range(2)] == [2, 3]


def test_pop_when_hosts_are_several_then_they_take_turns(now: list[float]) -> None:
    tested = met(met(window(), now), now, OTHER)
    tested.fill(HOST, [claim(1), claim(2)])
    tested.fill(OTHER, [claim(3), claim(4)])

    assert [popped(tested, now[0]) for _ in range(4)] == [1, 3, 2, 4]


def test_pop_when_there_is_a_delay_then_one_at_a_time_and_not_before_it_is_over(now: list[float]) -> None:
    tested = window(delay_seconds=3.0)
    tested.fill(HOST, [claim(1), claim(2)])

    first = [popped(tested, 1000.0), popped(tested, 1009.0)]
    tested.ended(1)
    early, moment = popped(tested, 1002.9), tested.next_moment()

    assert first == [1, None]
    assert (early, moment) == (None, 1003.0)
    assert popped(tested, 1003.0) == 2


def test_pop_when_the_clock_goes_on_meanwhile_then_a_claim_of_that_moment_waits_for_the_next_pop(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = window(delay_seconds=3.0)
    tested.fill(HOST, [claim(1), claim(2)])
    popped(tested, 1000.0)
    now[0] = 1003.0
    # Ready by the clock, and not yet at the moment that the pop below is about.
    tested.ended(1)
    # A pop that asks for the time again and again would not end.
    monkeypatch.setattr(clock, "monotonic", iter([1003.0] * 100).__next__)

    early, moment = popped(tested, 1002.999), tested.next_moment()

    assert (early, moment) == (None, 1003.0)
    assert popped(tested, 1003.0) == 2


def test_delay_when_the_host_answered_late_then_it_counts_from_there(now: list[float]) -> None:
    tested = window(delay_seconds=3.0)
    tested.fill(HOST, [claim(1), claim(2)])
    tested.pop(now[0])

    now[0] = 1002.0
    tested.rest(HOST)
    tested.ended(1)

    assert popped(tested, 1004.9) is None
    assert popped(tested, 1005.0) == 2


def test_delay_when_robots_asks_for_one_then_the_next_request_keeps_it_already(now: list[float]) -> None:
    tested = window()
    tested.fill(HOST, [claim(1), claim(2)])
    tested.pop(now[0])

    tested.set_delay(HOST, 2.0)

    assert tested.book(HOST, now[0]) == 1002.0
    assert tested.delay_seconds(HOST) == 2.0
    assert tested.delay_seconds(OTHER) == 0.0


def test_delay_when_robots_asks_for_a_shorter_one_then_that_of_the_source_stands(now: list[float]) -> None:
    tested = window(delay_seconds=3.0)

    tested.set_delay(HOST, 1.0)

    assert tested.delay_seconds(HOST) == 3.0


def test_rest_when_there_is_no_delay_then_nothing_waits(now: list[float]) -> None:
    tested = met(window(), now)
    tested.fill(HOST, [claim(1)])

    tested.rest(HOST)

    assert popped(tested, now[0]) == 1


def test_book_when_robots_files_are_asked_for_then_claims_wait_behind_them(now: list[float]) -> None:
    tested = window(delay_seconds=3.0)

    booked = [tested.book(HOST, now[0]), tested.book(HOST, now[0])]
    tested.fill(HOST, [claim(1)])

    assert booked == [1000.0, 1003.0]
    assert popped(tested, 1005.9) is None
    assert popped(tested, 1006.0) == 1


def test_redirected_when_a_claim_comes_to_a_host_then_it_goes_before_the_others(now: list[float]) -> None:
    tested = met(window(), now)
    tested.fill(HOST, [claim(1)])

    tested.fill_first(HOST, claim(2))

    assert [popped(tested, now[0]) for _ in range(2)] == [2, 1]
    assert tested.name_of(2) == HOST


def test_failed_when_connections_fail_in_a_row_then_the_host_is_left_alone_with_its_claims(now: list[float]) -> None:
    tested = window()
    tested.fill(HOST, [claim(1), claim(2), claim(3)])
    tested.pop(now[0])

    given_up = [tested.failed(HOST, 906) for _ in range(FAILURES_TO_PARK)]
    tested.fill(HOST, [claim(4)])

    assert [[one.url_id for one in claims] for claims in given_up] == [[], [], [], [], [2, 3]]
    assert tested.parked(HOST) == 906
    assert tested.parked_hosts() == [(HOST, 906)]
    assert tested.size == 1


def test_failed_when_an_answer_comes_in_between_then_counting_begins_anew(now: list[float]) -> None:
    tested = window()

    for _ in range(FAILURES_TO_PARK - 1):
        tested.failed(HOST, 906)
    tested.answered(HOST)
    tested.failed(HOST, 906)

    assert tested.parked(HOST) is None


@pytest.mark.parametrize("code", [429, 503])
def test_r10_host_when_it_asks_for_a_short_pause_then_all_its_claims_wait(now: list[float], code: int) -> None:
    tested = met(window(), now)
    tested.fill(HOST, [claim(1), claim(2)])

    given_up = tested.told_to_wait(HOST, code, 30.0)

    assert given_up == []
    assert popped(tested, now[0] + 29) is None
    assert popped(tested, now[0] + 30) == 1


def test_r10_host_when_it_asks_for_an_hour_with_429_then_is_left_alone_at_once(now: list[float]) -> None:
    tested = met(window(), now)
    tested.fill(HOST, [claim(1), claim(2)])

    given_up = tested.told_to_wait(HOST, 429, 3600.0)
    tested.fill(HOST, [claim(3)])

    assert [one.url_id for one in given_up] == [1, 2]
    assert tested.parked(HOST) == 429
    assert [one.url_id for one in tested.give_up(HOST)] == [3]
    assert tested.size == 0


def test_r10_host_when_one_page_alone_asks_for_an_hour_then_the_others_go_on(now: list[float]) -> None:
    tested = met(window(), now)
    tested.fill(HOST, [claim(1)])

    tested.told_to_wait(HOST, 503, 3600.0)
    tested.answered(HOST)
    tested.told_to_wait(HOST, 503, 3600.0)

    assert tested.parked(HOST) is None
    assert popped(tested, now[0]) == 1


def test_r10_host_when_503_asks_for_an_hour_again_then_is_left_alone(now: list[float]) -> None:
    tested = met(window(), now)
    tested.fill(HOST, [claim(1)])

    tested.told_to_wait(HOST, 503, 3600.0)
    given_up = tested.told_to_wait(HOST, 503, 3600.0)

    assert [one.url_id for one in given_up] == [1]
    assert tested.parked(HOST) == 503


def test_wanted_when_claims_wait_then_no_more_than_there_is_room_for(now: list[float]) -> None:
    slow, quick = window(delay_seconds=1.0), window()
    quick.fill(HOST, [claim() for _ in range(WINDOW_ROWS - 10)])

    assert slow.wanted(HOST) == 2
    assert quick.wanted(HOST) == 0
    assert quick.wanted(OTHER) == 10


def test_drain_when_the_run_ends_then_what_waits_comes_out_and_nothing_goes_any_more(now: list[float]) -> None:
    tested = window(delay_seconds=1.0)
    tested.fill(HOST, [claim(1), claim(2), claim(3)])
    tested.pop(now[0])

    drained = tested.drain()

    assert [one.url_id for one in drained] == [2, 3]
    assert (tested.size, tested.in_flight) == (0, 1)
    tested.ended(1)
    assert popped(tested, 2000.0) is None


def test_enter_when_places_are_taken_then_it_gets_the_next_before_a_claim(now: list[float]) -> None:
    tested = met(window(), now)
    tested.fill(HOST, [claim(1), claim(2), claim(3)])
    both = [popped(tested, now[0]) for _ in range(2)]
    tested.ask(HOST)

    refused = tested.enter(HOST, now[0])
    tested.ended(1)
    kept = popped(tested, now[0])
    entered = tested.enter(HOST, now[0])
    tested.leave(HOST)

    assert both == [1, 2]
    assert refused > 0
    assert (kept, entered) == (None, 0.0)
    assert popped(tested, now[0]) == 3


def test_enter_when_claims_wait_then_they_take_turns(now: list[float]) -> None:
    tested = met(window(host_concurrency=1), now)
    tested.fill(HOST, [claim(1), claim(2)])
    order = []
    for _ in range(2):
        tested.ask(HOST)
        order.append(popped(tested, now[0]))
        order.append(tested.enter(HOST, now[0]))
        tested.ask(HOST)
        tested.leave(HOST)
        order.append(tested.enter(HOST, now[0]) > 0)
        page = popped(tested, now[0])
        order.append(page)
        tested.ended(page or 0)
        tested.ask_no_more(HOST)

    assert order == [None, 0.0, True, 1, None, 0.0, True, 2]


def test_enter_when_a_delay_is_in_force_then_one_at_a_time_and_not_before_it(now: list[float]) -> None:
    tested = window(delay_seconds=2.0)
    for _ in range(2):
        tested.ask(HOST)

    first = tested.enter(HOST, now[0])
    beside = tested.enter(HOST, now[0])
    tested.leave(HOST)
    early = tested.enter(HOST, now[0] + 1.5)
    late = tested.enter(HOST, now[0] + 2.0)

    assert (first, late) == (0.0, 0.0)
    assert beside > 0
    assert early == pytest.approx(0.5)


def test_ask_when_taken_back_then_claims_have_all_places(now: list[float]) -> None:
    tested = met(window(), now)
    tested.ask(HOST)
    tested.fill(HOST, [claim(1), claim(2)])
    before = [popped(tested, now[0]) for _ in range(2)]

    tested.ask_no_more(HOST)

    assert before == [1, None]
    assert popped(tested, now[0]) == 2


def test_enter_when_the_host_is_left_alone_then_it_waits_for_its_pause_and_not_for_its_claims(now: list[float]) -> None:
    tested = met(window(), now)
    tested.ask(HOST)
    assert tested.enter(HOST, now[0]) == 0.0
    tested.leave(HOST)
    for _ in range(FAILURES_TO_PARK):
        tested.failed(HOST, 906)
    tested.fill(HOST, [claim(1)])
    tested.ask(HOST)

    early, late = tested.enter(HOST, now[0]), tested.enter(HOST, now[0] + 4.0)

    assert early > 0
    assert late == 0.0
