"""`run` says that it is up, what happens and what it waits for, each line with its time (H8)."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.crawl_forks import Forks, Running, started
from tests.site.client import SiteProcess, configure, write_project

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
