"""Ctrl-C twice while an index that is away is waited for: the process ends at once, the documents wait (X-I1)."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from searchcrawl.store.states import DocumentState
from tests.acceptance.support_project import CrawlProject, environment, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, project_toml
from tests.solr_server import free_port

HOST: Final = "signals.acme.test"
LIMIT_SECONDS: Final = 60.0


def wait_for(project: CrawlProject, words: str) -> None:
    log = project.folder / "var" / "log" / "demo.log"
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline and not (log.exists() and words in log.read_text("utf-8")):
        time.sleep(0.05)
    assert words in log.read_text("utf-8")


def test_crawl_when_interrupted_twice_while_the_index_is_away_then_it_does_not_wait_for_it(tmp_path: Path) -> None:
    with SiteProcess() as site:
        pages(site, HOST, one=page("one"))
        project = new_project(tmp_path, site, **source(site, HOST))
        away = {"type": "solr", "url": f"http://127.0.0.1:{free_port()}/solr/pages"}
        (tmp_path / "searchcrawl.toml").write_text(project_toml(index=away), "utf-8")
        command = [sys.executable, "-m", "searchcrawl", "crawl", "demo", "--json"]
        patient = ("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=600")

        with subprocess.Popen([*command, *patient], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE) as running:
            try:
                wait_for(project, "trying again")
                running.send_signal(signal.SIGINT)
                wait_for(project, "SIGINT")
                running.send_signal(signal.SIGINT)
                output, _ = running.communicate(timeout=LIMIT_SECONDS)
            finally:
                running.kill()

    assert running.returncode == 3
    assert b'"waiting"' in output
    assert {row["document_state"] for row in project.rows().values()} <= {DocumentState.CACHED, DocumentState.SENDING}
