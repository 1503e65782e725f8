"""The state of sources as metrics for Prometheus, for a scraper and for the textfile collector of its node exporter (J1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from searchcrawl.durable import write_whole

_Status = Mapping[str, Any]

#: Name and meaning of each figure that a source has one of, and where ``status`` has it.
_FIGURES: Final = (
    ("documents", "Documents in the index, by the URL table.", "documents"),
    ("waiting", "Documents and deletions that wait for the index.", "waiting"),
    ("quarantined", "Deletions that wait for approval.", "quarantined"),
    ("run_id", "The number of the last run.", "run.id"),
    ("run_started_timestamp_seconds", "When the last run began.", "run.started"),
    ("run_ended_timestamp_seconds", "When the last run ended; missing while it goes on.", "run.ended"),
    ("next_run_timestamp_seconds", "When its schedule has the source run next.", "next_run"),
)


class _Statuses(Collector):
    def __init__(self, statuses: Iterable[_Status]) -> None:
        self._statuses = list(statuses)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for name, meaning, place in _FIGURES:
            yield self._build(name, meaning, partial(_find, place=place))
        meaning = "Whether the next run visits pages without validators."
        yield self._build("force_recrawl", meaning, lambda status: float(status["force_recrawl"] is not None))
        yield self._list("run_urls", "The counters of the last run.", "counter", lambda status: status["counts"])
        yield self._list("state", "1 for the state of the source.", "state", lambda status: {status["state"]: 1})
        yield self._list(
            "warnings",
            "Warnings of status, by their code.",
            "code",
            lambda status: Counter(each["code"] for each in status["warnings"]),
        )

    def _build(self, name: str, meaning: str, find: Callable[[_Status], float | None]) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"searchcrawl_{name}", meaning, labels=["source"])
        for status in self._statuses:
            value = find(status)
            if value is not None:
                family.add_metric([status["source"]], value)
        return family

    def _list(
        self, name: str, meaning: str, label: str, find: Callable[[_Status], Mapping[str, float]]
    ) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"searchcrawl_{name}", meaning, labels=["source", label])
        for status in self._statuses:
            for key, value in find(status).items():
                family.add_metric([status["source"], key], value)
        return family


def render_metrics(statuses: Iterable[_Status]) -> str:
    """The metrics of what ``describe_status`` says of sources, in the text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Statuses(statuses))
    return generate_latest(registry).decode()


def write_metrics(path: Path, status: _Status) -> None:
    """Writes the metrics of a source in one step, so that no scraper reads half of them; raises OSError."""
    write_whole(path, render_metrics([status]).encode())


def _find(status: _Status, place: str) -> float | None:
    """A number, or a moment in seconds; None is left out."""
    table, _, key = place.rpartition(".")
    value = ((status[table] or {}) if table else status).get(key)
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value
