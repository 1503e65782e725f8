"""Whoever reads an answer may end first (``| head``): the command goes on, its exit code is as ever, and people are told (J1)."""

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
from tests.crawl_forks import COMMANDS
from tests.site.client import ROOT, SiteProcess, write_project

HOST = "gen.acme.test"
OTHER = "unread.acme.test"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A crawled project that has lost its index, with a source file that is wrong and a source that nothing answers."""
    with SiteProcess() as site:
        folder = write_project(tmp_path_factory.mktemp("closed"), site, start={"urls": [site.url(HOST, "/n/4,kb=2/")]})
        assert COMMANDS.run(folder, "crawl", "demo").returncode == 0
        sources = folder / "sources"
        dead = (sources / "demo.toml").read_text(encoding="utf-8").replace(str(site.port), "9")
        (sources / "dead.toml").write_text(dead, encoding="utf-8")
        (sources / "wrong.toml").write_text('type = "web"\ncolour = "red"\n', encoding="utf-8")
        yield folder


def run_unread(folder: Path, *words: str, errors_too: bool = False) -> tuple[int, str]:
    """The exit code of a command whose output nobody reads, and what it wrote to standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    errors = subprocess.STDOUT if errors_too else subprocess.PIPE
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run(
        [sys.executable, "-m", "searchcrawl", *words],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)},
        stdout=writer,
        stderr=errors,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(writer)
    return ended.returncode, ended.stderr or ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["search", "*", "--source", "demo"], 0),
        (["search", "*", "--source", "demo", "--json"], 0),
        (["status"], 0),
        (["urls", "demo"], 0),
        (["--help"], 0),
        (["sources", "check", "--json"], 4),
        (["crawl", "dead"], 8),
        (["crawl", "dead", "--json"], 8),
    ],
)
def test_command_when_nobody_reads_its_output_then_its_exit_code_is_the_same(
    project: Path, words: list[str], code: int
) -> None:
    ended, errors = run_unread(project, *words)

    assert ended == code, errors
    assert "Broken pipe" not in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_verify_when_nobody_reads_what_differs_then_its_exit_code_says_so(
    project: Path, tmp_path: Path, form: list[str]
) -> None:
    folder = tmp_path / "lost"
    shutil.copytree(project, folder)
    shutil.rmtree(folder / "var" / "index")

    assert run_unread(folder, "verify", "demo", *form)[0] == 1


def test_crawl_when_nobody_reads_its_errors_either_then_its_exit_code_is_the_same(project: Path) -> None:
    assert run_unread(project, "crawl", "dead", errors_too=True)[0] == 8


@pytest.fixture
def notified(tmp_path: Path) -> Iterator[CrawlProject]:
    script = tmp_path / "tell"
    script.write_text(f'#!/bin/sh\ncat >> "{tmp_path}/told"\n')
    script.chmod(0o755)
    with SiteProcess() as site:
        pages(site, OTHER, one=page("one"), two=page("two"))
        table = {"notify": {"command": str(script)}}
        yield new_project(tmp_path / "project", site, project=table, **source(site, OTHER))


def told(notified: CrawlProject) -> list[dict[str, Any]]:
    file = notified.folder.parent / "told"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["table", "json"])
def test_crawl_when_nobody_reads_what_it_prints_then_code_metrics_and_events_are_as_ever(
    notified: CrawlProject, options: tuple[str, ...]
) -> None:
    def crawl(*words: str) -> int:
        return run_unread(notified.folder, "crawl", "demo", *words, *options, errors_too=True)[0]

    limited = crawl("-a", "limit=1")
    metrics = (notified.folder / "var" / "metrics" / "demo.prom").read_text("utf-8")
    whole = crawl()
    notified.site.set_behaviour(OTHER, status=503)
    failed = crawl()

    assert (limited, whole, failed) == (3, 0, 8)
    assert 'searchcrawl_documents{source="demo"}' in metrics
    assert [each["event"] for each in told(notified)] == ["failed"]


def test_crawl_when_the_index_was_lost_then_people_are_told_as_of_any_difference(notified: CrawlProject) -> None:
    notified.crawl()
    shutil.rmtree(notified.folder / "var" / "index")

    lost = notified.crawl()
    again = notified.crawl()

    assert [warning["code"] for warning in lost.status["warnings"]] == ["index_emptied"]
    assert (lost.exit_code, again.exit_code) == (0, 0)
    assert [(each["event"], "resend demo" in each["message"]) for each in told(notified)] == [("verify", True)]
