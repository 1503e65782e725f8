"""Delays, hosts that processes share, side requests, and the cap on hosts at once (C2, C3)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from searchcrawl import clock
from searchcrawl.exceptions import StoreError
from searchcrawl.frontier.window import Window
from searchcrawl.politeness.backoff import FAILURES_TO_BLOCK
from searchcrawl.politeness.host_registry import DelaySchedule, DelayWindow, HostRegistry
from searchcrawl.rules.week_window import parse_days, parse_minute
from searchcrawl.store.host_owners import TakenHost
from tests.factories import claim
from tests.unit.frontier.support_window import HOST, OTHER, build_window, met, popped


def test_delay_when_the_host_answered_late_then_it_counts_from_there(now: list[float]) -> None:
    tested = build_window(delay_seconds=3.0)
    tested.fill(HOST, [claim(1), claim(2)])
    tested.pop(now[0])

    now[0] = 1002.0
    tested.hosts.start_delay(HOST)
    tested.release(1)

    assert popped(tested, 1004.9) is None
    assert popped(tested, 1005.0) == 2


def test_delay_when_robots_asks_for_one_then_the_next_request_keeps_it_already(now: list[float]) -> None:
    tested = build_window()
    tested.fill(HOST, [claim(1), claim(2)])
    tested.pop(now[0])

    tested.hosts.set_crawl_delay(HOST, 2.0)

    assert tested.hosts.reserve(HOST, now[0]) == 1002.0
    assert tested.hosts.delay_seconds(HOST) == 2.0
    assert tested.hosts.delay_seconds(OTHER) == 0.0


def test_delay_when_robots_asks_for_a_shorter_one_then_that_of_the_source_stands(now: list[float]) -> None:
    tested = build_window(delay_seconds=3.0)

    tested.hosts.set_crawl_delay(HOST, 1.0)

    assert tested.hosts.delay_seconds(HOST) == 3.0


def test_rest_when_there_is_no_delay_then_nothing_waits(now: list[float]) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1)])

    tested.hosts.start_delay(HOST)

    assert popped(tested, now[0]) == 1


def test_reserve_when_robots_files_are_requested_then_claims_wait_behind_them(now: list[float]) -> None:
    tested = build_window(delay_seconds=3.0)

    reserved = [tested.hosts.reserve(HOST, now[0]), tested.hosts.reserve(HOST, now[0])]
    tested.fill(HOST, [claim(1)])

    assert reserved == [1000.0, 1003.0]
    assert popped(tested, 1005.9) is None
    assert popped(tested, 1006.0) == 1


def test_acquire_when_places_are_taken_then_it_gets_the_next_before_a_claim(now: list[float]) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1), claim(2), claim(3)])
    both = [popped(tested, now[0]) for _ in range(2)]
    tested.hosts.announce_side_request(HOST)

    refused = tested.hosts.try_acquire_request(HOST, now[0])
    tested.release(1)
    early = popped(tested, now[0])
    acquired = tested.hosts.try_acquire_request(HOST, now[0])
    tested.hosts.release_request(HOST)

    assert both == [1, 2]
    assert refused > 0
    assert (early, acquired) == (None, 0.0)
    assert popped(tested, now[0]) == 3


def test_acquire_when_claims_wait_then_they_alternate(now: list[float]) -> None:
    tested = met(build_window(host_concurrency=1), now)
    tested.fill(HOST, [claim(1), claim(2)])
    order = []
    for _ in range(2):
        tested.hosts.announce_side_request(HOST)
        order.append(popped(tested, now[0]))
        order.append(tested.hosts.try_acquire_request(HOST, now[0]))
        tested.hosts.announce_side_request(HOST)
        tested.hosts.release_request(HOST)
        order.append(tested.hosts.try_acquire_request(HOST, now[0]) > 0)
        page = popped(tested, now[0])
        order.append(page)
        tested.release(page or 0)
        tested.hosts.cancel_side_request(HOST)

    assert order == [None, 0.0, True, 1, None, 0.0, True, 2]


def test_acquire_when_a_delay_is_in_force_then_one_at_a_time_and_not_before_it(now: list[float]) -> None:
    tested = build_window(delay_seconds=2.0)
    for _ in range(2):
        tested.hosts.announce_side_request(HOST)

    first = tested.hosts.try_acquire_request(HOST, now[0])
    beside = tested.hosts.try_acquire_request(HOST, now[0])
    tested.hosts.release_request(HOST)
    early = tested.hosts.try_acquire_request(HOST, now[0] + 1.5)
    late = tested.hosts.try_acquire_request(HOST, now[0] + 2.0)

    assert (first, late) == (0.0, 0.0)
    assert beside > 0
    assert early == pytest.approx(0.5)


def test_ask_when_taken_back_then_claims_have_all_places(now: list[float]) -> None:
    tested = met(build_window(), now)
    tested.hosts.announce_side_request(HOST)
    tested.fill(HOST, [claim(1), claim(2)])
    before = [popped(tested, now[0]) for _ in range(2)]

    tested.hosts.cancel_side_request(HOST)

    assert before == [1, None]
    assert popped(tested, now[0]) == 2


def test_acquire_when_the_host_is_blocked_then_it_waits_for_its_pause_and_not_for_its_claims(now: list[float]) -> None:
    tested = met(build_window(), now)
    tested.hosts.announce_side_request(HOST)
    assert tested.hosts.try_acquire_request(HOST, now[0]) == 0.0
    tested.hosts.release_request(HOST)
    for _ in range(FAILURES_TO_BLOCK):
        tested.hosts.record_failure(HOST, 906)
    tested.fill(HOST, [claim(1)])
    tested.hosts.announce_side_request(HOST)

    early, late = tested.hosts.try_acquire_request(HOST, now[0]), tested.hosts.try_acquire_request(HOST, now[0] + 4.0)

    assert early > 0
    assert late == 0.0


def shared(tested: Window, *, lease_until_ms: float = math.inf) -> list[float]:
    """Has the hosts of a window be shared with other processes; the list gets a value each time that the store is needed."""
    woken: list[float] = []
    tested.hosts.share(lambda: woken.append(clock.monotonic()), lease_until_ms=lambda: lease_until_ms)
    return woken


def grant(tested: Window, *, wait_ms: int = 0, pause_ms: int = 0, code: int = 0, name: str = HOST) -> None:
    """Takes over a host, as the store has it."""
    tested.hosts.take_changes()
    tested.hosts.grant(name, 7, TakenHost(wait_ms, pause_ms, code), clock.monotonic())


@pytest.mark.parametrize("delay_seconds", [0.0, 3.0])
def test_host_when_it_is_shared_then_a_claim_waits_until_this_process_owns_it(
    now: list[float], delay_seconds: float
) -> None:
    tested = build_window(delay_seconds=delay_seconds)
    woken = shared(tested)
    tested.fill(HOST, [claim(1), claim(2)])

    before, asked = popped(tested, now[0]), tested.hosts.take_changes().asked
    grant(tested, wait_ms=1000)
    early, moment = popped(tested, now[0]), tested.next_moment()
    taken = popped(tested, now[0] + 1.0)

    assert (before, early, taken) == (None, None, 1)
    assert (asked, moment, woken) == ({HOST: delay_seconds}, 1001.0, [1000.0])


def test_host_when_it_is_owned_then_each_of_its_requests_keeps_the_delay_and_the_store_is_not_asked(
    now: list[float],
) -> None:
    tested = build_window(delay_seconds=3.0)
    woken = shared(tested)
    tested.fill(HOST, [claim(number) for number in range(1, 5)])
    grant(tested)
    moments = []

    while (moment := tested.next_moment() or now[0]) < 1100 and len(moments) < 4:
        now[0] = moment
        number = popped(tested, moment)
        assert number is not None
        moments.append(moment)
        tested.release(number)

    assert moments == [1000.0, 1003.0, 1006.0, 1009.0]
    assert woken == [1000.0]


def test_host_when_another_process_wants_it_then_it_goes_after_its_turn_with_what_it_has_to_be_spared(
    now: list[float],
) -> None:
    tested = build_window(delay_seconds=0.5)
    shared(tested)
    tested.fill(HOST, [claim(number) for number in range(1, 99)])
    grant(tested)
    requests = 0
    while not (gone := tested.hosts.find_leaving([HOST], now[0])):
        number = popped(tested, now[0])
        if number is not None:
            requests += 1
            # Nobody gets a host to which a request is under way.
            assert tested.hosts.find_leaving([HOST], now[0]) == {}
            tested.release(number)
        now[0] += 0.25
    refused = popped(tested, now[0] + 9.0)
    tested.hosts.ask_again([HOST])

    assert (requests, gone, refused) == (4, {7: 0.25}, None)
    assert tested.hosts.take_changes().asked == {HOST: 0.5}


def test_host_when_another_process_wants_it_and_nothing_is_due_then_it_goes_at_once(now: list[float]) -> None:
    tested = build_window(delay_seconds=3.0)
    shared(tested)
    tested.fill(HOST, [claim(1)])
    grant(tested)
    tested.pop(now[0])
    tested.release(1)

    gone = tested.hosts.find_leaving([HOST], now[0] + 0.5)

    assert gone == {7: 2.5}


def test_host_when_it_waits_for_the_cap_on_hosts_then_another_process_that_wants_it_gets_it(now: list[float]) -> None:
    tested = build_window(sites=1)
    shared(tested)
    for number, name in enumerate((HOST, OTHER)):
        tested.fill(name, [claim(number)])
    grant(tested)
    tested.pop(now[0])
    grant(tested, name=OTHER)
    tested.pop(now[0])

    early, late = tested.hosts.find_leaving([OTHER], now[0] + 4.0), tested.hosts.find_leaving([OTHER], now[0] + 5.0)

    assert (early, late) == ({}, {7: 0.0})


def test_host_when_it_asked_for_a_pause_then_it_is_not_handed_over_before_the_store_knows(now: list[float]) -> None:
    tested = met(build_window(), now)
    shared(tested)
    grant(tested)
    tested.hosts.record_retry_after(HOST, 429, 3600.0)

    early, reports = tested.hosts.find_leaving([HOST], now[0]), tested.hosts.take_changes().reports

    assert (early, list(reports)) == ({}, [HOST])
    assert tested.hosts.find_leaving([HOST], now[0]) == {7: 60.0}


def test_host_when_robots_asks_for_a_longer_delay_then_the_store_is_told(now: list[float]) -> None:
    tested = build_window(delay_seconds=1.0)
    shared(tested)
    grant(tested)

    tested.hosts.set_crawl_delay(HOST, 0.5)
    shorter = tested.hosts.take_changes().slowed
    tested.hosts.set_crawl_delay(HOST, 4.0)

    assert (shorter, tested.hosts.take_changes().slowed) == ({}, {7: 4.0})


def test_lease_when_it_is_over_then_nothing_is_sent_until_the_hosts_are_taken_anew(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = [10_000]
    monkeypatch.setattr(clock, "boot_ms", lambda: boot[0])
    tested, until = build_window(), [11_000]
    tested.hosts.share(lambda: None, lease_until_ms=lambda: until[0])
    grant(tested)
    tested.hosts.announce_side_request(HOST)
    allowed = [tested.hosts.may_send(HOST)]

    boot[0] = 11_001
    late = tested.hosts.try_acquire_request(HOST, now[0]), tested.hosts.reserve(HOST, now[0])
    allowed.append(tested.hosts.may_send(HOST))
    # Others took it; this process learns of it as it renews the lease.
    tested.hosts.disown_all()
    until[0] = 41_000
    allowed.append(tested.hosts.may_send(HOST))
    asked = tested.hosts.take_changes().asked
    grant(tested)
    allowed.append(tested.hosts.may_send(HOST))
    # A request that began before waits for another turn.
    allowed.append(tested.hosts.may_send(HOST, now[0] - 1))

    assert allowed == [True, False, False, True, False]
    assert (late[0] > 0, late[1]) == (True, None)
    assert asked == {HOST: 0.0}
    assert tested.hosts.try_acquire_request(HOST, now[0]) == 0.0


def test_side_request_when_no_host_is_taken_any_more_then_it_learns_of_it(now: list[float]) -> None:
    hosts = build_window().hosts
    hosts.share(lambda: None, lease_until_ms=lambda: math.inf)
    hosts.announce_side_request(HOST)
    woken: list[bool] = []
    waits = hosts.try_acquire_request(HOST, now[0], lambda: woken.append(True))

    hosts.fail(StoreError("no space left"))

    assert (waits > 0, woken) == (True, [True])
    for ask in (hosts.try_acquire_request, hosts.try_acquire_host, hosts.reserve):
        with pytest.raises(StoreError, match="no host can be asked any more: no space left"):
            ask(HOST, now[0])


def test_c2_delay_when_the_clock_leaves_a_window_then_that_of_the_hour_is_in_force(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = [9]
    monkeypatch.setattr(clock, "now", lambda: datetime(2025, 6, 2, hour[0], tzinfo=UTC))
    day = DelayWindow(days=parse_days("mon-fri"), from_minute=8 * 60, to_minute=18 * 60, delay_seconds=5.0)
    schedule = DelaySchedule([day], zone=UTC, otherwise_seconds=1.0)
    tested = Window(HostRegistry(host_concurrency=2, delay_seconds=1.0, schedule=schedule))
    tested.fill(HOST, [claim(number) for number in range(1, 7)])
    moments: list[float] = []

    for hour[0] in (9, 17, 18, 3, 8):
        now[0] = max(now[0], tested.hosts.next_at(HOST))
        number = popped(tested, now[0])
        assert number is not None
        moments.append(now[0])
        tested.hosts.start_delay(HOST)
        tested.release(number)

    assert [after - before for before, after in pairwise(moments)] == [5.0, 5.0, 1.0, 1.0]
    assert tested.hosts.delay_seconds(OTHER) == 5.0


def test_c3_sites_when_capped_then_no_more_hosts_are_requested_at_once_and_all_are_served(now: list[float]) -> None:
    tested = build_window(sites=2)
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
        tested.release(number)
        done.append(number)

    assert most == 2
    assert len(set(done)) == 12


def test_c3_sites_when_there_is_a_delay_then_a_host_keeps_its_place_until_it_is_over(now: list[float]) -> None:
    tested = build_window(sites=1, delay_seconds=2.0)
    tested.fill(HOST, [claim(1)])
    tested.fill(OTHER, [claim(2)])

    first = popped(tested, now[0])
    tested.release(1)
    early, moment = popped(tested, now[0] + 1.9), tested.next_moment()
    second = popped(tested, now[0] + 2.0)

    assert (first, early, second) == (1, None, 2)
    assert moment == now[0] + 2.0


def test_c3_sites_when_a_robots_file_is_wanted_then_it_waits_for_a_place_too(now: list[float]) -> None:
    tested = build_window(sites=1)
    tested.fill(HOST, [claim(1)])
    tested.pop(now[0])

    beside, own = tested.hosts.try_acquire_host(OTHER, now[0]), tested.hosts.try_acquire_host(HOST, now[0])
    tested.release(1)
    held = tested.hosts.try_acquire_host(OTHER, now[0])
    tested.hosts.release_host(HOST)
    free = tested.hosts.try_acquire_host(OTHER, now[0])

    assert (beside > 0, own, held > 0, free) == (True, 0.0, True, 0.0)


def registry(**values: Any) -> HostRegistry:
    """One that keeps five idle hosts in memory."""
    return HostRegistry(**{"delay_seconds": 0.0, "host_concurrency": 2, "most_hosts": 5, **values})


def visited(tested: Window, now: list[float], names: Iterable[str]) -> None:
    for name in names:
        met(tested, now, name)


def test_hosts_when_very_many_were_visited_then_the_last_used_are_in_memory(now: list[float]) -> None:
    tested = Window(registry())
    visited(tested, now, (f"h{number}.test:80" for number in range(200)))

    assert tested.hosts.count_hosts() == 5


@pytest.mark.parametrize("used", ["claims wait", "in flight", "side request", "robots", "delay"])
def test_host_when_something_is_under_way_then_it_stays_in_memory(now: list[float], used: str) -> None:
    tested = Window(registry(delay_seconds=60.0 if used == "delay" else 0.0))
    hosts = tested.hosts
    if used == "claims wait":
        tested.fill(HOST, [claim(1)])
    elif used == "in flight":
        tested.fill(HOST, [claim(1)])
        tested.pop(now[0])
    elif used == "side request":
        hosts.announce_side_request(HOST)
    elif used == "robots":
        hosts.try_acquire_host(HOST, now[0])
    else:
        met(tested, now)
    before = hosts.find_or_add(HOST)
    for number in range(200):
        hosts.find_or_add(f"h{number}.test:80")

    assert hosts.find_or_add(HOST) is before


def test_host_when_it_was_dropped_then_its_delay_its_failures_and_its_block_still_count(now: list[float]) -> None:
    hosts = registry()
    hosts.share(lambda: None, lease_until_ms=lambda: math.inf)
    hosts.set_crawl_delay("slow.test:80", 7.0)
    for _ in range(FAILURES_TO_BLOCK):
        hosts.record_failure("dead.test:80", 906)
    for _ in range(FAILURES_TO_BLOCK - 1):
        hosts.record_failure("failing.test:80", 906)
    hosts.take_changes()
    now[0] += 3600
    for number in range(50):
        hosts.find_or_add(f"h{number}.test:80")
    count = hosts.count_hosts()
    hosts.record_failure("failing.test:80", 906)

    assert count == 8
    assert hosts.delay_seconds("slow.test:80") == 7.0
    assert hosts.blocked_code("dead.test:80") == 906
    assert hosts.blocked_code("failing.test:80") == 906


#: A Monday.
MONDAY = datetime(2025, 6, 2, tzinfo=UTC)


def window(days: str, from_: str, to: str, delay_seconds: float = 5.0) -> DelayWindow:
    return DelayWindow(
        days=parse_days(days), from_minute=parse_minute(from_), to_minute=parse_minute(to), delay_seconds=delay_seconds
    )


def plan(*windows: DelayWindow, zone: str = "UTC") -> DelaySchedule:
    return DelaySchedule(windows, zone=ZoneInfo(zone), otherwise_seconds=1.0)


@pytest.mark.parametrize(
    ("days", "numbers"),
    [
        ("mon-fri", {0, 1, 2, 3, 4}),
        ("sat,sun", {5, 6}),
        ("sat-mon", {5, 6, 0}),
        ("wed", {2}),
        ("mon-sun", set(range(7))),
        ("fri-fri,mon", {4, 0}),
    ],
)
def test_days_when_named_then_they_are_those(days: str, numbers: set[int]) -> None:
    assert parse_days(days) == numbers


WORKDAYS, FRIDAY_NIGHT = window("mon-fri", "08:00", "18:00"), window("fri", "22:00", "06:00")
MONDAYS, ALWAYS = window("mon", "08:00", "18:00", 2.0), window("mon-sun", "00:00", "00:00", 9.0)


@pytest.mark.parametrize(
    ("windows", "day", "time", "delay_seconds"),
    [
        ([WORKDAYS], 0, "07:59", 1.0),
        ([WORKDAYS], 0, "08:00", 5.0),
        ([WORKDAYS], 4, "17:59", 5.0),
        ([WORKDAYS], 4, "18:00", 1.0),
        ([WORKDAYS], 5, "12:00", 1.0),
        ([WORKDAYS], 6, "12:00", 1.0),
        # What goes over midnight belongs to the day it began, also over the end of the week.
        ([FRIDAY_NIGHT], 4, "21:59", 1.0),
        ([FRIDAY_NIGHT], 4, "22:00", 5.0),
        ([FRIDAY_NIGHT], 5, "00:00", 5.0),
        ([FRIDAY_NIGHT], 5, "05:59", 5.0),
        ([FRIDAY_NIGHT], 5, "06:00", 1.0),
        ([FRIDAY_NIGHT], 4, "03:00", 1.0),
        ([FRIDAY_NIGHT], 5, "22:00", 1.0),
        ([window("sun", "22:00", "06:00")], 0, "05:00", 5.0),
        # The longest counts, whatever their order.
        ([MONDAYS, ALWAYS], 0, "09:00", 9.0),
        ([ALWAYS, MONDAYS], 0, "09:00", 9.0),
        ([window("mon", "00:00", "06:00", 0.0)], 0, "00:00", 0.0),
    ],
)
def test_delay_when_windows_are_in_force_then_it_is_theirs(
    windows: list[DelayWindow], day: int, time: str, delay_seconds: float
) -> None:
    moment = MONDAY + timedelta(days=day, minutes=parse_minute(time))

    assert plan(*windows).delay_seconds(moment) == delay_seconds


def test_delay_when_a_window_begins_and_ends_at_one_time_then_it_is_a_whole_day() -> None:
    tested = plan(window("sat,sun", "00:00", "00:00"))

    hours = [hour for hour in range(7 * 24) if tested.delay_seconds(MONDAY + timedelta(hours=hour)) == 5.0]

    assert hours == list(range(5 * 24, 7 * 24))


def test_delay_when_a_zone_is_named_then_its_clock_counts_also_when_that_is_put_forward() -> None:
    tested = plan(window("mon-sun", "08:00", "18:00"), zone="Europe/Berlin")

    winter = [tested.delay_seconds(datetime(2025, 3, 29, 7, minute, tzinfo=UTC)) for minute in (0, 59)]
    summer = [tested.delay_seconds(datetime(2025, 3, 30, hour, 0, tzinfo=UTC)) for hour in (5, 6)]

    assert winter == [5.0, 5.0]
    assert summer == [1.0, 5.0]
