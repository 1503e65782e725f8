"""A URL is submitted: the answer says what becomes of it, and the run that is under way, or the next, visits it (H9)."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import new_project
from tests.crawl_forks import COMMANDS, Forks, started
from tests.final_state import settled
from tests.site.client import SiteProcess
from tests.stored_rows import query

pytestmark = pytest.mark.extended

HOST: Final = "gen.acme.test"


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
