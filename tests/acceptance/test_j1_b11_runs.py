"""Counters add up at any moment and are those of the table, runs are listed, a limit counts visits (J1, J5); a run ends when nothing
is left to do, when its time is over, or at a limit, and says which (B11).
"""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.selftest.final_state import find_wrong_sums
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.crawl_forks import COMMANDS
from tests.final_state import find_wrong_counters
from tests.site.client import SiteProcess
from tests.stored_rows import execute, is_file, query

HOST: Final = "www.acme.test"
PAGES: Final = tuple(f"/count/{number}" for number in range(12))
GONE: Final = tuple(f"/count/gone-{number}" for number in range(4))


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    site.set_page(HOST, "/counted", page("start", *PAGES, *GONE, "/private/1", "/private/2"))
    for path in PAGES:
        site.set_page(HOST, path, page(path))
    return site


def project_of(folder: Path, site: SiteProcess, **scope: Any) -> CrawlProject:
    start = {"urls": [site.url(HOST, "/counted")], "sitemaps": "off"}
    scope = {"include_hosts": [HOST], "exclude_urls": ["*/private/*"], **scope}
    return new_project(folder, site, start=start, scope=scope, fetch={"retries": 0})


def listed(project: CrawlProject, *words: str) -> list[dict[str, Any]]:
    return project.lines("runs", *words)


@pytest.mark.few(1)
@pytest.mark.parametrize("point", ["links.mid:1", "row.updated:1", "links.committed:1", "links.committed:2"])
def test_counters_when_a_run_is_killed_and_another_follows_then_they_add_up_and_the_runs_are_listed(
    site: SiteProcess, tmp_path: Path, point: str
) -> None:
    project = project_of(tmp_path, site)

    killed = COMMANDS.run(tmp_path, "crawl", "demo", SEARCHCRAWL_FAILPOINT=point)
    wrong = find_wrong_counters(tmp_path)
    ((rows,),) = query(tmp_path, "SELECT count(*) FROM urls")
    status = project.ask("status", "demo")
    (cut_off,) = listed(project)
    ended = project.crawl()
    (resumed,) = listed(project, "demo")
    shown = project.command("runs").stdout
    again = project.crawl()

    assert killed.returncode == -signal.SIGKILL
    assert wrong == find_wrong_sums(status["counts"]) == []
    assert (cut_off["ended"], cut_off["end_reason"], cut_off["counts"]) == (None, None, status["counts"])
    assert cut_off["counts"]["discovered"] == rows
    assert (resumed["id"], resumed["end_reason"], resumed["exit_code"]) == (cut_off["id"], "finished", 0)
    assert resumed["counts"] == ended.counts
    expected = {"to_fetch": 0, "fetched": 13, "fetch_failures": 4, "rejected": 2, "discovered": 19}
    assert {name: ended.counts[name] for name in expected} == expected
    assert "finished" in shown
    # Of a run that follows its own URLs alone: what the first one refused, no rule had to refuse again.
    expected |= {"rejected": 0, "discovered": 17}
    assert {name: again.counts[name] for name in expected} == expected
    assert [run["id"] for run in listed(project)] == [2, 1]


def test_limit_when_pages_fail_then_their_visits_count_too(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(tmp_path, site, exclude_urls=["*/private/*", *(f"*{path}" for path in PAGES)])

    limited = project.crawl("-a", "limit=3")

    assert (limited.exit_code, limited.status["run"]["end_reason"]) == (3, "limit")
    assert (limited.counts["fetched"], limited.counts["fetch_failures"], limited.counts["to_fetch"]) == (1, 2, 2)


def test_max_urls_when_it_refuses_links_then_they_are_said_and_in_no_counter(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(tmp_path, site, max_urls=5)

    ended = project.crawl()

    assert ended.counts["fetched"] + ended.counts["fetch_failures"] == 5
    refused = [row for row in ended.status["refused_links"] if (row["rule"] or "").startswith("scope.max_urls")]
    assert sum(row["count"] for row in refused) == 12
    assert "max_urls" in project.command("status", "demo").stdout


def test_counters_when_they_differ_from_the_table_then_the_run_says_so(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(tmp_path, site)
    project.crawl("-a", "limit=3")
    # As if a row had been changed without being counted: the rows of a run that another one follows.
    lost = "UPDATE urls SET fetch_state = 2, code = 955, due_ms = NULL, run_id = 2 WHERE code = 0 AND id = 17"
    if is_file(tmp_path):
        execute(tmp_path, f"CREATE TRIGGER uncounted AFTER INSERT ON documents BEGIN {lost}; END")
    else:
        body = f"$$ BEGIN {lost}; RETURN NEW; END $$ LANGUAGE plpgsql"
        execute(tmp_path, f"CREATE FUNCTION lose() RETURNS trigger AS {body}")
        each = "FOR EACH ROW EXECUTE FUNCTION lose()"
        execute(tmp_path, f"CREATE TRIGGER uncounted AFTER INSERT ON documents {each}")

    with pytest.raises(AssertionError, match="do not add up"):
        project.crawl()

    assert "the counters of run 2 do not add up" in project.log()
    assert "ERROR" in project.log()
    assert query(tmp_path, "SELECT count(*) FROM runs") == [(2,)]


ENDING: Final = "ends.acme.test"
FORTY: Final = 40


def crawled(project: CrawlProject, *options: str, **fetch: Any) -> tuple[int, str, str]:
    """One run: its exit code, why it ended, and its kind."""
    project.edit(**source(project.site, ENDING, **fetch))
    ended = project.crawl(*options)
    return ended.exit_code, ended.status["run"]["end_reason"], ended.status["run"]["kind"]


def test_b11_runs_when_they_end_then_each_says_why_and_the_next_goes_on(tmp_path: Path) -> None:
    with SiteProcess() as site:
        links = [f"/{number}.html" for number in range(FORTY)]
        site.set_page(ENDING, "/", page("start", *links))
        for link in links:
            site.set_page(ENDING, link, page(link))
        project = new_project(tmp_path, site)

        # It is over before all is open.
        hurried = crawled(project, delay_seconds=0.5, max_minutes=0.0001)
        # Twenty seconds of delay, and three of them to spend.
        timed = crawled(project, delay_seconds=0.5, max_minutes=0.05)
        limited = crawled(project, "-a", "limit=5")
        finished = crawled(project)
        again = crawled(project)
        asked = Counter(site.requested())

    assert [hurried, timed, limited, finished, again] == [
        (3, "max_minutes", "initial"),
        (3, "max_minutes", "initial"),
        (3, "limit", "initial"),
        (0, "finished", "initial"),
        (0, "finished", "maintenance"),
    ]
    # The first four are one pass over the site, the last one is another.
    assert {*asked.values()} == {2}
    assert len(asked) == FORTY + 1
    assert len(project.indexed()) == FORTY + 1


def test_b11_run_when_its_start_urls_were_edited_and_fail_then_these_are_named(tmp_path: Path) -> None:
    with SiteProcess() as site:
        site.set_page(ENDING, "/", page("start"))
        site.set_page(ENDING, "/dead.html", "", status=500)
        project = new_project(tmp_path, site, **source(site, ENDING))
        before = project.crawl()
        project.edit(**source(site, ENDING, "/dead.html"))
        ended = project.crawl()

    assert (before.exit_code, ended.exit_code) == (0, 8)
    assert f"start URL: failed     500  {site.url(ENDING, '/dead.html')}" in ended.errors
    assert ended.errors.count("start URL:") == 1
