"""Pauses of hosts that fail, turns that processes share, delays by the hour, and the cap on sites (C2, C3, X-R10)."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from searchcrawl import clock
from searchcrawl.frontier.window import Window
from searchcrawl.politeness.delay_schedule import DelaySchedule, DelayWindow, parse_days
from tests.factories import claim
from tests.unit.frontier.support_window import HOST, OTHER, met, popped


def window(*, delay_seconds: float = 0.0, sites: int = 0) -> Window:
    return Window(host_concurrency=2, delay_seconds=delay_seconds, sites=sites)


@pytest.mark.parametrize(("code", "connected"), [(906, False), (429, True), (503, True)])
def test_r10_host_when_it_fails_again_and_again_then_its_pause_grows_and_it_is_left_alone(
    now: list[float], code: int, connected: bool
) -> None:
    tested = window()
    tested.fill(HOST, [claim(number) for number in range(9)])
    moments = []
    while tested.parked(HOST) is None:
        moment = tested.next_moment() or now[0]
        now[0] = moment
        moments.append(moment - 1000.0)
        number = popped(tested, now[0])
        assert number is not None
        tested.failed(HOST, code, connected=connected)
        tested.ended(number)

    assert moments == [0.0, 0.125, 0.375, 0.875, 1.875]
    assert tested.parked(HOST) == code


def test_r10_host_when_it_answers_again_then_the_pause_is_given_up(now: list[float]) -> None:
    tested = met(window(), now)
    tested.fill(HOST, [claim(1), claim(2)])
    for _ in range(3):
        tested.failed(HOST, 906)
    now[0] += 1.0

    tested.answered(HOST)
    both = [popped(tested, now[0]) for _ in range(2)]
    tested.failed(HOST, 906)

    assert both == [1, 2]
    assert tested.next_at(HOST) == now[0] + 0.125


def test_r10_host_when_some_pages_are_good_then_others_with_503_only_slow_it_down(now: list[float]) -> None:
    tested = met(window(), now)
    tested.answered(HOST)

    pauses = []
    for _ in range(30):
        tested.failed(HOST, 503, connected=True)
        pauses.append(tested.next_at(HOST) - now[0])
        now[0] = tested.next_at(HOST)

    assert tested.parked(HOST) is None
    assert pauses == [0.125, 0.25, 0.5, *[1.0] * 27]


def test_r10_host_when_told_to_pause_then_nothing_goes_and_the_table_is_told(now: list[float]) -> None:
    tested, asked = met(window(), now), []
    tested.share(lambda: asked.append(now[0]))
    tested.fill(HOST, [claim(1)])

    tested.pause(HOST, 30.0)

    assert popped(tested, now[0] + 29.9) is None
    assert popped(tested, now[0] + 30.0) == 1
    assert asked == [1000.0]
    assert [(name, news.until) for name, news in tested.news().items()] == [(HOST, 1030.0)]
    assert tested.news() == {}


@pytest.mark.parametrize("known", [True, False])
def test_r10_host_when_others_were_told_to_wait_long_then_it_is_left_alone(now: list[float], known: bool) -> None:
    tested = window()
    if known:
        tested.fill(HOST, [claim(1)])

    tested.close_until({HOST: (now[0] + 61.0, 429), OTHER: (now[0] + 59.0, 503)})
    parked = tested.parked(HOST), tested.parked(OTHER)
    tested.fill(HOST, [claim(2)])
    tested.fill(OTHER, [claim(3)])

    assert parked == (429, None)
    assert tested.parked_hosts() == [(HOST, 429)]
    assert (popped(tested, now[0] + 58.0), popped(tested, now[0] + 59.0)) == (None, 3)


def test_turn_when_turns_are_shared_then_a_claim_waits_until_one_is_booked(now: list[float]) -> None:
    tested, asked = window(delay_seconds=3.0), []
    tested.share(lambda: asked.append(now[0]))
    tested.fill(HOST, [claim(1), claim(2)])

    before = popped(tested, now[0])
    wishes = tested.wishes()
    tested.give(HOST, now[0] + 1.0)
    early, moment = popped(tested, now[0]), tested.next_moment()
    taken = popped(tested, now[0] + 1.0)

    assert (before, early, taken) == (None, None, 1)
    assert [(wish.name, wish.delay_seconds, wish.missed) for wish in wishes] == [(HOST, 3.0, False)]
    assert (moment, asked, tested.wishes()) == (1001.0, [1000.0], [])


def test_turn_when_it_went_by_unused_then_another_is_wished_for(now: list[float]) -> None:
    tested = window(delay_seconds=3.0)
    tested.share(lambda: None)
    tested.fill(HOST, [claim(1)])
    tested.wishes()
    tested.give(HOST, now[0])
    now[0] += 0.2

    late = popped(tested, now[0])

    assert late is None
    assert [(wish.name, wish.missed) for wish in tested.wishes()] == [(HOST, True)]


def test_turn_when_there_is_no_delay_then_none_is_needed(now: list[float]) -> None:
    tested = met(window(), now)
    tested.share(lambda: pytest.fail("asked for a turn"))
    tested.fill(HOST, [claim(1)])

    assert popped(tested, now[0]) == 1


def test_c2_delay_when_the_clock_leaves_a_window_then_that_of_the_hour_is_kept(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = [9]
    monkeypatch.setattr(clock, "now", lambda: datetime(2025, 6, 2, hour[0], tzinfo=UTC))
    day = DelayWindow(days=parse_days("mon-fri"), from_minute=8 * 60, to_minute=18 * 60, delay_seconds=5.0)
    plan = DelaySchedule([day], zone=UTC, otherwise_seconds=1.0)
    tested = Window(host_concurrency=2, delay_seconds=1.0, pace=lambda: plan.delay_seconds(clock.now()))
    tested.fill(HOST, [claim(number) for number in range(1, 7)])
    moments: list[float] = []

    for hour[0] in (9, 17, 18, 3, 8):
        now[0] = max(now[0], tested.next_at(HOST))
        number = popped(tested, now[0])
        assert number is not None
        moments.append(now[0])
        tested.rest(HOST)
        tested.ended(number)

    assert [after - before for before, after in pairwise(moments)] == [5.0, 5.0, 1.0, 1.0]
    assert tested.delay_seconds(OTHER) == 5.0


def test_c3_sites_when_capped_then_no_more_hosts_are_asked_at_once_and_all_have_their_turn(now: list[float]) -> None:
    tested = window(sites=2)
    names = [f"h{number}.test:80" for number in range(6)]
    for number, name in enumerate(names):
        tested.fill(name, [claim(10 * number), claim(10 * number + 1)])
    flying: dict[int, str] = {}
    done: list[int] = []
    most = 0

    while len(done) < 12:
        while (found := tested.pop(now[0])) is not None:
            flying[found[1].url_id] = found[0]
        most = max(most, len(set(flying.values())))
        number, _ = flying.popitem()
        tested.ended(number)
        done.append(number)

    assert most == 2
    assert len(set(done)) == 12


def test_c3_sites_when_there_is_a_delay_then_a_host_keeps_its_place_until_it_is_over(now: list[float]) -> None:
    tested = window(sites=1, delay_seconds=2.0)
    tested.fill(HOST, [claim(1)])
    tested.fill(OTHER, [claim(2)])

    first = popped(tested, now[0])
    tested.ended(1)
    early, moment = popped(tested, now[0] + 1.9), tested.next_moment()
    second = popped(tested, now[0] + 2.0)

    assert (first, early, second) == (1, None, 2)
    assert moment == now[0] + 2.0


def test_c3_sites_when_a_robots_file_is_wanted_then_it_waits_for_a_place_too(now: list[float]) -> None:
    tested = window(sites=1)
    tested.fill(HOST, [claim(1)])
    tested.pop(now[0])

    beside, own = tested.arrive(OTHER, now[0]), tested.arrive(HOST, now[0])
    tested.ended(1)
    held = tested.arrive(OTHER, now[0])
    tested.depart(HOST)
    free = tested.arrive(OTHER, now[0])

    assert (beside > 0, own, held > 0, free) == (True, 0.0, True, 0.0)


def test_r10_host_when_it_fails_under_a_delay_then_its_pause_begins_with_that(now: list[float]) -> None:
    tested = window(delay_seconds=2.0)

    pauses = []
    for _ in range(7):
        tested.failed(HOST, 906)
        pauses.append(tested.next_at(HOST) - now[0])

    assert pauses == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
