"""After a run: metrics in a file, one line of the log for each visit where that is asked for, people told once (J1, J4)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages, source
from tests.on_terminal import show
from tests.site.client import SiteProcess

HOST = "after.acme.test"


def test_runs_when_they_fail_and_come_back_then_people_are_told_once_and_metrics_are_written(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, HOST, one=page("one"))
    script = tmp_path / "tell"
    script.write_text(f'#!/bin/sh\ncat >> "{tmp_path}/told"\n')
    script.chmod(0o755)
    project = new_project(tmp_path / "p", site, project={"notify": {"command": str(script)}}, **source(site, HOST))
    good = project.crawl()
    site.set_behaviour(HOST, status=503)
    failed = [project.crawl().exit_code for _ in range(2)]
    metrics = (project.folder / "var" / "metrics" / "demo.prom").read_text("utf-8")
    site.clear_behaviours()
    back = project.crawl()
    site.set_behaviour(HOST, status=503)
    again = project.crawl()
    site.clear_behaviours()
    shown = project.command("status", "--prometheus").stdout
    both = project.command("status", "--prometheus", "--json")

    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    assert (good.exit_code, failed, back.exit_code, again.exit_code) == (0, [8, 8], 0, 8)
    assert [(each["event"], each["source"]) for each in told] == [("failed", "demo")] * 2
    assert "no start URL could be fetched" in told[0]["message"]
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
