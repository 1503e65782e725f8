"""Ctrl-C once finishes what is in hand and pushes; twice stops at once and loses nothing; SIGTERM and SIGHUP are as Ctrl-C once.

So do they while an index that is away is waited for at the end (X-I1).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.selftest.final_state import FinalState, inconsistencies
from searchcrawl.store.states import DocumentState
from tests.acceptance.support_outages import log
from tests.acceptance.support_project import absent_index, environment, new_project, wait_until
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import Forks, started
from tests.final_state import fetching, read_state, settled
from tests.site.client import ROOT, SiteProcess, configure, write_project

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("clean_site")]

PAGES = 80
HOST = "gen.acme.test"
START = f"/n/{PAGES},delay=0.1,kb=8/"


def project(folder: Path, site: SiteProcess, **settings: Any) -> Path:
    return write_project(folder, site, project=settings, start={"urls": [site.url(HOST, START)]})


def in_index(state: FinalState) -> set[str]:
    return {url for url, row in state.rows.items() if row["in_index"]}


def asked(site: SiteProcess) -> Counter[str]:
    return Counter(site.url(entry["host"], entry["path"]) for entry in site.log(robots=False))


def assert_complete(folder: Path) -> None:
    state = read_state(folder, "demo")
    assert inconsistencies(state) == []
    assert len(in_index(state)) == PAGES


def assert_pushed_and_completed(folder: Path, site: SiteProcess, forks: Forks, code: int) -> None:
    """A run that was asked to end delivered all that it had fetched, and the next one fetches only the rest."""
    state, before = read_state(folder, "demo"), asked(site)
    assert code == 3
    assert fetching(folder) == set()
    assert settled(folder) == in_index(state) == set(state.index) == set(before)
    assert 20 <= len(before) < PAGES
    assert forks.run(folder, "crawl", "demo") == 0
    assert set((asked(site) - before).values()) == {1}
    assert set(asked(site).values()) == {1}
    assert_complete(folder)


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_crawl_when_interrupted_once_then_pushes_and_the_next_run_completes(
    forks: Forks, site: SiteProcess, tmp_path: Path, number: int
) -> None:
    folder = project(tmp_path / "once", site, cache={"threshold_mb": 0.1})

    with started(forks.start(folder, "crawl", "demo")) as running:
        running.until(lambda: len(settled(folder)) >= 20)
        running.signal(number)
        code = running.wait()

    assert_pushed_and_completed(folder, site, forks, code)


def test_crawl_when_interrupted_twice_then_stops_at_once_and_loses_nothing(
    forks: Forks, site: SiteProcess, tmp_path: Path
) -> None:
    folder = project(tmp_path / "twice", site)
    last = f"{START}{PAGES - 1}.html"
    site.set_behaviour(HOST, last, delay_seconds=25)

    with started(forks.start(folder, "crawl", "demo")) as running:
        running.until(lambda: len(settled(folder)) == PAGES - 1 and last in {entry["path"] for entry in site.log()})
        running.signal(signal.SIGINT)
        # What is in hand is waited for: nothing is delivered yet.
        running.until(lambda: "SIGINT" in (folder / "var" / "log" / "demo.log").read_text("utf-8"))
        running.signal(signal.SIGINT)
        code = running.wait()
    left, index = fetching(folder), set(read_state(folder, "demo").index)
    site.clear_behaviours()
    site.clear_log()
    again = forks.run(folder, "crawl", "demo")

    assert (code, left, index) == (3, {site.url(HOST, last)}, set())
    assert (again, list(asked(site))) == (0, [site.url(HOST, last)])
    assert_complete(folder)


def test_scrapy_crawl_when_terminated_as_by_scrapyd_then_pushes_and_the_next_run_completes(
    forks: Forks, site: SiteProcess, tmp_path: Path
) -> None:
    folder = project(tmp_path / "terminated", site)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    command = [sys.executable, "-m", "scrapy", "crawl", "demo"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: len(settled(folder)) >= 20 or process.poll() is not None)
        process.terminate()
        code = process.wait(60)

    assert_pushed_and_completed(folder, site, forks, code)


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_when_the_crawl_still_loads_then_its_exit_code_is_that_of_one_that_was_ended(
    tmp_path: Path, site: SiteProcess, number: signal.Signals
) -> None:
    folder = project(tmp_path / "project", site)
    # A component of the user takes long to load.
    text = "import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n"
    (folder / "slow.py").write_text(text, "utf-8")
    file = folder / "sources" / "demo.toml"
    file.write_text(f'spider = "slow:Slow"\n{file.read_text("utf-8")}', "utf-8")
    # What starts the tests may ignore SIGINT, as a shell does for commands in the background; the crawl would go on so.
    command = ["env", f"--default-signal={number.name}", sys.executable, "-m", "searchcrawl", "crawl", "demo"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as crawl:
        wait_until((folder / "loading").exists)
        crawl.send_signal(number)
        _, said = crawl.communicate(timeout=60)
        code = crawl.returncode

    assert (code, said) == (3, "")
    assert site.requested() == []


AWAY: Final = "signals.acme.test"


@pytest.mark.parametrize(("times", "patience_seconds", "expected"), [(1, 4, 6), (2, 600, 3)], ids=["once", "twice"])
def test_crawl_when_interrupted_while_the_index_is_away_then_it_is_waited_for_unless_that_was_twice(
    site: SiteProcess, tmp_path: Path, times: int, patience_seconds: int, expected: int
) -> None:
    pages(site, AWAY, one=page("one"))
    project = new_project(tmp_path, site, **source(site, AWAY))
    configure(tmp_path, index=absent_index())
    command = [sys.executable, "-m", "searchcrawl", "crawl", "demo", "--json"]
    patient = ("-s", f"SEARCHCRAWL_INDEX_PATIENCE_SECONDS={patience_seconds}")

    with subprocess.Popen([*command, *patient], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE) as running:
        try:
            for words in ("trying again", "SIGINT")[:times]:
                wait_until(lambda words=words: words in log(tmp_path))
                running.send_signal(signal.SIGINT)
            output, _ = running.communicate(timeout=60)
        finally:
            running.kill()

    status = json.loads(output)
    assert (running.returncode, status["waiting"]) == (expected, 2)
    assert status["run"]["end_reason"] == "finished" or times == 2
    assert {row["document_state"] for row in project.rows().values()} <= {DocumentState.CACHED, DocumentState.SENDING}
