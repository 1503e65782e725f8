"""The state of sources in the text format of Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from searchcrawl.queries.metrics import render_metrics, write_metrics


def status(name: str, **other: Any) -> dict[str, Any]:
    run = {"id": 7, "kind": "initial", "started": "2026-01-02T03:04:05.500Z", "ended": None, "end_reason": None}
    found = {
        "source": name, "state": "executing", "run": run, "counts": {"fetched": 5, "to_fetch": 0}, "documents": 3,
        "waiting": 1, "quarantined": 0, "force_recrawl": None, "next_run": None, "refused_links": [],
        "warnings": [{"code": "trap", "message": "a"}, {"code": "trap", "message": "b"}],
    }  # fmt: skip
    return {**found, **other}


def parse(text: str) -> dict[tuple[str, str], float]:
    """The values by name, source and a further label."""
    return {
        (sample.name, ",".join([sample.labels.pop("source"), *sample.labels.values()])): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_when_rendered_then_a_scraper_reads_each_figure_of_each_source() -> None:
    found = parse(render_metrics([status("a"), status("b", run=None, counts={}, warnings=[], state="scheduled")]))

    assert found["searchcrawl_documents", "a"] == 3
    assert found["searchcrawl_run_started_timestamp_seconds", "a"] == 1767323045.5
    assert found["searchcrawl_run_urls", "a,fetched"] == 5
    assert found["searchcrawl_run_urls", "a,to_fetch"] == 0
    assert found["searchcrawl_warnings", "a,trap"] == 2
    assert (found["searchcrawl_state", "a,executing"], found["searchcrawl_state", "b,scheduled"]) == (1, 1)
    # What there is none of is left out.
    assert not {key for key in found if key[0] == "searchcrawl_run_ended_timestamp_seconds"}
    assert not {key for key in found if key[0].startswith("searchcrawl_run_") and key[1].startswith("b")}


def test_metrics_when_written_then_in_one_step_for_the_collector(tmp_path: Path) -> None:
    path = tmp_path / "metrics" / "a.prom"

    write_metrics(path, status("a"))
    write_metrics(path, status("a", documents=4))

    assert parse(path.read_text())["searchcrawl_documents", "a"] == 4
    assert [each.name for each in path.parent.iterdir()] == ["a.prom"]
