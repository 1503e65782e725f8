"""Many short runs: none ends before its last page (docs: decisions/waking-the-engine)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.site.client import ROOT, SiteProcess, source_toml, write_project
from tests.stored_rows import query

RUNS = 20
SOAK_RUNS = 600
PROCESSES = 2
_SETTLED = """
    SELECT sources.name, count(*) FROM urls JOIN sources ON sources.id = urls.source_id
    JOIN documents ON documents.url_id = urls.id
    WHERE urls.fetch_state = 2 AND urls.code = 200 AND documents.indexed_version IS NOT NULL GROUP BY sources.name
"""


def prepare(folder: Path, site: SiteProcess, names: list[str]) -> None:
    """A project with a source for each name: five pages, linked in three steps, answered a little later each."""
    write_project(folder, site, names[0])
    for number, name in enumerate(names):
        start = site.url(f"gen{number}.acme.test", f"/n/5,links=1,delay={number % 7 * 0.003:.3f}/")
        (folder / "sources" / f"{name}.toml").write_text(source_toml(site, start={"urls": [start]}), "utf-8")


@pytest.mark.parametrize("runs", [RUNS, pytest.param(SOAK_RUNS, marks=pytest.mark.soak)])
def test_short_runs_when_there_are_many_then_each_ends_with_all_pages(
    site: SiteProcess, tmp_path: Path, runs: int
) -> None:
    names = [f"short{number}" for number in range(runs)]
    folders = [tmp_path / str(number) for number in range(PROCESSES)]
    processes = []
    for number, folder in enumerate(folders):
        own = names[number::PROCESSES]
        prepare(folder, site, own)
        command = [sys.executable, "-m", "tests.short_crawls", str(folder), *own]
        processes.append(subprocess.Popen(command, cwd=ROOT))
    codes = [process.wait(600) for process in processes]

    pages = dict(row for folder in folders for row in query(folder, _SETTLED))
    reasons = [row[0] for folder in folders for row in query(folder, "SELECT end_reason FROM runs")]
    assert codes == [0] * PROCESSES
    assert pages == dict.fromkeys(names, 5)
    assert reasons == ["finished"] * runs
