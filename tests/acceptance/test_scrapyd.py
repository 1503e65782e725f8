"""A real scrapyd with the configuration of deploy/ starts, shows and cancels crawls (X-D14, X-O1)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project, run_apart
from tests.acceptance.support_stories import source
from tests.scrapyd_server import ScrapydProcess
from tests.site.client import ROOT, SiteProcess

HOST: Final = "gen.acme.test"
PAGES: Final = 60


@pytest.fixture(scope="module")
def project(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    folder = tmp_path_factory.mktemp("scrapyd")
    new_project(folder, site, name="slow", **source(site, HOST, f"/n/{PAGES}/", concurrency=2))
    (folder / "sources" / "broken.toml").write_text("[start\n", "utf-8")
    return new_project(folder, site, fetch={"retries": 0})


@pytest.fixture(scope="module")
def scrapyd(project: CrawlProject) -> Iterator[ScrapydProcess]:
    with ScrapydProcess(project.folder) as scrapyd:
        yield scrapyd


def job_log(scrapyd: ScrapydProcess, name: str, job: str) -> str:
    """The log of a job, as scrapyd serves it."""
    status, body = scrapyd.request("GET", f"logs/default/{name}/{job}.log")
    assert status == 200
    return body.decode()


def crawl(scrapyd: ScrapydProcess, name: str, **arguments: str) -> str:
    """The id of a job that was scheduled and has ended."""
    job: str = scrapyd.post("schedule.json", project="default", spider=name, **arguments)["jobid"]
    scrapyd.wait(lambda: scrapyd.state(job) == "finished")
    return job


@pytest.mark.parametrize("path", ["", "jobs", "listspiders.json?project=default", "daemonstatus.json", "logs/"])
def test_scrapyd_when_nobody_says_who_asks_then_refused(scrapyd: ScrapydProcess, path: str) -> None:
    assert scrapyd.request("GET", path, user=None)[0] == 401
    assert scrapyd.request("GET", path, user="other")[0] == 401
    # There is no folder of logs before the first job.
    assert scrapyd.request("GET", path)[0] in ({200, 404} if path == "logs/" else {200})


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.test"},
        {"Host": "evil.test:6800"},
        {"Host": "["},
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_scrapyd_when_a_page_of_another_asks_then_refused_and_nothing_is_scheduled(
    scrapyd: ScrapydProcess, headers: dict[str, str]
) -> None:
    status, _ = scrapyd.request("POST", "schedule.json", body="project=default&spider=demo", **headers)

    assert status == 403
    assert scrapyd.get("listjobs.json", project="default")["pending"] == []


@pytest.mark.parametrize("service", ["addversion.json", "delversion.json", "delproject.json"])
def test_scrapyd_when_code_is_sent_then_there_is_no_such_service(scrapyd: ScrapydProcess, service: str) -> None:
    assert scrapyd.request("POST", service, body="project=default&version=1")[0] == 404


@pytest.mark.parametrize("missing", ["SCRAPYD_USERNAME", "SCRAPYD_PASSWORD"])
def test_scrapyd_when_there_is_no_password_then_it_does_not_start(
    scrapyd: ScrapydProcess, tmp_path: Path, missing: str
) -> None:
    (tmp_path / "scrapyd.conf").write_text((ROOT / "deploy" / "scrapyd.conf").read_text("utf-8"), "utf-8")
    variables = {"SCRAPYD_USERNAME": "me", "SCRAPYD_PASSWORD": "secret", "SCRAPYD_HTTP_PORT": str(scrapyd.port)}

    command = (sys.executable, "-W", "ignore", "-m", "scrapyd", "--pidfile=")
    ended = run_apart(tmp_path, *command, **{**variables, missing: ""})

    assert ended.returncode == 1
    assert f"{missing.removeprefix('SCRAPYD_').lower()} is required" in ended.stdout + ended.stderr


def test_scrapyd_when_a_source_is_scheduled_then_it_is_crawled_and_its_log_says_how_it_ended(
    scrapyd: ScrapydProcess, project: CrawlProject, site: SiteProcess
) -> None:
    listed = scrapyd.get("listspiders.json", project="default")["spiders"]

    job = crawl(scrapyd, "demo")

    assert sorted(listed) == ["demo", "slow"]
    assert "ended: finished, exit 0" in job_log(scrapyd, "demo", job)
    assert "www.acme.test/about/" in project.indexed()
    assert project.found("ACME")
    assert f"Process finished: project='default' spider='demo' job='{job}'" in scrapyd.log.read_text("utf-8")


def test_scrapyd_when_a_job_is_cancelled_then_the_next_one_goes_on_with_it(
    scrapyd: ScrapydProcess, project: CrawlProject, site: SiteProcess
) -> None:
    slow = CrawlProject(folder=project.folder, site=site, name="slow")
    site.set_behaviour(HOST, delay_seconds=0.3)
    site.clear_log()
    job = scrapyd.post("schedule.json", project="default", spider="slow")["jobid"]
    scrapyd.wait(lambda: len(site.log(host=HOST, robots=False)) > 6 or scrapyd.state(job) == "finished")

    scrapyd.post("cancel.json", project="default", job=job, signal="TERM")
    scrapyd.wait(lambda: scrapyd.state(job) == "finished")

    fetched = {url for url, row in slow.rows().items() if row["code"] == 200 and url.startswith(HOST)}
    assert "ended: stopped, exit 3" in job_log(scrapyd, "slow", job)
    assert "exitstatus=3" in scrapyd.log.read_text("utf-8")
    assert 0 < len(fetched) < PAGES

    site.clear_behaviours()
    site.clear_log()
    crawl(scrapyd, "slow")

    assert len(slow.indexed()) == PAGES
    assert fetched.isdisjoint(site.requested())


def test_scrapyd_when_a_secret_is_given_as_an_argument_then_the_job_fails_and_requests_nothing(
    scrapyd: ScrapydProcess, site: SiteProcess
) -> None:
    site.clear_log()

    job = crawl(scrapyd, "demo", password="hidden")

    written = scrapyd.log.read_text("utf-8")
    log = job_log(scrapyd, "demo", job)
    assert "ERROR searchcrawl.extensions.run_log [SC149]: no run, exit 2: unknown spider argument: -a password" in log
    assert "hidden" not in log
    assert "unknown spider argument: -a password" in written
    assert "exitstatus=2" in written
    assert site.log() == []


def test_runner_of_scrapyd_when_it_runs_a_crawl_then_its_arguments_are_taken(
    project: CrawlProject, tmp_path: Path
) -> None:
    words = ("crawl", "demo", "-s", f"LOG_FILE={tmp_path / 'job.log'}", "-a", "_job=7f", "-a", "limit=1")
    command = (sys.executable, "-W", "ignore", "-m", "scrapyd.runner", *words)

    ended = run_apart(project.folder, *command, SCRAPY_PROJECT="default")

    # Either the limit ends it, or nothing has changed since the last run.
    assert ended.returncode in {0, 3}, ended.stderr
    assert "run " in (tmp_path / "job.log").read_text("utf-8")


def test_scrapyd_when_a_job_cannot_be_a_run_then_its_log_says_why(
    scrapyd: ScrapydProcess, project: CrawlProject, site: SiteProcess
) -> None:
    site.set_behaviour(HOST, delay_seconds=0.5)
    site.clear_log()
    running = scrapyd.post("schedule.json", project="default", spider="slow")["jobid"]
    scrapyd.wait(lambda: bool(site.log(host=HOST, robots=False)))
    logs = {"busy": crawl(scrapyd, "slow")}
    scrapyd.post("cancel.json", project="default", job=running, signal="TERM")
    site.clear_behaviours()
    logs["level"] = crawl(scrapyd, "demo", setting="LOG_LEVEL=LOUD")
    project.command("suspend", "demo")
    logs["suspended"] = crawl(scrapyd, "demo")
    project.command("resume", "demo")

    said = {name: job_log(scrapyd, "slow" if name == "busy" else "demo", job) for name, job in logs.items()}

    assert "no run, exit 5: searchcrawl: " in said["busy"]
    assert "no run, exit 2: the log level must be one of" in said["level"]
    assert "no run, exit 3: " in said["suspended"]
    scrapyd.wait(lambda: scrapyd.state(running) == "finished")
