"""The tables of RESULTS.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import results

PAGE = """Before.

<!-- machine -->
<!-- end of machine -->
<!-- crawlers -->
old
<!-- end of crawlers -->
<!-- sqlite -->
as it was
<!-- end of sqlite -->
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "OUT", tmp_path)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    (tmp_path / "RESULTS.md").write_text(PAGE, encoding="utf-8")
    return tmp_path


def run(name: str, pages_per_second: float, cpu_ms: float, *, missing: list[str] | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "pages_per_second": pages_per_second,
        "cpu_ms_per_page": cpu_ms,
        "cost": {"peak_rss_bytes": 200_000_000},
        "requests": 10,
        "repeated": 0,
        "documents": 9,
        "comparison": {"missing": missing or [], "doubled": []},
    }


def of_round(**runs: dict[str, Any]) -> dict[str, Any]:
    return {"wget_pages": 9, "load_before": 0.24, "ok": True, "checks": {}, "runs": runs}


def test_main_when_there_are_rounds_then_medians_and_ratios_within_rounds_are_shown(folder: Path) -> None:
    rounds = [
        of_round(a=run("a", 100, 10), b=run("b", 450, 2)),
        of_round(a=run("a", 50, 20), b=run("b", 250, 3, missing=["http://a.test/"])),
        of_round(a=run("a", 90, 11), b=run("b", 360, 2.2)),
    ]
    machine = {"cpus": 2, "processor": "x", "memory_gb": 8.2, "system": "Linux", "versions": {"Python": "3.11"}}
    result = {"machine": machine, "rounds": rounds, "in_flight": 16, "ok": True, "absent": {"Colly": "no Go"}}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")

    assert results.main() == 0

    text = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert "| b | 360 | 4.50 | 2.20 | 20% | 200 | 10 | 0 | 9 | 1 |" in text
    assert "Rounds: 3; 16 requests in flight, 9 pages by wget; load of the machine before them 0.2, 0.2, 0.2." in text
    assert "Absent: Colly (no Go)." in text
    assert "2 CPUs (x), 8 GB of memory, Linux; Python 3.11." in text
    assert "old" not in text
    assert "<!-- sqlite -->\nas it was\n<!-- end of sqlite -->" in text


def test_main_when_there_are_no_figures_then_the_page_stays(folder: Path) -> None:
    results.main()

    assert (folder / "RESULTS.md").read_text(encoding="utf-8") == PAGE


def test_main_when_the_page_has_no_place_then_it_is_named(folder: Path) -> None:
    (folder / "RESULTS.md").write_text("empty", encoding="utf-8")
    result = {"machine": {}, "rounds": [of_round(b=run("b", 450, 2))], "in_flight": 16, "ok": True, "absent": {}}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")

    with pytest.raises(SystemExit, match=r"RESULTS\.md has no place for crawlers"):
        results.main()

    assert (folder / "RESULTS.md").read_text(encoding="utf-8") == "empty"
