"""A crawl is stopped, suspended and resumed from another process, all sources are crawled in turn (H4); a URL is submitted: the
answer says what becomes of it, and the run that is under way, or the next, visits it (H9).
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.crawl_forks import COMMANDS, Forks, Running, started
from tests.final_state import settled
from tests.site.client import SiteProcess, write_project
from tests.stored_rows import query

pytestmark = pytest.mark.extended

PAGES: Final = 44
START: Final = f"/n/{PAGES},delay=1/"
HOST: Final = "gen.acme.test"


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    site.clear_log()
    folder = write_project(tmp_path / "project", site, "slow", start={"urls": [site.url(HOST, START)]})
    return CrawlProject(folder=folder, site=site, name="slow")


@pytest.fixture
def running(forks: Forks, project: CrawlProject) -> Iterator[Running]:
    """A crawl in its middle."""
    with started(forks.start(project.folder, "crawl", "slow")) as running:
        running.until(lambda: len(settled(project.folder)) >= 10)
        yield running


def state(project: CrawlProject) -> str:
    found: str = project.ask("status", "slow")["state"]
    return found


@pytest.mark.matrix
def test_source_when_suspended_in_the_middle_of_a_run_then_goes_on_once_resumed_and_nothing_is_fetched_twice(
    project: CrawlProject, running: Running
) -> None:
    suspended = project.command("suspend", "slow")
    code = running.wait()
    before = settled(project.folder)
    refused = project.command("crawl", "slow")
    shown = state(project)
    resumed = project.ask("resume", "slow")
    again = project.command("resume", "slow")
    waiting = state(project)
    after = project.crawl()

    requested = project.site.requested()
    assert (suspended.returncode, code, refused.returncode, shown) == (0, 3, 3, "suspended")
    assert "slow: stopped" in suspended.stdout
    assert "slow is suspended: searchcrawl resume slow" in refused.stderr
    assert (resumed, again.stdout) == ({"source": "slow", "result": "resumed"}, "slow: was not suspended\n")
    assert (waiting, after.exit_code, len(project.indexed())) == ("stopped", 0, PAGES)
    assert 10 <= len(before) < PAGES
    assert len(requested) == len(set(requested)) == PAGES
    ended = query(project.folder, "SELECT end_reason, exit_code FROM runs ORDER BY id")
    assert ended == [("stopped", 3), ("finished", 0)]


def test_stop_when_a_crawl_runs_elsewhere_then_ends_it_and_later_crawls_are_not_told(
    project: CrawlProject, running: Running
) -> None:
    first = project.ask("stop", "slow")
    code = running.wait()
    second = project.ask("stop", "slow")
    shown = project.command("stop", "slow").stdout
    unknown = project.command("stop", "other")
    after = project.crawl()

    assert (first["result"], code, second["result"]) == ("stopped", 3, "idle")
    assert shown == "slow: was not running: the next crawl goes on with its last run\n"
    assert (unknown.returncode, unknown.stderr) == (2, "searchcrawl: unknown source: other\n")
    assert (after.exit_code, len(project.indexed())) == (0, PAGES)


def test_crawl_all_when_a_source_is_suspended_or_broken_then_the_others_run_in_turn(
    site: SiteProcess, project: CrawlProject, forks: Forks
) -> None:
    for name in ("away", "fast"):
        write_project(project.folder, site, name, start={"urls": [site.url(HOST, "/n/5/")]})
    (project.folder / "sources" / "broken.toml").write_text("[start\n", "utf-8")
    project.command("suspend", "away")

    done = project.command("crawl", "--all", "--json", "-a", "limit=20")
    (project.folder / "sources" / "broken.toml").unlink()
    with started(forks.start(project.folder, "crawl", "--all")) as running:
        running.until(lambda: "slow" in query_running(project))
        running.signal(signal.SIGTERM)
        code = running.wait()

    shown = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["source"], each["run"]["end_reason"]) for each in shown] == [("fast", "finished"), ("slow", "limit")]
    assert done.returncode == 4
    assert "sources/broken.toml" in done.stderr
    assert "away is left out: it is suspended" in done.stderr
    assert code == 3
    assert project.command("crawl", "--all", "slow").returncode == 2
    assert project.command("crawl").returncode == 2


def query_running(project: CrawlProject) -> list[str]:
    """The sources with a run that has not ended."""
    rows = query(
        project.folder,
        "SELECT sources.name FROM runs JOIN sources ON sources.id = runs.source_id WHERE runs.ended_ms IS NULL",
    )
    return [name for (name,) in rows]


@pytest.mark.matrix
def test_submit_when_urls_are_given_then_the_four_answers_and_the_next_run_visits_what_is_ok(tmp_path: Path) -> None:
    with SiteProcess() as site:
        start, new = (site.url(HOST, path) for path in ("/n/5/", "/n/3/"))
        excluded = site.url(HOST, "/n/4/")
        scope = {"include_hosts": [HOST], "exclude_urls": [excluded + "*"]}
        project = new_project(tmp_path, site, start={"urls": [start]}, scope=scope)

        def submit(url: str, *options: str) -> str:
            done = project.command("submit", url, "--source", "demo", "--json", *options)
            found: str = json.loads(done.stdout)["result"]
            assert done.returncode == (0 if found in {"ok", "duplicate"} else 2)
            return found

        # It is killed once it has noted the URL: it is noted.
        killed = COMMANDS.run(tmp_path, "submit", new, "--source", "demo", SEARCHCRAWL_FAILPOINT="url.submitted")
        early = submit(new)
        first = project.crawl()
        later = {
            url: submit(url) for url in (new, start, excluded, "http://elsewhere.test/", "http://[/", "mailto:a@b.c")
        }
        unseen = site.url(HOST, "/n/2/")
        shown = project.command("submit", unseen, "--source", "demo").stdout
        second = project.crawl()
        nobody = project.command("submit", unseen)
        unknown = project.command("submit", unseen, "--source", "other")

    assert (killed.returncode, early) == (-signal.SIGKILL, "duplicate")
    assert list(later.values()) == ["duplicate", "duplicate", "out_of_scope", "out_of_scope", "invalid", "invalid"]
    assert shown == f"{unseen}: ok\n"
    assert (first.exit_code, second.exit_code, nobody.returncode, unknown.returncode) == (0, 0, 2, 2)
    indexed = project.indexed()
    assert {f"{HOST}/n/5/", f"{HOST}/n/3/", f"{HOST}/n/2/"} <= {*indexed}
    assert not any("/n/4/" in url for url in indexed)
    assert query(tmp_path, f"SELECT depth FROM urls WHERE url = '{new}'") == [(1,)]
    assert query(tmp_path, "SELECT count(*) FROM submitted") == [(0,)]


def test_submit_when_the_source_is_crawled_then_that_run_visits_it_and_forget_takes_back_what_waits(
    tmp_path: Path,
) -> None:
    with SiteProcess() as site, Forks(1) as forks:
        start, new, taken_back = (site.url(HOST, path) for path in ("/n/14,delay=1/", "/n/3/", "/n/4/"))
        # A page a second.
        project = new_project(tmp_path, site, start={"urls": [start]}, fetch={"host_concurrency": 1})
        with started(forks.start(tmp_path, "crawl", "demo")) as running:
            running.until(lambda: len(settled(tmp_path)) >= 2)
            answer = project.command("submit", new, "--source", "demo")
            running.until(lambda: "/n/3/" in str(site.requested()))
            code = running.wait()
        runs = query(tmp_path, "SELECT end_reason, exit_code FROM runs ORDER BY id")
        waiting = project.command("submit", taken_back, "--source", "demo").stdout
        forgotten = project.command("forget", taken_back)
        left = query(tmp_path, "SELECT url FROM submitted")

    assert (answer.stdout, code, runs) == (f"{new}: ok\n", 0, [("finished", 0)])
    assert {f"{HOST}/n/3/"} <= {*project.indexed()}
    assert (waiting, forgotten.returncode, left) == (f"{taken_back}: ok\n", 0, [])


def test_submit_when_orphans_are_deleted_then_it_says_what_becomes_of_the_page(tmp_path: Path) -> None:
    with SiteProcess() as site:
        project = new_project(tmp_path, site, start={"urls": [site.url(HOST)]}, lifecycle={"orphans": "delete"})
        new = site.url(HOST, "/n/3/")

        first, second = (project.command("submit", new, "--source", "demo") for _ in range(2))

    note = 'sources/demo.toml: lifecycle.orphans = "delete": it leaves again unless something else names it\n'
    assert (first.stdout, first.stderr) == (f"{new}: ok\n", note)
    assert (second.stdout, second.stderr) == (f"{new}: duplicate\n", "")
