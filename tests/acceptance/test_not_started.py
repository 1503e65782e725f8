"""What should have begun and has not: `tick` ends with another code, people are told once, `status` and metrics say it (H2, J1).

And what `run` says: that it is up, what happens and what it waits for, each line with its time (H8).
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, wait_until
from tests.crawl_forks import CLOCK, COMMANDS, PAUSE, Forks, Running, started
from tests.site.client import SiteProcess, configure, write_project
from tests.stored_rows import query

HOST: Final = "gen.acme.test"
HOUR: Final = 3600


@pytest.fixture
def make(site: SiteProcess, tmp_path: Path) -> Callable[..., CrawlProject]:
    """A project whose sources are due, with pages that take so many seconds, and somebody who is told."""

    def make(*names: str, seconds: float = 0.0, **keys: Any) -> CrawlProject:
        folder = tmp_path / "project"
        script = tmp_path / "tell"
        script.write_text(f'#!/bin/sh\ncat >> "{tmp_path}/told"\n')
        script.chmod(0o755)
        for name in names:
            start = {"urls": [site.url(HOST, f"/n/8,delay={seconds}/")]}
            write_project(folder, site, name, start=start, fetch={"host_concurrency": 1})
        schedule = {"sources": [*names], "every_minutes": 600}
        configure(folder, schedules={"s": schedule}, notify={"command": str(script)}, **keys)
        return CrawlProject(folder=folder, site=site, name=names[0])

    return make


def told(project: CrawlProject) -> list[tuple[str, str]]:
    path = project.folder.parent / "told"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(each["event"], each["source"]) for each in found]


def codes(project: CrawlProject, name: str, **variables: str) -> set[str]:
    """The warnings of ``status``; its metrics have the same."""
    done = COMMANDS.run(project.folder, "status", name, "--json", **variables)
    found = {warning["code"] for warning in json.loads(done.stdout)["warnings"]}
    metrics = COMMANDS.run(project.folder, "status", name, "--prometheus", **variables).stdout
    for code in found:
        assert f'searchcrawl_warnings{{code="{code}",source="{name}"}} 1.0' in metrics
    return found


def has_ended(project: CrawlProject) -> bool:
    return query(project.folder, "SELECT count(*) FROM jobs WHERE state = 'ended'") == [(1,)]


def test_tick_when_a_crawl_cannot_be_started_then_exit_7_and_told_once_until_it_could(
    make: Callable[..., CrawlProject],
) -> None:
    project = make("demo")
    # What it prints has no place.
    obstacle = project.folder / "var" / "log" / "demo.out"
    obstacle.mkdir(parents=True)

    ticks = []
    for _ in range(3):
        ticks.append(COMMANDS.run(project.folder, "tick", **{PAUSE: "0.01"}))
        time.sleep(0.1)
    warned = codes(project, "demo")
    shown = project.command("status").stdout
    metrics = (project.folder / "var" / "metrics" / "demo.prom").read_text("utf-8")
    obstacle.rmdir()
    good = project.command("tick")
    wait_until(lambda: has_ended(project))
    after = project.command("tick")

    assert [each.returncode for each in ticks] == [7, 7, 7]
    assert [bool(each.stderr) for each in ticks] == [True, False, False]
    assert (told(project), warned) == ([("not_started", "demo")], {"not_started"})
    assert shown.count("its last start failed") == 1
    assert 'code="not_started"' in metrics
    assert (good.returncode, after.returncode, codes(project, "demo")) == (0, 0, set())
    assert json.loads((project.folder / "var" / "told" / "demo.json").read_text()) == []


def test_tick_when_a_source_is_refused_then_told_that_it_does_not_begin(make: Callable[..., CrawlProject]) -> None:
    project = make("demo")
    file = project.folder / "sources" / "demo.toml"
    file.write_text(file.read_text("utf-8").replace("[scope]", "[scope]\ndepth = -1"), "utf-8")

    project.command("tick")
    wait_until(lambda: has_ended(project))
    project.command("tick")
    project.command("tick")

    assert told(project) == [("not_started", "demo")]


def test_tick_when_a_source_waits_for_long_then_it_is_overdue_and_told_once(make: Callable[..., CrawlProject]) -> None:
    project = make("one", "two", seconds=2.0, max_parallel=1)
    later = {CLOCK: str(2 * HOUR)}

    first = project.command("tick")
    wait_until(lambda: query(project.folder, "SELECT state FROM jobs WHERE state = 'running'") != [])
    before = codes(project, "two")
    again = [COMMANDS.run(project.folder, "tick", **later).returncode for _ in range(2)]
    warned = codes(project, "two", **later)
    project.command("stop", "two")
    project.command("stop", "one")

    assert (first.returncode, again, before, warned) == (0, [0, 0], set(), {"overdue"})
    assert told(project) == [("overdue", "two")]


def test_status_when_nothing_looks_at_the_clock_then_overdue(make: Callable[..., CrawlProject]) -> None:
    project = make("demo")
    project.command("tick")
    wait_until(lambda: has_ended(project))

    found = [codes(project, "demo", **{CLOCK: str(round(hours * HOUR))}) for hours in (9, 10.5, 12)]

    assert found == [set(), set(), {"overdue"}]


_LINE: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (.*)")


@pytest.fixture
def folder(site: SiteProcess, tmp_path: Path) -> Path:
    return write_project(tmp_path / "project", site, scope={"include_hosts": ["acme.test"], "depth": 1})


def schedule(folder: Path, **keys: Any) -> None:
    configure(folder, schedules={"s": {"sources": ["demo"], **(keys or {"every_minutes": 600})}})


def text(service: Running) -> str:
    """What it has printed; nothing while it still begins."""
    return service.output.read_text("utf-8") if service.output.exists() else ""


def lines(service: Running) -> list[str]:
    """What it said, without times; each line has one."""
    said = text(service).splitlines()
    found = [_LINE.fullmatch(line) for line in said]
    assert None not in found, said
    return [each[2] for each in found if each is not None]


def test_run_when_it_starts_and_a_crawl_ends_then_it_says_so_and_what_comes_next(forks: Forks, folder: Path) -> None:
    schedule(folder)

    with started(forks.start(folder, "run")) as service:
        service.until(lambda: any(line.startswith("waits for demo, which is due at ") for line in lines(service)))
        service.signal(signal.SIGTERM)
        assert service.wait() == 0
        said = lines(service)

    assert [re.sub(r" due at \S+$", " due at …", line) for line in said] == [
        "up: 1 source has a schedule",
        "demo: started",
        "waits for the end of demo",
        "waits for demo, which is due at …",
        "ends: its crawls go on when it runs again; a second signal ends them at once",
        "down",
    ]


def test_run_when_no_schedule_starts_a_source_then_it_says_what_it_waits_for(forks: Forks, folder: Path) -> None:
    schedule(folder, every_minutes=600, enabled=False)

    with started(forks.start(folder, "run")) as service:
        service.until(lambda: len(lines(service)) >= 2)
        (folder / "searchcrawl.toml").write_text("contact = \n")
        service.until(lambda: len(lines(service)) >= 3)

    assert lines(service)[:2] == [
        "up: 0 sources have a schedule",
        "waits for an edit of searchcrawl.toml: no schedule starts a source",
    ]
    assert lines(service)[2].startswith("searchcrawl.toml: line 1")


def test_run_when_asked_for_json_then_its_first_object_says_that_it_is_up(forks: Forks, folder: Path) -> None:
    schedule(folder, cron="0 0 1 1 *")

    with started(forks.start(folder, "run", "--json")) as service:
        service.until(lambda: text(service).endswith("\n"))
        first, *more = text(service).splitlines()

    found = json.loads(first)
    assert (found["started"], found["next"]["source"], more) == ([], "demo", [])
    assert found["next"]["at"] > found["at"]
