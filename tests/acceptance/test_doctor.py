"""`doctor` says of each thing that a run needs whether it is there, and what to do where it is not."""

from __future__ import annotations

import json
import socket
import sqlite3
import ssl
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.certificates import write_certificate
from tests.crawl_forks import CLOCK, COMMANDS
from tests.hostile_server import HostileServer
from tests.site.client import ADDRESS, SiteProcess, configure

NAME: Final = "www.acme.test"


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    site.clear_log()
    return new_project(tmp_path / "project", site, scope={"include_hosts": ["acme.test"], "depth": 1})


def ask(project: CrawlProject, *options: str, **variables: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and what was found."""
    done = COMMANDS.run(project.folder, "doctor", "--json", *options, **variables)
    answer = json.loads(done.stdout)
    assert answer["ok"] is (done.returncode == 0), done.stderr
    return done.returncode, answer["checks"]


def wrong(checks: list[dict[str, Any]]) -> list[str]:
    return [f"{each['what']}: {each['message']}" for each in checks if each["state"] == "wrong"]


def only(checks: list[dict[str, Any]], state: str) -> dict[str, Any]:
    (found,) = [each for each in checks if each["state"] == state]
    return found


def test_doctor_when_all_is_well_then_a_line_each_and_no_request(site: SiteProcess, project: CrawlProject) -> None:
    before, _ = ask(project)
    assert project.crawl().exit_code == 0
    site.clear_log()

    code, checks = ask(project)
    shown = project.command("doctor")

    things = {"files", "contact", "converters", "folders", "space", "store", "clock", "index", "names", "browser"}
    assert (before, code, shown.returncode, shown.stderr) == (0, 0, 0, "")
    assert {each["what"] for each in checks} == things
    assert {each["state"] for each in checks} == {"ok"}
    assert len(shown.stdout.splitlines()) == len(checks)
    assert site.log() == []


def test_doctor_when_the_configuration_is_refused_then_what_the_check_says(project: CrawlProject) -> None:
    (project.folder / "sources" / "broken.toml").write_text("[scope]\ndepth = -1\n")
    code, checks = ask(project)
    (project.folder / "searchcrawl.toml").write_text("contact = \n")
    without, rest = ask(project)

    assert (code, without) == (1, 1)
    assert any("sources/broken.toml: scope.depth" in each for each in wrong(checks))
    assert any(each["what"] == "names" and each["source"] == "demo" for each in checks)
    assert [each["state"] for each in rest] == ["wrong", "skipped"]


def test_doctor_when_contact_is_a_placeholder_or_a_source_suspended_then_warned_and_exit_0(
    project: CrawlProject,
) -> None:
    configure(project.folder, contact="https://example.org/contact")
    assert project.command("suspend", "demo").returncode == 0

    code, checks = ask(project)

    doubts = {each["what"]: each["remedy"] for each in checks if each["state"] == "warning"}
    assert (code, doubts) == (0, {"contact": "see to searchcrawl.toml", "locks": "searchcrawl resume demo"})


def test_doctor_when_a_folder_or_room_is_missing_then_named(project: CrawlProject) -> None:
    (project.folder / "var").mkdir(exist_ok=True)
    (project.folder / "var" / "log").write_text("")

    _, checks = ask(project, "-s", "SEARCHCRAWL_MIN_FREE_MB=1000000000")

    folders, space, *_ = wrong(checks)
    assert folders == f"folders: {project.folder}/var/log: {project.folder}/var/log is no folder"
    assert "SEARCHCRAWL_MIN_FREE_MB" in space


def test_doctor_when_the_store_is_locked_or_damaged_then_named_and_the_rest_looked_at(project: CrawlProject) -> None:
    configure(project.folder, store={"url": "sqlite:///var/own.db"})
    assert project.crawl().exit_code == 0
    with closing(sqlite3.connect(project.folder / "var" / "own.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        _, locked = ask(project)
    (project.folder / "var" / "own.db").write_bytes(b"no database" * 1000)
    _, damaged = ask(project)

    assert only(locked, "wrong")["remedy"] == "end the process that holds it, or wait for it"
    assert only(damaged, "wrong")["what"] == "store"
    assert {"index", "names", "browser"} <= {each["what"] for each in damaged if each["state"] == "ok"}


def test_doctor_when_the_index_is_no_index_or_away_or_emptied_then_named(project: CrawlProject) -> None:
    configure(project.folder, index={"type": "local"})
    assert project.crawl().exit_code == 0
    (project.folder / "var" / "index").rename(project.folder / "var" / "before")
    _, emptied = ask(project)
    (project.folder / "var" / "index").mkdir()
    (project.folder / "var" / "index" / "letter.txt").write_text("")
    _, foreign = ask(project)
    with socket.socket() as free:
        free.bind((ADDRESS, 0))
        configure(project.folder, index={"type": "solr", "url": f"http://{ADDRESS}:{free.getsockname()[1]}/solr/a"})
        _, away = ask(project)

    assert only(emptied, "wrong")["remedy"] == "searchcrawl resend demo"
    assert [only(each, "wrong")["what"] for each in (foreign, away)] == ["index", "index"]
    assert "searchcrawl solr configset" in only(away, "wrong")["remedy"]


def test_doctor_when_a_host_has_no_address_or_one_that_is_refused_then_named(
    site: SiteProcess, project: CrawlProject
) -> None:
    project.edit(
        start={"urls": ["http://nowhere.invalid/", f"http://private.test:{site.port}/", site.url(NAME)]},
        scope={"allow_all": True},
        fetch={"resolve": {NAME: ADDRESS, "private.test": "10.1.2.3"}, "private_networks": ["127.0.0.0/8"]},
    )

    code, checks = ask(project)

    names = [each for each in wrong(checks) if each.startswith("names")]
    assert code == 1
    assert names[0].startswith("names: nowhere.invalid is not found: ")
    assert "fetch.private_networks" in names[1]


@pytest.mark.parametrize(("age", "state"), [(timedelta(0), "warning"), (timedelta(days=3), "wrong")])
def test_doctor_when_certificates_have_ended_or_will_soon_then_named(
    project: CrawlProject, tmp_path: Path, age: timedelta, state: str
) -> None:
    certificate = write_certificate(tmp_path, host=NAME, age=age)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with HostileServer(tls=context) as server:
        project.edit(
            start={"urls": [f"https://{NAME}:{server.port}/"]},
            fetch={
                "resolve": {NAME: ADDRESS},
                "private_networks": ["127.0.0.0/8"],
                "ca_file": str(certificate),
                "client_certificate": str(certificate),
            },
        )
        code, checks = ask(project)

    found = [each for each in checks if each["what"] == "certificates"]
    assert code == (state == "wrong")
    assert [each["state"] for each in found] == [state] * 3
    assert [each["message"].partition(": ")[0] for each in found] == [
        "fetch.ca_file",
        "fetch.client_certificate",
        f"{NAME}:{server.port}",
    ]


def test_doctor_when_the_browser_a_converter_a_program_or_a_scrapyd_is_missing_then_named_without_its_password(
    project: CrawlProject, tmp_path: Path
) -> None:
    project.edit(render={"mode": "always"})
    with socket.socket() as free:
        free.bind((ADDRESS, 0))
        place = f"{ADDRESS}:{free.getsockname()[1]}"
        plan = {"sources": ["demo"], "every_minutes": 5, "scrapyd": [f"http://user:secret@{place}"]}
        missing = {"image/x-a": "no_module:Class"}
        configure(project.folder, converters=missing, notify={"command": "/nowhere/tell-me"}, schedules={"s": plan})
        code, checks = ask(project, PATH=str(tmp_path))

    found = {each["what"]: each["message"] for each in checks if each["state"] == "wrong"}
    assert code == 1
    assert set(found) == {"converters", "browser", "notify", "scrapyd"}
    assert "(for demo)" in found["browser"]
    # Its path is shown.
    assert found["notify"] == "/nowhere/tell-me is no program"
    assert found["scrapyd"].startswith(f"scrapyd http://{place}: ")
    assert "secret" not in json.dumps(checks)


def test_doctor_when_runs_are_later_than_the_clock_then_warned(project: CrawlProject) -> None:
    assert project.crawl(**{CLOCK: "200000"}).exit_code == 0

    code, checks = ask(project)

    assert (code, only(checks, "warning")["what"]) == (0, "clock")
    assert "runs of demo were later" in only(checks, "warning")["message"]


def test_doctor_when_a_variable_is_missing_then_it_is_to_be_set(project: CrawlProject) -> None:
    project.edit(login={"type": "basic", "username": "me", "password": {"env": "NOT_THERE_AT_ALL"}})

    (found,) = [each for each in ask(project)[1] if "NOT_THERE_AT_ALL" in each["message"]]

    assert found["remedy"] == "set it for the user of the crawls, and for what starts them"


def test_check_when_a_start_url_has_a_password_then_a_warning_leads_to_the_login_and_shows_none(
    project: CrawlProject, site: SiteProcess
) -> None:
    url = site.url(NAME).replace("http://", "http://me:s3cret-word@")
    project.edit(start={"urls": [url]}, scope={"include_hosts": ["acme.test"]})

    checked = project.command("sources", "check")

    assert checked.returncode == 0
    said = "warning: sources/demo.toml: start.urls[0]: has a user name or a password, which is not sent: [login] is the place for them"
    assert checked.stderr.count(said) == 1
    assert "s3cret-word" not in checked.stderr + checked.stdout
