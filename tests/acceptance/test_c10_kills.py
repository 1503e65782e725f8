"""C10, X-I2: the crawler, the browser or its driver is killed at any moment; the end is that of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from searchcrawl.selftest.final_state import FinalState
from tests.acceptance.support_project import CrawlProject, new_project
from tests.crawl_forks import Forks, Running, started
from tests.final_state import read_state
from tests.live_browsers import list_browsers, list_drivers
from tests.page_wall import need_browser
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST = "www.acme.test"
ROUNDS = 20
RENDERED = [f"/app/{number}" for number in range(12)]
PLAIN = [f"/plain/{number}.html" for number in range(6)]
_SHELL = "<!DOCTYPE html><title>App</title><div id=root></div><script src=/app.js></script>"
_SCRIPT = """
const words = `words of ${location.pathname} `.repeat(20);
document.title = location.pathname;
document.getElementById('root').innerHTML = `<p>${words}</p>`;
"""
#: What is killed, by the process of the crawl.
VICTIMS: dict[str, Callable[[int], set[int]]] = {
    "crawler": lambda crawl: {crawl},
    "browser": list_browsers,
    "driver": list_drivers,
}


@pytest.fixture(scope="module")
def site() -> Iterator[SiteProcess]:
    need_browser()
    with SiteProcess() as running:
        links = "".join(f"<a href={path}>{path}</a>" for path in (*RENDERED, *PLAIN))
        words = "words that are there without a script " * 40
        running.set_pages(HOST, {"/": f"<title>all</title><p>{words}</p>{links}"} | dict.fromkeys(RENDERED, _SHELL))
        running.set_pages(HOST, {path: f"<title>{path}</title><p>{path} {words}</p>" for path in PLAIN})
        running.set_page(HOST, "/app.js", body=_SCRIPT, content_type="text/javascript")
        yield running


def _project(folder: Path, site: SiteProcess) -> CrawlProject:
    folder.mkdir()
    return new_project(
        folder,
        site,
        start={"urls": [site.url(HOST, "/")], "sitemaps": "off"},
        scope={"include_hosts": [f"={HOST}"], "trap_after": 0},
        render={"mode": "auto", "quiet_ms": 50},
        fetch={"delay_seconds": 0, "retries": 2},
    )


@pytest.fixture(scope="module")
def undisturbed(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> tuple[FinalState, float]:
    """What a crawl comes to, and the seconds that it takes from when its browser is there."""
    project = _project(tmp_path_factory.mktemp("kills") / "undisturbed", site)
    with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
        running.until(lambda: bool(list_browsers(running.pid)))
        begun = time.monotonic()
        assert running.wait() == 0
    return read_state(project.folder, "demo"), time.monotonic() - begun


@pytest.mark.few(2)
@pytest.mark.parametrize("number", range(ROUNDS))
def test_c10_crawl_when_a_process_of_it_is_killed_at_any_moment_then_it_ends_as_if_undisturbed(
    tmp_path: Path, site: SiteProcess, undisturbed: tuple[FinalState, float], number: int
) -> None:
    expected, seconds = undisturbed
    name = list(VICTIMS)[number % len(VICTIMS)]
    project = _project(tmp_path / "project", site)
    with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
        running.until(lambda: bool(list_browsers(running.pid) and list_drivers(running.pid)))
        mine = list_browsers(running.pid) | list_drivers(running.pid)
        time.sleep(random.Random(number).uniform(0, seconds))
        mine |= list_browsers(running.pid) | list_drivers(running.pid)
        _kill(VICTIMS[name](running.pid), running)
        running.wait()

    project.crawl()

    codes = {url: row for url, row in project.codes().items() if row != 200}
    assert read_state(project.folder, "demo") == expected, (
        f"{name} killed in round {number}: {codes} {project.log()[-2000:]}"
    )
    assert not _wait_until_gone(mine)


def _kill(victims: set[int], running: Running) -> None:
    for pid in victims:
        if pid == running.pid:
            running.signal(signal.SIGKILL)
        else:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                # The crawl was over.
                continue


def _wait_until_gone(processes: set[int]) -> set[int]:
    deadline = time.monotonic() + 20
    while (left := processes & (list_browsers() | list_drivers())) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
