"""Ctrl-C while an index that is away is waited for at the end of a crawl: twice ends the process at once (X-I1)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from searchcrawl.store.states import DocumentState
from tests.acceptance.support_project import CrawlProject, absent_index, environment, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, configure

HOST: Final = "signals.acme.test"
LIMIT_SECONDS: Final = 60.0


def wait_for(project: CrawlProject, words: str) -> None:
    log = project.folder / "var" / "log" / "demo.log"
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline and not (log.exists() and words in log.read_text("utf-8")):
        time.sleep(0.05)
    assert words in log.read_text("utf-8")


def interrupt(folder: Path, *, times: int, patience_seconds: int) -> tuple[int, dict[str, Any], CrawlProject]:
    """Crawls while the index is away, and interrupts the wait for it: the exit code and the status."""
    with SiteProcess() as site:
        pages(site, HOST, one=page("one"))
        project = new_project(folder, site, **source(site, HOST))
        configure(folder, index=absent_index())
        command = [sys.executable, "-m", "searchcrawl", "crawl", "demo", "--json"]
        patient = ("-s", f"SEARCHCRAWL_INDEX_PATIENCE_SECONDS={patience_seconds}")

        with subprocess.Popen([*command, *patient], cwd=folder, env=environment(), stdout=subprocess.PIPE) as running:
            try:
                for words in ("trying again", "SIGINT")[:times]:
                    wait_for(project, words)
                    running.send_signal(signal.SIGINT)
                output, _ = running.communicate(timeout=LIMIT_SECONDS)
            finally:
                running.kill()
    return running.returncode, json.loads(output), project


def test_crawl_when_interrupted_once_while_the_index_is_away_then_it_is_waited_for_and_the_run_ends(
    tmp_path: Path,
) -> None:
    code, status, _ = interrupt(tmp_path, times=1, patience_seconds=4)

    assert (code, status["run"]["end_reason"]) == (6, "finished")
    assert status["waiting"] == 2


def test_crawl_when_interrupted_twice_while_the_index_is_away_then_it_does_not_wait_for_it(tmp_path: Path) -> None:
    code, status, project = interrupt(tmp_path, times=2, patience_seconds=600)

    assert (code, status["waiting"]) == (3, 2)
    assert {row["document_state"] for row in project.rows().values()} <= {DocumentState.CACHED, DocumentState.SENDING}
