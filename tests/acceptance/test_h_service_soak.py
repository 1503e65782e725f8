"""`run` with five sources for an hour, its crawls and itself killed every minute: nothing is lost or doubled (H8)."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject
from tests.crawl_forks import PAUSE, Forks, Running
from tests.site.client import SiteProcess, configure, write_project
from tests.stored_rows import query
from tests.workers import processes

HOST: Final = "gen.acme.test"
#: The pages of each source.
SOURCES: Final = {name: 40 + number for number, name in enumerate(("one", "two", "three", "four", "five"))}
SECONDS: Final = float(os.environ.get("SOAK_SECONDS", "3600"))
KILL_SECONDS: Final = float(os.environ.get("SOAK_KILL_SECONDS", "60"))


def wait_until(come: Callable[[], bool], *, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not come():
        assert time.monotonic() < end
        time.sleep(0.1)


def kill_one(folder: Path, service: Running, chance: random.Random) -> bool:
    """Kills a crawl or the service; whether it was the service."""
    pids = processes(folder)
    victim = chance.choice([*pids, service.pid])
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return victim == service.pid


@pytest.mark.soak
def test_run_when_killed_every_minute_for_an_hour_then_nothing_is_lost_or_doubled_and_no_process_is_left(
    tmp_path: Path,
) -> None:
    chance, folder = random.Random(7), tmp_path / "project"
    with SiteProcess() as site, Forks(4) as forks:
        for name, pages in SOURCES.items():
            write_project(folder, site, name, start={"urls": [site.url(HOST, f"/n/{pages},delay=0.3/")]})
        schedules = {name: {"sources": [name], "every_minutes": 0.5} for name in SOURCES}
        configure(folder, max_parallel=3, schedules=schedules)
        service = forks.start(folder, "run", **{PAUSE: "0.5"})
        end, kills = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            time.sleep(min(KILL_SECONDS, 60))
            kills += 1
            if kill_one(folder, service, chance):
                assert service.wait() == -signal.SIGKILL
                service = forks.start(folder, "run", **{PAUSE: "0.5"})
            # Never two crawls of one source at once.
            running = query(folder, "SELECT source_id FROM runs WHERE ended_ms IS NULL")
            assert len(running) == len(set(running))
        configure(folder, max_parallel=3, schedules={"all": {"sources": [*SOURCES], "every_minutes": 6000}})
        # It may have been started just now, and know no signal yet. What was cut off is completed first.
        time.sleep(5)
        wait_until(lambda: query(folder, "SELECT 1 FROM jobs WHERE state NOT IN ('ended', 'none')") == [])
        service.signal(signal.SIGTERM)
        assert service.wait() == 0
        wait_until(lambda: processes(folder) == [], seconds=30)

        for name, pages in SOURCES.items():
            project = CrawlProject(folder=folder, site=site, name=name)
            assert project.crawl().exit_code == 0
            assert len(project.indexed()) == pages
            assert project.ask("verify", name)["ok"]
        assert kills > 0
        assert query(folder, "SELECT count(*) FROM leases WHERE renewed_ms IS NOT NULL") == [(0,)]
        ((finished,),) = query(folder, "SELECT count(*) FROM runs WHERE end_reason = 'finished'")
        assert int(str(finished)) >= len(SOURCES)
