"""The table of `make hosts`: what was reached of what the delays allow, beside plain Scrapy, and the worst of several rounds."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.hosts import faults
from benchmarks.hosts_table import HEAD, rows_of


def crawl(crawler: str = "searchcrawl", *, hosts: int = 100, delay: float = 1, **given: Any) -> dict[str, Any]:
    """A record of 20 seconds, 12 of them with requests: 12 to each host, ten of them for pages."""
    figures = {
        "requests": 12 * hosts,
        "requests_per_second": 1.0 * hosts,
        "seconds": 12.0,
        "missing_pages": 0,
        "smallest_gap_ms": 1000.5,
        "too_early": 0,
        "idle_seconds": 0,
    }
    record = {
        "hosts": hosts,
        "pages": 10,
        "delay": delay,
        "concurrency": 256,
        "latency_ms": 0.0,
        "lookup_ms": 0.0,
        "crawler": crawler,
        "cost": {"wall_seconds": 20.0, "peak_rss_bytes": 200_000_000},
        "documents": 10 * hosts,
        "allowed_per_second": hosts / delay if delay else None,
        "cpu_ms_per_page": 4.0,
        "pages_per_second": 0.5 * hosts,
        "load_before": 0.1,
    }
    return {**record, **given, "figures": {**figures, **given.get("figures", {})}}


def at_rate(rate: float) -> dict[str, Any]:
    """Figures of 1,200 requests."""
    return {"requests_per_second": rate, "seconds": 1200 / rate}


def table(*records: dict[str, Any]) -> list[dict[str, str]]:
    """Rows by column; the second "× plain" of a row, of the pages, is "× plain pages"."""
    names = [*HEAD[: HEAD.index("pages/s")], "pages/s", "× plain pages", *HEAD[HEAD.index("pages/s") + 2 :]]
    return [dict(zip(names, row, strict=True)) for row in rows_of(records)]


@pytest.mark.parametrize(
    ("undelayed", "reached", "share"),
    [
        pytest.param(400, 100, "92%", id="the delays are less: the first request of each host is not counted"),
        pytest.param(80, 60, "75%", id="what is reached without a delay is less"),
    ],
)
def test_rows_when_there_is_a_crawl_without_a_delay_then_the_smaller_counts(
    undelayed: float, reached: float, share: str
) -> None:
    rows = table(crawl(delay=0, figures=at_rate(undelayed)), crawl(figures=at_rate(reached)))

    assert [row["of the smaller"] for row in rows] == ["", share]
    assert [row["delays allow"] for row in rows] == ["", "100"]


def test_rows_when_plain_scrapy_ran_too_then_ratios_are_of_the_same_case() -> None:
    rows = table(
        crawl(figures=at_rate(90), pages_per_second=30.0),
        crawl("plain Scrapy", figures=at_rate(60), pages_per_second=60.0),
        crawl("plain Scrapy", delay=5, figures=at_rate(10)),
        crawl(delay=5, latency_ms=20.0),
    )

    assert [(row["× plain"], row["× plain pages"]) for row in rows] == [
        ("1.50", "0.50"),
        ("1.00", "1.00"),
        ("1.00", "1.00"),
        ("", ""),
    ]
    assert rows[3]["hosts × pages"] == "100 × 10, answers take 20 ms"


def test_rows_when_there_are_rounds_then_medians_and_the_worst_gaps_are_shown() -> None:
    rounds = [
        {**at_rate(80), "smallest_gap_ms": 1000.4},
        {**at_rate(90), "smallest_gap_ms": 998.1, "too_early": 2},
        {**at_rate(95), "smallest_gap_ms": 1000.9, "idle_seconds": 3},
    ]

    (row,) = table(*(crawl(figures=one) for one in rounds))

    assert row["requests/s"] == "90"
    assert (row["smallest gap ms"], row["too early"], row["idle s"]) == ("998.1", "2", "3")


def test_faults_when_all_is_well_then_there_are_none() -> None:
    assert list(faults(crawl())) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"figures": {"too_early": 1, "smallest_gap_ms": 250.0}}, "1 gaps are too short, the smallest 250.0 ms"),
        ({"figures": {"missing_pages": 4}}, "4 pages were not fetched; 1000 documents"),
        ({"documents": 999}, "0 pages were not fetched; 999 documents"),
    ],
)
def test_faults_when_a_promise_was_broken_then_it_is_named(given: dict[str, Any], said: str) -> None:
    assert list(faults(crawl(**given))) == [f"100 hosts, delay 1 s: {said}"]
