"""`tick` and `run` with real crawls: due sources begin by themselves, what is killed goes on, and nothing is left (H1–H5, H8)."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.failpoints import OF_TICKS
from tests.acceptance.support_project import CrawlProject
from tests.crawl_forks import COMMANDS, PAUSE, Forks, Running, started
from tests.final_state import settled
from tests.site.client import SiteProcess, configure, write_project
from tests.stored_rows import query
from tests.workers import processes

pytestmark = pytest.mark.extended

LIMIT_SECONDS: Final = 60
HOST: Final = "gen.acme.test"
#: The pages of each source.
SOURCES: Final = {"one": 40, "two": 41}
PAGES: Final = sum(SOURCES.values())


@pytest.fixture
def folder(site: SiteProcess, tmp_path: Path) -> Iterator[Path]:
    """A project with two sources; no process of it may be left."""
    folder = tmp_path / "project"
    site.clear_log()
    for name, pages in SOURCES.items():
        write_project(folder, site, name, start={"urls": [site.url(HOST, f"/n/{pages},delay=0.1/")]})
    yield folder
    wait_until(lambda: processes(folder) == [])


def schedule(folder: Path, **keys: Any) -> None:
    configure(folder, schedules={"s": {"sources": [*SOURCES], "every_minutes": 600}}, **keys)


def wait_until(come: Callable[[], bool], *, seconds: float = LIMIT_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not come():
        assert time.monotonic() < end
        time.sleep(0.05)


def runs(folder: Path) -> list[tuple[Any, ...]]:
    return query(
        folder,
        "SELECT sources.name, runs.end_reason, runs.exit_code FROM runs JOIN sources ON sources.id = runs.source_id "
        "ORDER BY runs.id",
    )


def status(project: CrawlProject) -> dict[str, Any]:
    return project.ask("status", project.name)


def check_complete(site: SiteProcess, folder: Path) -> None:
    for name, pages in SOURCES.items():
        assert len(CrawlProject(folder=folder, site=site, name=name).indexed()) == pages
    assert query(folder, "SELECT count(*) FROM urls WHERE fetch_state <> 2") == [(0,)]
    assert query(folder, "SELECT count(*) FROM leases WHERE renewed_ms IS NOT NULL") == [(0,)]


@pytest.mark.matrix
def test_tick_when_two_sources_are_due_and_one_may_run_then_one_after_the_other_runs_once(
    site: SiteProcess, folder: Path
) -> None:
    # The first one takes some seconds: other commands are called meanwhile.
    write_project(folder, site, "one", start={"urls": [site.url(HOST, f"/n/{SOURCES['one']},delay=0.6/")]})
    schedule(folder, max_parallel=1)
    one, two = (CrawlProject(folder=folder, site=site, name=name) for name in SOURCES)
    before = status(one)
    shown = one.command("status").stdout

    first = one.ask("tick")
    wait_until(lambda: query(folder, "SELECT count(*) FROM runs") == [(1,)])
    again = one.command("tick")
    by_hand = one.command("crawl", "one")
    meanwhile = status(two)
    wait_until(lambda: len(runs(folder)) == 1 and runs(folder)[0][1] is not None)
    second = one.command("tick")
    wait_until(lambda: len(runs(folder)) == 2 and runs(folder)[1][1] is not None)
    third = one.command("tick")
    after = status(one)

    assert (before["state"], bool(before["next_run"]), before["log"]) == ("scheduled", True, after["log"])
    # Next to the state of each source there is when it runs next.
    assert "next run" in shown
    assert re.search(r"one\s+scheduled\s+20\d\d-\d\d-\d\d \d\d:\d\dZ", shown)
    assert (first["started"], first["waiting"], first["failed"]) == (["one"], ["two"], [])
    assert (again.stdout, again.stderr, again.returncode) == ("", "", 0)
    assert (meanwhile["state"], by_hand.returncode) == ("waiting_for_start", 5)
    assert (second.stdout, third.stdout) == ("two: started\n", "")
    assert runs(folder) == [("one", "finished", 0), ("two", "finished", 0)]
    assert (after["state"], after["error"], after["next_run"] > after["run"]["ended"]) == ("finished", None, True)
    assert "ended: finished, exit 0" in Path(after["log"]).read_text("utf-8")
    assert "one: initial run" in Path(after["log"]).with_suffix(".out").read_text("utf-8")
    check_complete(site, folder)


def count_ups(folder: Path) -> int:
    """How many services have said that they are up."""
    return (folder / "output.txt").read_text("utf-8").count("Z up: ")


def end_by_system(forks: Forks, folder: Path) -> tuple[list[Any], list[Any], list[Any]]:
    """Runs the service and ends it as systemd does, with a signal to all its processes; runs, unsent documents, jobs."""
    with started(forks.start(folder, "run", **{PAUSE: "0.1"})) as service:
        # Both are in the middle: a signal before that ends a crawl which has done nothing yet.
        begun = "SELECT source_id FROM urls WHERE fetch_state = 2 GROUP BY source_id HAVING count(*) > 3"
        service.until(lambda: len(query(folder, begun)) == 2)
        for pid in processes(folder):
            os.kill(pid, signal.SIGTERM)
        assert service.wait() == 0
    wait_until(lambda: processes(folder) == [])
    unsent = query(folder, "SELECT count(*) FROM documents WHERE state IN (1, 2)")
    return sorted(runs(folder)), unsent, query(folder, "SELECT state FROM jobs")


def test_run_when_its_crawls_and_itself_are_killed_then_all_go_on_and_nothing_is_left(
    forks: Forks, site: SiteProcess, folder: Path
) -> None:
    schedule(folder)

    stopped = end_by_system(forks, folder)

    for kill_itself in (True, False):
        ups = count_ups(folder)
        with started(forks.start(folder, "run", **{PAUSE: "0.1"})) as service:
            known = len(settled(folder))
            service.until(lambda known=known: len(settled(folder)) >= min(known + 8, PAGES))
            crawls = [pid for pid in processes(folder) if pid != service.pid]
            for pid in crawls[:1]:
                os.kill(pid, signal.SIGKILL)
            if kill_itself:
                service.signal(signal.SIGKILL)
                assert service.wait() == -signal.SIGKILL
            else:
                service.until(lambda: len([each for each in processes(folder) if each != service.pid]) > 0)
                # The crawls may be those of the one before: this one has to be up.
                service.until(lambda ups=ups: count_ups(folder) > ups)
                service.signal(signal.SIGTERM)
                assert service.wait() == 0
                # All that it started have ended, and their worker processes.
                wait_until(lambda: processes(folder) == [])

    with started(forks.start(folder, "run", **{PAUSE: "0.1"})) as service:
        service.until(lambda: sum(reason == "finished" for _, reason, _ in runs(folder)) == 2)
        service.signal(signal.SIGINT)
        assert service.wait() == 0

    requested = site.requested()
    # No crawl was cut off, what was fetched is in the index, and both were to go on.
    assert stopped == ([("one", "stopped", 3), ("two", "stopped", 3)], [(0,)], [("waiting",), ("waiting",)])
    check_complete(site, folder)
    assert {(name, reason) for name, reason, _ in runs(folder)} >= {(name, "finished") for name in SOURCES}
    # A kill costs what was under way, and nothing else is asked for again.
    assert len(requested) < PAGES + 3 * 2 * 8


def test_run_when_the_project_file_is_refused_for_long_then_it_says_so_once(forks: Forks, folder: Path) -> None:
    schedule(folder)
    good = (folder / "searchcrawl.toml").read_text("utf-8")

    with started(forks.start(folder, "run", **{PAUSE: "0.1"})) as service:
        service.until(lambda: len(settled(folder)) >= 1)
        said = []
        for _ in range(2):
            (folder / "searchcrawl.toml").write_text(f"{good}\nwrong = [", "utf-8")
            # Some ticks, of two seconds each.
            time.sleep(7)
            (folder / "searchcrawl.toml").write_text(good, "utf-8")
            time.sleep(3)
            said.append(service.output.read_text("utf-8").count("searchcrawl.toml: line"))
        service.signal(signal.SIGTERM)
        service.wait()

    assert said == [1, 2]


def test_run_when_its_terminal_is_closed_then_its_crawls_end_cleanly(forks: Forks, folder: Path) -> None:
    schedule(folder)

    with started(forks.start(folder, "run", **{PAUSE: "0.1"})) as service:
        service.until(lambda: len(settled(folder)) >= 4)
        # Of the terminal, and of the shell in it.
        service.signal(signal.SIGHUP)
        service.signal(signal.SIGHUP)
        code = service.wait()

    wait_until(lambda: processes(folder) == [])
    assert code == 0
    assert {(reason, exit_code) for _, reason, exit_code in runs(folder)} == {("stopped", 3)}


@pytest.mark.few(2)
@pytest.mark.parametrize("point", [name for name in OF_TICKS if name not in {"job.stopped", "url.submitted"}])
def test_tick_when_it_is_killed_at_any_step_then_the_next_one_goes_on_and_each_source_runs_once(
    site: SiteProcess, folder: Path, point: str
) -> None:
    schedule(folder)
    one = CrawlProject(folder=folder, site=site, name="one")

    killed = COMMANDS.run(folder, "tick", SEARCHCRAWL_FAILPOINT=point)
    stopped = COMMANDS.run(folder, "stop", "two", SEARCHCRAWL_FAILPOINT="job.stopped")
    wait_until(lambda: (one.command("tick"), query(folder, "SELECT state FROM jobs WHERE state <> 'ended'"))[1] == [])

    assert (killed.returncode, stopped.returncode) == (-signal.SIGKILL, -signal.SIGKILL)
    # The start of the other one was taken back.
    assert runs(folder) == [("one", "finished", 0)]
    assert len(one.indexed()) == SOURCES["one"]
    assert sorted(site.requested()) == sorted(set(site.requested()))


@pytest.mark.parametrize("command", ["stop", "suspend"])
def test_stop_when_the_last_run_was_completed_and_a_start_waits_then_it_says_that_no_run_is_left(
    site: SiteProcess, folder: Path, command: str
) -> None:
    one = CrawlProject(folder=folder, site=site, name="one")
    assert one.crawl().exit_code == 0
    schedule(folder)
    COMMANDS.run(folder, "tick", SEARCHCRAWL_FAILPOINT="job.chosen")

    ended = one.command(command, "one")

    assert ended.returncode == 0
    assert "one: stopped: no run of it is left to go on with" in ended.stdout


def test_tick_when_a_source_cannot_begin_then_the_reason_is_said_and_the_other_runs(
    site: SiteProcess, folder: Path
) -> None:
    configure(folder, schedules={"s": {"sources": [*SOURCES], "every_minutes": 600, "mode": "examine"}})
    one = CrawlProject(folder=folder, site=site, name="one")
    file = folder / "sources" / "one.toml"
    good = file.read_text("utf-8")
    file.write_text(good.replace("[scope]", "[scope]\ndepth = -1"), "utf-8")

    one.command("tick")
    wait_until(lambda: query(folder, "SELECT error FROM jobs WHERE state = 'ended' AND error IS NOT NULL") != [])
    wait_until(lambda: [each[1] for each in runs(folder)] == ["finished"])
    file.write_text(good, "utf-8")
    after = status(one)

    assert runs(folder) == [("two", "finished", 0)]
    assert (after["state"], "scope.depth" in after["error"]) == ("failed", True)
    # It was only examined, as the schedule says; its source file says nothing of it.
    two = CrawlProject(folder=folder, site=site, name="two")
    assert (two.indexed(), len(settled(folder))) == ([], SOURCES["two"])


#: The pages of each source.
FIVE: Final = {name: 40 + number for number, name in enumerate(("one", "two", "three", "four", "five"))}
SECONDS: Final = float(os.environ.get("SOAK_SECONDS", "3600"))
KILL_SECONDS: Final = float(os.environ.get("SOAK_KILL_SECONDS", "60"))


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
        for name, pages in FIVE.items():
            write_project(folder, site, name, start={"urls": [site.url(HOST, f"/n/{pages},delay=0.3/")]})
        schedules = {name: {"sources": [name], "every_minutes": 0.5} for name in FIVE}
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
        configure(folder, max_parallel=3, schedules={"all": {"sources": [*FIVE], "every_minutes": 6000}})
        # It may have been started just now, and know no signal yet. What was cut off is completed first.
        time.sleep(5)
        wait_until(lambda: query(folder, "SELECT 1 FROM jobs WHERE state NOT IN ('ended', 'none')") == [], seconds=180)
        service.signal(signal.SIGTERM)
        assert service.wait() == 0
        wait_until(lambda: processes(folder) == [], seconds=30)

        for name, pages in FIVE.items():
            project = CrawlProject(folder=folder, site=site, name=name)
            assert project.crawl().exit_code == 0
            assert len(project.indexed()) == pages
            assert project.ask("verify", name)["ok"]
        assert kills > 0
        assert query(folder, "SELECT count(*) FROM leases WHERE renewed_ms IS NOT NULL") == [(0,)]
        ((finished,),) = query(folder, "SELECT count(*) FROM runs WHERE end_reason = 'finished'")
        assert int(str(finished)) >= len(FIVE)
