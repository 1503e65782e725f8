"""Pauses of hosts that fail or ask for them, and hosts that are blocked (L5, X-R10)."""

from __future__ import annotations

import math

import pytest

from searchcrawl import clock
from searchcrawl.frontier.window import Window
from searchcrawl.items import Outcome
from searchcrawl.politeness.backoff import FAILURES_TO_BLOCK, PAUSES_TO_BLOCK
from searchcrawl.store.host_owners import TakenHost
from tests.factories import claim
from tests.unit.frontier.support_window import HOST, OTHER, build_window, met, popped


def blocked(tested: Window) -> list[tuple[str, int, int]]:
    """Takes the claims of blocked hosts out: host, code and row of each."""
    return [(name, code, one.url_id) for name, code, one in tested.take_blocked(HOST)]


def test_failed_when_connections_fail_in_a_row_then_the_host_is_blocked_with_its_claims(now: list[float]) -> None:
    tested = build_window()
    tested.fill(HOST, [claim(1), claim(2), claim(3)])
    tested.pop(now[0])

    taken_out = []
    for _ in range(FAILURES_TO_BLOCK):
        tested.hosts.record_failure(HOST, 906)
        taken_out.append(blocked(tested))
    tested.fill(HOST, [claim(4)])

    assert taken_out == [[], [], [], [], [(HOST, 906, 2), (HOST, 906, 3)]]
    assert tested.hosts.blocked_code(HOST) == 906
    assert tested.size == 1
    assert blocked(tested) == [(HOST, 906, 4)]


@pytest.mark.parametrize(
    ("code", "retry_after", "is_blocked"),
    [
        (906, None, True),
        (503, None, True),
        (504, 3600.0, True),
        (429, 3600.0, True),
        (404, None, False),
        (903, 9.0, False),
    ],
)
def test_host_when_visits_end_then_only_some_ends_count_against_it(
    now: list[float], code: int, retry_after: float | None, is_blocked: bool
) -> None:
    hosts = build_window().hosts
    end = Outcome(claim=claim(1), code=code, retry_after_seconds=retry_after)

    answers = [hosts.record_visit(HOST, end) for _ in range(FAILURES_TO_BLOCK)]

    assert answers[-1] is is_blocked
    assert hosts.blocked_code(HOST) == (code if is_blocked else None)


@pytest.mark.parametrize("code", [429, 503])
def test_r10_host_when_it_asks_for_a_short_pause_then_all_its_claims_wait(now: list[float], code: int) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1), claim(2)])

    tested.hosts.record_retry_after(HOST, code, 30.0)

    assert blocked(tested) == []
    assert popped(tested, now[0] + 29) is None
    assert popped(tested, now[0] + 30) == 1


def test_r10_host_when_it_asks_for_an_hour_with_429_then_is_blocked_at_once(now: list[float]) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1), claim(2)])

    tested.hosts.record_retry_after(HOST, 429, 3600.0)
    taken_out = blocked(tested)
    tested.fill(HOST, [claim(3)])

    assert taken_out == [(HOST, 429, 1), (HOST, 429, 2)]
    assert tested.hosts.blocked_code(HOST) == 429
    assert blocked(tested) == [(HOST, 429, 3)]
    assert tested.size == 0


@pytest.mark.parametrize("answers", [True, False])
def test_r10_host_when_503_asks_for_an_hour_again_then_is_blocked_unless_others_go_on(
    now: list[float], answers: bool
) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1)])

    tested.hosts.record_retry_after(HOST, 503, 3600.0)
    if answers:
        tested.hosts.record_answer(HOST)
    tested.hosts.record_retry_after(HOST, 503, 3600.0)

    assert tested.hosts.blocked_code(HOST) == (None if answers else 503)
    assert blocked(tested) == ([] if answers else [(HOST, 503, 1)])
    assert popped(tested, now[0]) == (1 if answers else None)


@pytest.mark.parametrize(("code", "connected"), [(906, False), (429, True), (503, True)])
def test_r10_host_when_it_fails_again_and_again_then_its_pause_grows_and_it_is_blocked(
    now: list[float], code: int, connected: bool
) -> None:
    tested = build_window()
    tested.fill(HOST, [claim(number) for number in range(9)])
    moments = []
    while tested.hosts.blocked_code(HOST) is None:
        moment = tested.next_moment() or now[0]
        now[0] = moment
        moments.append(moment - 1000.0)
        number = popped(tested, now[0])
        assert number is not None
        tested.hosts.record_failure(HOST, code, connected=connected)
        tested.release(number)

    assert moments == [0.0, 0.125, 0.375, 0.875, 1.875]
    assert tested.hosts.blocked_code(HOST) == code


def test_r10_host_when_it_answers_again_then_the_pause_ends(now: list[float]) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1), claim(2)])
    for _ in range(3):
        tested.hosts.record_failure(HOST, 906)
    now[0] += 1.0

    tested.hosts.record_answer(HOST)
    both = [popped(tested, now[0]) for _ in range(2)]
    tested.hosts.record_failure(HOST, 906)

    assert both == [1, 2]
    assert tested.hosts.next_at(HOST) == now[0] + 0.125


def test_r10_host_when_some_pages_are_good_then_others_with_503_only_slow_it_down(now: list[float]) -> None:
    tested = met(build_window(), now)
    tested.hosts.record_answer(HOST)

    pauses = []
    for _ in range(30):
        tested.hosts.record_failure(HOST, 503, connected=True)
        pauses.append(tested.hosts.next_at(HOST) - now[0])
        now[0] = tested.hosts.next_at(HOST)

    assert tested.hosts.blocked_code(HOST) is None
    assert pauses == [0.125, 0.25, 0.5, *[1.0] * 27]


def test_r10_host_when_told_to_pause_then_nothing_goes_and_the_table_is_told(now: list[float]) -> None:
    tested, woken = met(build_window(), now), []
    tested.hosts.share(lambda: woken.append(now[0]), lease_until_ms=lambda: math.inf)
    tested.hosts.grant(HOST, 1, TakenHost(0, 0, 0), now[0])
    tested.fill(HOST, [claim(1)])

    tested.hosts.pause(HOST, 30.0)

    assert popped(tested, now[0] + 29.9) is None
    assert popped(tested, now[0] + 30.0) == 1
    assert woken == [1000.0]
    assert [(name, report.until_ms) for name, report in tested.hosts.take_changes().reports.items()] == [
        (HOST, clock.now_ms() + 30_000)
    ]
    assert tested.hosts.take_changes().reports == {}


@pytest.mark.parametrize("known", [True, False])
def test_r10_host_when_others_were_told_to_wait_long_then_it_is_blocked_as_it_is_taken(
    now: list[float], caplog: pytest.LogCaptureFixture, known: bool
) -> None:
    tested = build_window()
    tested.hosts.share(lambda: None, lease_until_ms=lambda: math.inf)
    if known:
        tested.fill(HOST, [claim(1)])

    tested.hosts.grant(HOST, 1, TakenHost(0, 61_000, 429), now[0])
    tested.hosts.grant(OTHER, 2, TakenHost(0, 59_000, 503), now[0])
    codes = tested.hosts.blocked_code(HOST), tested.hosts.blocked_code(OTHER)
    tested.fill(HOST, [claim(2)])
    tested.fill(OTHER, [claim(3)])

    assert codes == (429, None)
    assert tested.hosts.blocked_seconds(HOST) == 61.0
    assert blocked(tested) == [(HOST, 429, number) for number in ([1, 2] if known else [2])]
    assert (popped(tested, now[0] + 58.0), popped(tested, now[0] + 59.0)) == (None, 3)
    assert [record.getMessage() for record in caplog.records] == [
        f"{HOST} gets no request for the rest of this run (429): it asked another run for a pause, which lasts 61 s more"
    ]


def test_r10_host_when_it_fails_under_a_delay_then_its_pause_begins_with_that(now: list[float]) -> None:
    tested = build_window(delay_seconds=2.0)

    pauses = []
    for _ in range(7):
        tested.hosts.record_failure(HOST, 906)
        pauses.append(tested.hosts.next_at(HOST) - now[0])

    assert pauses == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


@pytest.mark.parametrize("code", [429, 503])
def test_r10_host_when_it_asks_for_one_pause_after_the_other_then_is_blocked(now: list[float], code: int) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1)])

    waited = 0
    while tested.hosts.blocked_code(HOST) is None and waited < 100:
        tested.hosts.record_retry_after(HOST, code, 60.0)
        waited += 1
        now[0] += 60

    assert waited == PAUSES_TO_BLOCK
    assert blocked(tested) == [(HOST, code, 1)]


@pytest.mark.parametrize("way", ["requests under way", "an answer in between"])
def test_r10_host_when_its_pauses_are_not_one_after_the_other_then_the_run_goes_on(now: list[float], way: str) -> None:
    tested = met(build_window(), now)
    tested.fill(HOST, [claim(1)])

    for _ in range(3 * PAUSES_TO_BLOCK):
        tested.hosts.record_retry_after(HOST, 429, 1.0)
        if way == "an answer in between":
            now[0] += 1
            tested.hosts.record_answer(HOST)
    now[0] += 1

    assert tested.hosts.blocked_code(HOST) is None
    assert popped(tested, now[0]) == 1


def test_r10_host_when_it_is_blocked_then_the_log_says_so_once(
    now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    tested = met(build_window(), now)

    for _ in range(3):
        tested.hosts.record_retry_after(HOST, 429, 3600.0)

    assert [record.getMessage() for record in caplog.records] == [
        f"{HOST} gets no request for the rest of this run (429): it asked for a pause of 3600 s"
    ]


def test_r10_hosts_when_very_many_are_blocked_then_the_log_names_some_and_says_that_there_are_more(
    now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    tested = build_window()

    for number in range(300):
        tested.hosts.record_retry_after(f"h{number}.test:80", 429, 3600.0)

    assert len(caplog.records) == 101
    assert "not named" in caplog.records[-1].getMessage()
