"""What a log of the server of `make hosts` says of a crawl: gaps, seconds without a request, pages that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.hosts_log import OTHER, ROBOTS, SITEMAP, Paces, Request, RequestLog, judge, read


def of_seconds(*requests: tuple[int, int, float, float]) -> list[Request]:
    """Host, what for, and the seconds of its arrival and of its answer, counted from some moment."""
    began = 5_000_000_000
    return [
        Request(host, what, began + round(arrived * 1e9), began + round(answered * 1e9))
        for host, what, arrived, answered in requests
    ]


def at_pace(host: int, whats: Iterable[int], *, every: float) -> list[tuple[int, int, float, float]]:
    """Requests that are answered at once."""
    return [(host, what, number * every, number * every) for number, what in enumerate(whats)]


def judged(*requests: tuple[int, int, float, float], hosts: int = 1, pages: int = 3, delay: float = 1) -> Paces:
    in_order = sorted(of_seconds(*requests), key=lambda request: request.arrived)
    return judge(in_order, hosts=hosts, pages=pages, delay_seconds=delay)


def test_judge_when_a_request_comes_too_early_after_an_answer_then_its_gap_is_found() -> None:
    paces = judged((0, 0, 0, 0.3), (0, 1, 1.2, 1.2), (0, 2, 2.3, 2.3))

    assert paces.smallest_gap_ms == pytest.approx(900)
    assert paces.smallest_gap_of_arrivals_ms == pytest.approx(1100)
    assert paces.median_gap_ms == pytest.approx(1000)
    assert paces.too_early == 1


def test_judge_when_requests_of_other_hosts_lie_between_then_gaps_are_those_of_each_host() -> None:
    paces = judged(
        *at_pace(0, (0, 1, 2), every=1),
        *((1, what, at + 0.5, at + 0.5) for what, at in ((0, 0), (1, 1), (2, 2))),
        hosts=2,
    )

    assert (paces.smallest_gap_ms, paces.too_early, paces.missing_pages) == (1000, 0, 0)


def test_judge_when_robots_and_a_page_are_too_close_then_it_counts() -> None:
    assert judged((0, ROBOTS, 0, 0), (0, 0, 0.5, 0.5)).too_early == 1


def test_judge_when_a_gap_is_short_by_less_than_a_millisecond_then_it_is_none_of_the_crawler() -> None:
    assert judged((0, 0, 0, 0), (0, 1, 0.9995, 0.9995)).too_early == 0


def test_judge_when_a_host_could_be_asked_and_is_not_then_whole_seconds_count() -> None:
    # From second 3, when the delay is over, to 6.5: the seconds 3, 4 and 5.
    paces = judged((0, ROBOTS, 0, 0), (0, 0, 1, 1), (0, 1, 2, 2), (0, 2, 6.5, 6.5))

    assert paces.idle_seconds == 3
    assert paces.longest_idle_seconds == pytest.approx(3.5)


def test_judge_when_the_delay_holds_all_hosts_back_then_no_second_is_idle() -> None:
    assert judged(*at_pace(0, (0, 1, 2), every=5), delay=5).idle_seconds == 0


def test_judge_when_an_answer_takes_long_then_the_wait_for_it_is_not_idle() -> None:
    assert judged((0, 0, 0, 0), (0, 1, 1, 6), (0, 2, 7, 7)).idle_seconds == 0


def test_judge_when_all_pages_were_asked_for_then_what_is_asked_late_is_not_idle() -> None:
    assert judged(*at_pace(0, (0, 1, 2), every=1), (0, SITEMAP, 20, 20)).idle_seconds == 0


def test_judge_when_a_host_was_never_asked_then_it_is_due_from_the_beginning() -> None:
    paces = judged((0, 0, 0, 0), (0, 1, 3.5, 3.5), (0, 2, 7.2, 7.2), (1, 0, 9.5, 9.5), hosts=2, delay=3)

    # The first two do not count: 2, then 4 to 6, and 8.
    assert paces.idle_seconds == 5


def test_judge_when_crawls_begin_slowly_then_the_first_two_seconds_are_not_counted() -> None:
    paces = judged((0, 0, 0, 0), (1, 0, 1.9, 1.9), hosts=2, pages=1)

    assert (paces.idle_seconds, paces.longest_idle_seconds) == (0, 0)


def test_judge_when_pages_are_asked_for_again_or_not_at_all_then_distinct_ones_count() -> None:
    paces = judged((0, 0, 0, 0), (0, 0, 1, 1), (0, 2, 2, 2), (0, OTHER, 3, 3), (0, ROBOTS, 4, 4))

    assert (paces.requests, paces.pages, paces.missing_pages) == (5, 2, 1)
    assert (paces.robots, paces.sitemaps, paces.others) == (1, 0, 1)
    assert paces.requests_per_second == pytest.approx(5 / 4)


def test_judge_when_nobody_asked_then_all_pages_are_missing() -> None:
    paces = judged(hosts=7)

    assert (paces.missing_pages, paces.requests_per_second, paces.smallest_gap_ms) == (21, 0, None)


def test_read_when_a_log_was_written_then_requests_come_in_the_order_of_their_arrival(tmp_path: Path) -> None:
    log = RequestLog()
    log.add(99_999, OTHER, 20, 21)
    log.add(0, 3, 10, 30)
    log.write(tmp_path / "log", cpu_seconds=1.5)

    assert read(tmp_path / "log") == ([Request(0, 3, 10, 30), Request(99_999, OTHER, 20, 21)], 1.5)
