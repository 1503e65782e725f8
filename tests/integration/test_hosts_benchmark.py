"""`make hosts` with few hosts: both crawlers fetch all pages, and its figures have a place in RESULTS.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.measured import ROOT

HOSTS, PAGES = 20, 3


def test_hosts_when_run_then_both_crawlers_fetch_all_pages_and_the_table_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-m", "benchmarks.hosts", "--hosts", str(HOSTS), "--pages", str(PAGES)]
    done = subprocess.run(
        [*command, "--delays", "0", "--out", str(tmp_path / "many-hosts.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    crawls = json.loads((tmp_path / "many-hosts.json").read_text("utf-8"))["crawls"]
    assert [crawl["crawler"] for crawl in crawls] == ["searchcrawl", "plain Scrapy"]
    for crawl in crawls:
        figures = crawl["figures"]
        assert (figures["pages"], figures["missing_pages"], crawl["documents"]) == (HOSTS * PAGES, 0, HOSTS * PAGES)
        assert figures["robots"] == HOSTS
        assert crawl["cost"]["cpu_seconds"] > 0

    monkeypatch.setattr(results, "OUT", tmp_path)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    (tmp_path / "RESULTS.md").write_text("<!-- many hosts -->\n<!-- end of many hosts -->\n", "utf-8")
    results.main()
    rows = (tmp_path / "RESULTS.md").read_text("utf-8").splitlines()
    assert [row[:29] for row in rows if row.startswith("| 20")] == [
        "| 20 × 3 | 0 | searchcrawl | ",
        "| 20 × 3 | 0 | plain Scrapy |",
    ]
