"""What follows a run happens also where nobody reads what it prints, or the index was lost (J1)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import ROOT, SiteProcess

HOST = "unread.acme.test"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    script = tmp_path / "tell"
    script.write_text(f'#!/bin/sh\ncat >> "{tmp_path}/told"\n')
    script.chmod(0o755)
    with SiteProcess() as site:
        pages(site, HOST, one=page("one"), two=page("two"))
        table = {"notify": {"command": str(script)}}
        yield new_project(tmp_path / "project", site, project=table, **source(site, HOST))


def told(project: CrawlProject) -> list[dict[str, Any]]:
    file = project.folder.parent / "told"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def crawl_unread(project: CrawlProject, *options: str) -> int:
    """A crawl whose standard output and standard error lead to a reader that has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-m", "searchcrawl", "crawl", project.name, *options]
    try:
        return subprocess.run(
            command, cwd=project.folder, env=environment, stdout=writer, stderr=writer, check=False
        ).returncode
    finally:
        os.close(writer)


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["table", "json"])
def test_crawl_when_nobody_reads_what_it_prints_then_code_metrics_and_events_are_as_ever(
    project: CrawlProject, options: tuple[str, ...]
) -> None:
    limited = crawl_unread(project, "-a", "limit=1", *options)
    metrics = (project.folder / "var" / "metrics" / "demo.prom").read_text("utf-8")
    whole = crawl_unread(project, *options)
    project.site.set_behaviour(HOST, status=503)
    failed = crawl_unread(project, *options)

    assert (limited, whole, failed) == (3, 0, 8)
    assert 'searchcrawl_documents{source="demo"}' in metrics
    assert [each["event"] for each in told(project)] == ["failed"]


def test_crawl_when_the_index_was_lost_then_people_are_told_as_of_any_difference(project: CrawlProject) -> None:
    project.crawl()
    shutil.rmtree(project.folder / "var" / "index")

    lost = project.crawl()
    again = project.crawl()

    assert [warning["code"] for warning in lost.status["warnings"]] == ["index_emptied"]
    assert (lost.exit_code, again.exit_code) == (0, 0)
    assert [(each["event"], "resend demo" in each["message"]) for each in told(project)] == [("verify", True)]
