"""Worker processes that something else kills: no page is blamed but the one that the process had taken (X-D12, X-R15)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "workers.acme.test"
#: Each is read in a worker process.
LARGE: Final = {f"large{number}": page(f"title {number}", text=f"word{number} " * 60_000) for number in range(16)}
URLS: Final = sorted(f"{HOST}/{name}.html" for name in LARGE)
START: Final = f"{HOST}/"
#: Kills worker processes of the crawl, as a machine without memory does, while the file is there.
KILLER: Final = """
import os, random, signal, threading, time
from contextlib import suppress
from pathlib import Path
from tests.workers import list_workers

class Killer:
    def __init__(self):
        threading.Thread(target=self.kill, daemon=True).start()

    def kill(self):
        seen = set()
        while Path("hostile").exists():
            for worker in set(list_workers()) - seen:
                seen.add(worker)
                if {spares}:
                    continue
                time.sleep({seconds})
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                Path("killed").write_text(str(len(seen)))
            time.sleep(0.005)
"""
OPTIONS: Final = ("-s", 'EXTENSIONS={"mine.Killer": 1}')


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, **LARGE)
    return site


def make_project(folder: Path, site: SiteProcess, *, spares: str = "False", seconds: str = "0") -> CrawlProject:
    """A project whose crawls kill their worker processes, but some, so many seconds after the begin of each."""
    project = new_project(folder, site, **source(site, HOST))
    (folder / "mine.py").write_text(KILLER.format(spares=spares, seconds=seconds), "utf-8")
    (folder / "hostile").touch()
    return project


@pytest.mark.few(1)
def test_pages_when_workers_are_killed_at_random_then_only_those_that_they_had_taken_are_blamed(
    site: SiteProcess, tmp_path: Path
) -> None:
    # Fewer in a row than end a run.
    project = make_project(tmp_path, site, spares="len(seen) % 4 == 0", seconds="random.uniform(0, 1.5)")

    ended = project.crawl(*OPTIONS)

    codes = project.codes()
    blamed = [url for url, code in codes.items() if code == 904]
    assert set(codes.values()) <= {200, 904}
    assert project.indexed() == sorted(codes.keys() - set(blamed))
    assert ended.exit_code == 0
    assert "Traceback" not in project.log()

    (tmp_path / "hostile").unlink()
    assert project.crawl(*OPTIONS).exit_code == 0
    assert project.indexed() == [START, *URLS]


@pytest.mark.few(1)
def test_run_when_each_worker_is_killed_while_it_starts_then_it_ends_and_the_next_one_reads_all_pages(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = make_project(tmp_path, site)

    ended = project.crawl(*OPTIONS)

    assert ended.exit_code == 7
    assert "worker processes in a row" in ended.errors
    assert "Traceback" not in project.log()
    assert {url: code for url, code in project.codes().items() if url != START} == dict.fromkeys(URLS, 0)
    tried = project.command("test", site.url(HOST, "/large0.html"), "--source", "demo", *OPTIONS)
    assert (tried.returncode, "worker processes in a row" in tried.stderr) == (7, True)

    (tmp_path / "hostile").unlink()
    assert project.crawl(*OPTIONS).exit_code == 0
    assert project.indexed() == [START, *URLS]
