"""After a run: metrics in a file, a line of the log for each visit where that is asked for, people told once (J1, J4); whoever reads
an answer may end first (``| head``): the command goes on, and its exit code is as ever.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import COMMANDS
from tests.on_terminal import show
from tests.site.client import ROOT, SiteProcess, write_project

HOST = "after.acme.test"
UNREAD = "gen.acme.test"
NOTIFIED = "unread.acme.test"


def test_runs_when_they_fail_and_come_back_then_people_are_told_once_and_metrics_are_written(
    notified: CrawlProject,
) -> None:
    project, site = notified, notified.site
    good = project.crawl()
    site.set_behaviour(NOTIFIED, status=503)
    failed = [project.crawl().exit_code for _ in range(2)]
    metrics = (project.folder / "var" / "metrics" / "demo.prom").read_text("utf-8")
    site.clear_behaviours()
    back = project.crawl()
    site.set_behaviour(NOTIFIED, status=503)
    again = project.crawl()
    site.clear_behaviours()
    shown = project.command("status", "--prometheus").stdout
    both = project.command("status", "--prometheus", "--json")

    events = told(project)
    assert (good.exit_code, failed, back.exit_code, again.exit_code) == (0, [8, 8], 0, 8)
    assert [(each["event"], each["source"]) for each in events] == [("failed", "demo")] * 2
    assert "no start URL could be fetched" in events[0]["message"]
    assert 'searchcrawl_run_urls{counter="fetch_failures",source="demo"}' in metrics
    assert shown == (project.folder / "var" / "metrics" / "demo.prom").read_text("utf-8")
    assert {family.name for family in text_string_to_metric_families(shown)} >= {
        "searchcrawl_documents",
        "searchcrawl_state",
    }
    assert both.returncode == 2
    # Nothing of it is left.
    assert project.command("delete", "demo", "--yes").returncode == 0
    assert [*(project.folder / "var" / "metrics").iterdir(), *(project.folder / "var" / "told").iterdir()] == []


def test_log_when_it_is_asked_for_urls_then_it_has_a_line_for_each_visit_and_begins_anew_at_its_size(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, HOST, **{f"page{number}": page(f"page {number}") for number in range(8)}, gone=page("gone"))
    site.set_behaviour(HOST, "/gone.html", status=404)
    logs = {"urls": True, "max_bytes": 3000, "backups": 2}
    quiet = new_project(tmp_path / "q", site, **source(site, HOST))
    loud = new_project(tmp_path / "p", site, project={"logs": logs}, **source(site, HOST))
    quiet.crawl()
    loud.crawl()
    again = loud.crawl()
    site.clear_behaviours()
    files = {path.name: path.read_text("utf-8") for path in (loud.folder / "var" / "log").iterdir()}
    lines = [line for text in files.values() for line in text.splitlines() if "[SC071]" in line]

    assert again.exit_code == 0
    assert "[SC071]" not in quiet.log()
    assert set(files) == {"demo.log", "demo.log.1", "demo.log.2"}
    assert all(len(text.encode()) <= 3000 for text in files.values())
    assert any(re.search(rf" 304 http://{HOST}:\d+/page\d\.html: 0 bytes, \d+ ms: ", line) for line in lines)
    assert any(re.search(rf" 404 http://{HOST}:\d+/gone\.html: \d+ bytes, \d+ ms: ", line) for line in lines)


def test_warnings_when_crawls_run_without_a_terminal_then_each_is_printed_once_until_it_changes(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, HOST, one=page("one"))
    project = new_project(tmp_path / "p", site, robots={"obey": False}, **source(site, HOST))
    warning = "robots.txt is not obeyed"

    printed = [project.command("crawl", "demo").stdout for _ in range(2)]
    on_terminal = show(project.folder, "crawl", "demo")
    project.edit(**source(site, HOST))
    project.command("crawl", "demo")
    project.edit(robots={"obey": False}, **source(site, HOST))
    back = project.command("crawl", "demo").stdout

    assert [warning in text for text in printed] == [True, False]
    assert warning in " ".join(on_terminal.lines)
    assert warning in back
    assert warning in project.command("status", "demo").stdout
    assert any(warning in each["message"] for each in project.crawl().status["warnings"])


def test_log_when_its_level_is_debug_then_it_has_look_ups_deliveries_and_headers_without_credentials(
    site: SiteProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "a-secret-token")
    logs = {"urls": True, "level": "DEBUG"}
    # A name that has to be looked up.
    host = "localhost"
    pages(site, host, one=page("one"))
    site.set_behaviour(host, "/one.html", headers={"Set-Cookie": "session=a-secret-session"})
    keys = source(site, host)
    headers = {"Authorization": {"env": "TOKEN"}, "X-Token": {"env": "TOKEN"}}
    keys["fetch"] = {**keys.get("fetch", {}), "headers": headers}
    project = new_project(tmp_path, site, project={"logs": logs}, **keys)
    project.crawl()
    site.set_page(host, "/one.html", status=404)
    project.edit(**{**keys, "lifecycle": {"max_delete_percent": 100, "gone_confirmations": 1}})
    project.crawl()

    log = project.log()
    assert "name look-up of localhost: " in log
    assert f"{site.url(host, '/one.html')}: indexed" in log
    assert f"{site.url(host, '/one.html')}: removed for 404" in log
    assert f"{site.url(host, '/')}: asked with " in log
    assert "X-Token: ***" in log
    assert "Content-Type: text/html" in log
    assert "Authorization: ***" in log
    assert "Set-Cookie: ***" in log
    assert "a-secret" not in log


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A crawled project that has lost its index, with a source file that is wrong and a source that nothing answers."""
    with SiteProcess() as site:
        folder = write_project(
            tmp_path_factory.mktemp("closed"), site, start={"urls": [site.url(UNREAD, "/n/4,kb=2/")]}
        )
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
    crawled: Path, words: list[str], code: int
) -> None:
    ended, errors = run_unread(crawled, *words)

    assert ended == code, errors
    assert "Broken pipe" not in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_verify_when_nobody_reads_what_differs_then_its_exit_code_says_so(
    crawled: Path, tmp_path: Path, form: list[str]
) -> None:
    folder = tmp_path / "lost"
    shutil.copytree(crawled, folder)
    shutil.rmtree(folder / "var" / "index")

    assert run_unread(folder, "verify", "demo", *form)[0] == 1


def test_crawl_when_nobody_reads_its_errors_either_then_its_exit_code_is_the_same(crawled: Path) -> None:
    assert run_unread(crawled, "crawl", "dead", errors_too=True)[0] == 8


@pytest.fixture
def notified(tmp_path: Path) -> Iterator[CrawlProject]:
    script = tmp_path / "tell"
    script.write_text(f'#!/bin/sh\ncat >> "{tmp_path}/told"\n')
    script.chmod(0o755)
    with SiteProcess() as site:
        pages(site, NOTIFIED, one=page("one"), two=page("two"))
        table = {"notify": {"command": str(script)}}
        yield new_project(tmp_path / "project", site, project=table, **source(site, NOTIFIED))


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
    notified.site.set_behaviour(NOTIFIED, status=503)
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
