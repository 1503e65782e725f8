"""The table of `make hosts`, of the records that benchmarks/hosts.py writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

PLAIN: Final = "plain Scrapy"
Place = tuple[Any, ...]
_OF_CASE: Final = ("hosts", "pages", "delay", "concurrency", "latency_ms", "lookup_ms")
HEAD: Final = (
    "hosts × pages",
    "delay s",
    "crawler",
    "requests/s",
    "delays allow",
    "of the smaller",
    "× plain",
    "whole run s (requests)",
    "pages/s",
    "× plain",
    "CPU ms a page",
    "peak RSS MB",
    "smallest gap ms",
    "too early",
    "idle s",
    "requests a host",
    "load before",
)


def place_of(record: Mapping[str, Any]) -> Place:
    """What runs of the same case by the same crawler share; sorted by it they are in the order of the table."""
    # Ours comes before plain Scrapy.
    crawler = record["crawler"]
    return (*(record[name] for name in _OF_CASE), crawler == PLAIN, crawler)


def rows_of(records: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The table: medians of the rounds, the worst of gaps and idle seconds."""
    groups: dict[Place, list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault(place_of(record), []).append(record)
    rates = {place: median(one["figures"]["requests_per_second"] for one in group) for place, group in groups.items()}
    pages = {place: median(one["pages_per_second"] for one in group) for place, group in groups.items()}
    return [_row(group, place, rates, pages) for place, group in groups.items()]


def _row(
    group: Sequence[Mapping[str, Any]],
    place: Place,
    rates: Mapping[Place, float],
    pages_a_second: Mapping[Place, float],
) -> list[str]:
    first = group[0]
    hosts, pages, delay, concurrency, latency_ms, lookup_ms, *_ = place
    plain = (hosts, pages, delay, concurrency, latency_ms, lookup_ms, True, PLAIN)
    undelayed = rates.get((hosts, pages, 0.0, *place[3:]))
    share = share_of_pace(group, undelayed)
    gaps = [one["figures"]["smallest_gap_ms"] for one in group if one["figures"]["smallest_gap_ms"] is not None]

    def middle(*names: str) -> float:
        return median(_find(one, names) for one in group)

    return [
        f"{hosts:,} × {pages}{_describe(latency_ms, lookup_ms)}",
        f"{delay:g}",
        first["crawler"],
        f"{rates[place]:.0f}",
        "" if first["allowed_per_second"] is None else f"{first['allowed_per_second']:,.0f}",
        "" if share is None else f"{share:.0%}",
        _ratio(rates, place, plain),
        f"{middle('cost', 'wall_seconds'):.1f} ({middle('figures', 'seconds'):.1f})",
        f"{pages_a_second[place]:.0f}",
        _ratio(pages_a_second, place, plain),
        f"{middle('cpu_ms_per_page'):.2f}",
        f"{middle('cost', 'peak_rss_bytes') / 1e6:.0f}",
        f"{min(gaps):.1f}" if gaps and delay else "",
        str(max(one["figures"]["too_early"] for one in group)) if delay else "",
        str(max(one["figures"]["idle_seconds"] for one in group)),
        f"{middle('figures', 'requests') / hosts:.1f}",
        f"{max(one['load_before'] for one in group):.1f}",
    ]


def _ratio(figures: Mapping[Place, float], place: Place, other: Place) -> str:
    return f"{figures[place] / figures[other]:.2f}" if figures.get(other) else ""


def _describe(latency_ms: float, lookup_ms: float) -> str:
    """What is not as usual."""
    answers = f", answers take {latency_ms:g} ms" if latency_ms else ""
    return answers + (f", look-ups {lookup_ms:g} ms" if lookup_ms else "")


def _find(record: Mapping[str, Any], names: Sequence[str]) -> float:
    found: Any = record
    for name in names:
        found = found[name]
    return float(found)


def share_of_pace(group: Sequence[Mapping[str, Any]], undelayed: float | None) -> float | None:
    """The rate of a crawl as a part of the smaller of hosts ÷ delay and ``undelayed``, its rate without a delay.

    None without a delay. The first request of a host waits for nothing: beside hosts ÷ delay it is not counted, so that
    a crawl that keeps the delays cannot be above 1.
    """
    allowed: float | None = group[0]["allowed_per_second"]
    if allowed is None:
        return None
    rate: float = median(one["figures"]["requests_per_second"] for one in group)
    if undelayed is not None and undelayed < allowed:
        return rate / undelayed
    paced: float = median(
        (one["figures"]["requests"] - one["hosts"]) / max(one["figures"]["seconds"], 1e-9) for one in group
    )
    return paced / allowed
