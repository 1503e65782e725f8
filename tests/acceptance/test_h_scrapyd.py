"""`tick` with real scrapyds: sources that come later, a cancelled job, and scrapyds that are killed (H1, H4, H5)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject
from tests.crawl_forks import COMMANDS, PAUSE
from tests.scrapyd_server import PASSWORD, ScrapydProcess
from tests.site.client import SCRAPY_CFG, SiteProcess, configure, write_project
from tests.stored_rows import query

pytestmark = pytest.mark.extended

HOST: Final = "gen.acme.test"
#: The pages of each source.
SOURCES: Final = {"one": 40, "two": 41, "three": 42}


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        yield site


def add_source(site: SiteProcess, folder: Path, name: str) -> None:
    write_project(folder, site, name, start={"urls": [site.url(HOST, f"/n/{SOURCES[name]},delay=0.7/")]})


def tick(folder: Path) -> dict[str, Any]:
    done = COMMANDS.run(folder, "tick", "--json", **{PAUSE: "0.01"})
    assert PASSWORD not in done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def jobs(folder: Path) -> dict[str, tuple[str, str, str, int]]:
    rows = query(
        folder,
        "SELECT sources.name, state, token, place, attempt FROM jobs JOIN sources ON sources.id = jobs.source_id",
    )
    return {name: tuple(values) for name, *values in rows}  # type: ignore[misc]


def fetched(folder: Path, name: str) -> int:
    statement = "SELECT count(*) FROM urls JOIN sources ON sources.id = source_id WHERE fetch_state = 2 AND name = "
    ((found,),) = query(folder, f"{statement}'{name}'")
    return int(found)


def job_process(token: str) -> int:
    """The process of a job."""
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if f"_job={token}" in (each / "cmdline").read_text("utf-8").split("\0"):
                return int(each.name)
        except OSError:
            continue
    raise AssertionError(token)


def start_scrapyds(stack: ExitStack, folder: Path, count: int) -> list[ScrapydProcess]:
    """So many of one project; each has a queue and a folder of its own."""
    found = []
    for number in range(count):
        own = folder / "var" / f"scrapyd{number}"
        own.mkdir(parents=True)
        (own / "scrapy.cfg").write_text(SCRAPY_CFG, "utf-8")
        found.append(stack.enter_context(ScrapydProcess(own, project=folder)))
    return found


def kill(scrapyds: list[ScrapydProcess], token: str) -> None:
    """They die in the middle of their crawls, and one of these does as well; then they are started again."""
    for each in scrapyds:
        each.kill()
    os.kill(job_process(token), signal.SIGKILL)
    for each in scrapyds:
        each.start_again()


def ends(folder: Path) -> dict[str, list[str]]:
    """How the runs of each source ended."""
    found: dict[str, list[str]] = {}
    rows = query(folder, "SELECT name, end_reason FROM runs JOIN sources ON sources.id = source_id ORDER BY runs.id")
    for name, reason in rows:
        found.setdefault(name, []).append(reason)
    return found


@pytest.mark.parametrize("count", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_tick_when_scrapyds_run_the_crawls_and_are_killed_then_each_source_ends_as_if_nothing_happened(
    site: SiteProcess, tmp_path: Path, count: int
) -> None:
    folder = tmp_path / "project"
    add_source(site, folder, "one")
    with ExitStack() as stack:
        scrapyds = start_scrapyds(stack, folder, count)
        first = scrapyds[0]
        listed = [first.get("listspiders.json", project="default")["spiders"]]
        for name in ("two", "three"):
            add_source(site, folder, name)
        listed.append(first.get("listspiders.json", project="default")["spiders"])
        schedule = {"sources": [*SOURCES], "every_minutes": 6000, "scrapyd": [each.url for each in scrapyds]}
        configure(folder, max_parallel=3, schedules={"s": schedule})

        started = tick(folder)["started"]
        first.wait(lambda: fetched(folder, "one") > 5)
        before = jobs(folder)
        of_one = next(each for each in scrapyds if each.url.endswith(before["one"][2].removeprefix("http://")))
        of_one.post("cancel.json", project="default", job=before["one"][1], signal="TERM")
        again = tick(folder)
        first.wait(lambda: all(fetched(folder, name) > 5 for name in ("two", "three")))
        kill(scrapyds, before["three"][1])
        restarted = tick(folder)
        first.wait(lambda: jobs(folder)["one"][0] == "ended" and jobs(folder)["two"][0] == "ended")
        first.wait(lambda: tick(folder)["running"] == [] and jobs(folder)["three"][0] == "ended")
        by_hand = CrawlProject(folder=folder, site=site, name="one").crawl()

    assert listed == [["one"], ["one", "three", "two"]]
    assert (sorted(started), again["started"], {*again["running"]} >= {"two", "three"}) == (sorted(SOURCES), [], True)
    assert len({place for _, _, place, _ in before.values()}) == count
    assert [each["source"] for each in restarted["failed"]] in ([], ["three"])
    assert (jobs(folder)["three"][3], by_hand.exit_code) == (0, 0)
    for name, pages in SOURCES.items():
        assert len(CrawlProject(folder=folder, site=site, name=name).indexed()) == pages
    assert ends(folder) == {"one": ["stopped", "finished"], "three": ["finished"], "two": ["finished"]}
    # A kill costs what was under way, and nothing else is asked for again.
    assert len(site.requested()) < sum(SOURCES.values()) + 10
