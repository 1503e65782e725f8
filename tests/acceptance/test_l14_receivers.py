"""Receivers besides the index: each has its own place in the change log, and holds up nothing (L14, K3)."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.failpoints import OF_RECEIVERS
from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_quarantine import decide, is_verified
from tests.acceptance.support_receivers import (
    AWAY,
    BOTH,
    HOST,
    HURRY,
    LINES,
    NAMES,
    SECOND,
    assert_same,
    build,
    in_index,
    in_lines,
    list_receivers,
    read_told,
    set_receivers,
)
from tests.acceptance.support_stories import page, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess
from tests.solr_server import free_port

ALL: Final = {f"{HOST}/", *(f"{HOST}/{name}.html" for name in NAMES)}


pytestmark = pytest.mark.usefixtures("clean_site")


def change(site: SiteProcess, number: int) -> None:
    """One page changes, one goes, and one comes."""
    site.set_page(HOST, "/a.html", page(f"page a {number}"))
    site.delete_page(HOST, f"/{NAMES[number]}.html")
    links = (f"/{name}.html" for name in (*NAMES, f"new{number}"))
    site.set_page(HOST, "/", page("start", *links))
    site.set_page(HOST, f"/new{number}.html", page(f"new {number}"))


def told_since(project: CrawlProject, before: int) -> list[tuple[str, str]]:
    """What the class was told of documents after so many lines, as the kind of change and the title."""
    lines = [line for line in read_told(project)[before:] if "id" in line]
    return sorted((line["told"], line["fields"].get("title", "")) for line in lines)


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return build(tmp_path, site)


@pytest.mark.matrix
def test_receivers_when_pages_come_change_and_go_then_each_has_what_the_index_has_and_is_told_so(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, {"second": SECOND, "lines": {**LINES, "report": "all"}})

    first = project.crawl()
    assert_same(project)
    before = len(read_told(project))
    change(site, 1)
    project.crawl()
    assert_same(project)
    told = told_since(project, before)
    status = project.ask("status", "demo")
    shown = project.command("status", "demo").stdout

    assert first.exit_code == 0
    assert set(in_lines(project)) == ALL - {f"{HOST}/b.html"} | {f"{HOST}/new1.html"}
    assert told == [
        ("changed", "page a 1"),
        ("changed", "start"),
        ("deleted", ""),
        ("new", "new 1"),
        ("unchanged", "page c"),
        ("unchanged", "page d"),
    ]
    assert [line for line in read_told(project) if "id" not in line] == [
        {"begin": "demo", "run": 1},
        {"end": "finished"},
        {"begin": "demo", "run": 2},
        {"end": "finished"},
    ]
    assert [(each["receiver"], each["state"], each["waiting"]) for each in status["receivers"]] == [
        ("second", "active", 0),
        ("lines", "active", 0),
    ]
    assert "second" in shown
    assert status["warnings"] == []


def test_receiver_when_away_for_three_runs_then_the_others_are_right_meanwhile_and_it_is_at_the_end(
    project: CrawlProject,
) -> None:
    project.crawl()
    (project.folder / AWAY).touch()
    codes = []
    for number in (1, 2, 3):
        change(project.site, number)
        codes.append(project.crawl().exit_code)
        assert_same(project, names=("second",))
    status = project.ask("status", "demo")
    away = list_receivers(project)["lines"]
    shown = project.command("receivers", "list").stdout
    (project.folder / AWAY).unlink()
    flushed = project.command("flush", "demo", "--json")

    assert codes == [0, 0, 0]
    assert (away["state"], away["waiting"]) == ("away", 8)
    assert away["error"] == "searchcrawl.toml: receivers.lines: there is nobody"
    assert away["error"] in shown
    assert [warning["code"] for warning in status["warnings"]] == ["receiver"]
    assert flushed.returncode == 0
    assert_same(project)


def test_receiver_when_paused_then_it_gets_nothing_until_it_is_resumed(project: CrawlProject) -> None:
    paused = project.command("receivers", "pause", "lines")
    project.crawl()
    before = in_lines(project)
    again = project.command("receivers", "pause", "lines", "--source", "demo")
    state = list_receivers(project, "lines")["lines"]
    status = project.ask("status", "demo")
    resumed = project.ask("receivers", "resume", "lines")
    project.crawl()

    assert (paused.returncode, before) == (0, {})
    assert "is so already" in again.stdout
    assert (state["state"], state["waiting"]) == ("paused", 5)
    assert [warning["code"] for warning in status["warnings"]] == ["receiver"]
    assert resumed == {"receiver": "lines", "source": "demo", "paused": False}
    assert_same(project)


def test_receiver_when_paused_while_a_cache_that_keeps_nothing_is_full_then_it_gets_what_is_fetched_again(
    project: CrawlProject,
) -> None:
    text = " ".join(f"word{number}" for number in range(30_000))
    for name in NAMES:
        project.site.set_page(HOST, f"/{name}.html", page(f"page {name}", text=f"{name} {text}"))
    small = {"preserve": False, "threshold_mb": 0.1, "max_gb": 0.0003}
    set_receivers(project, BOTH, cache=small)
    project.command("receivers", "pause", "lines")
    full = project.crawl()
    assert_same(project, names=("second",))
    project.command("receivers", "resume", "lines")
    first = project.crawl()
    lost = list_receivers(project)["lines"]["lost"]
    project.crawl()
    project.crawl()

    assert (full.exit_code, first.exit_code) == (0, 0)
    assert lost > 0
    assert list_receivers(project)["lines"]["lost"] == 0
    assert_same(project)


@pytest.mark.few(2)
@pytest.mark.parametrize("point", [*OF_RECEIVERS, "batch.post.mid:2", "receiver.sent:2", "receiver.moved:2"])
def test_receivers_when_killed_at_any_step_then_the_next_run_loses_nothing(project: CrawlProject, point: str) -> None:
    project.crawl()
    change(project.site, 1)
    if point == "receiver.swept":
        killed = COMMANDS.run(project.folder, "resend", "demo", "--receiver", "second", SEARCHCRAWL_FAILPOINT=point)
        assert killed.returncode == -signal.SIGKILL
    else:
        assert project.crawl(SEARCHCRAWL_FAILPOINT=point).exit_code == -signal.SIGKILL
    change(project.site, 2)
    again = project.crawl()

    assert again.exit_code == 0
    assert_same(project)
    assert is_verified(project)


def test_receiver_when_emptied_or_put_back_or_new_then_it_gets_everything_again(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, {"second": SECOND})
    project.crawl()
    folder = tmp_path / "var" / "receivers" / "second"
    shutil.copytree(folder, tmp_path / "kept")
    change(site, 1)
    project.crawl()
    shutil.rmtree(folder)
    emptied = project.crawl()
    assert_same(project, names=("second",))
    # What is forgotten leaves one that is put back, too.
    assert project.command("forget", site.url(HOST, "/d.html")).returncode == 0
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)
    change(site, 2)
    put_back = project.crawl()
    assert_same(project, names=("second",))
    set_receivers(project, {**BOTH, "third": SECOND})
    project.crawl()

    assert (emptied.exit_code, put_back.exit_code) == (0, 0)
    assert "receiver second has lost documents" in project.log()
    assert_same(project, names=("second", "lines", "third"))


def test_receivers_when_taken_out_and_put_back_then_they_have_what_came_changed_and_went_meanwhile(
    project: CrawlProject,
) -> None:
    project.crawl()
    # The versions of a class that was sent everything again are those of more deliveries; they rise all the same.
    project.command("resend", "demo", "--receiver", "lines")
    set_receivers(project, {"lines": LINES})
    assert project.command("forget", project.site.url(HOST, "/d.html")).returncode == 0
    for number, receivers in enumerate(({"second": SECOND}, {}), 1):
        change(project.site, number)
        project.crawl()
        set_receivers(project, receivers)
    without = list_receivers(project)
    change(project.site, 3)
    project.crawl()
    set_receivers(project, BOTH)
    project.crawl()

    assert without == {}
    assert in_lines(project)[f"{HOST}/a.html"] == "page a 3"
    assert f"{HOST}/d.html" not in in_index(project)
    assert_same(project)


def test_receiver_when_it_refuses_a_document_then_that_is_said_and_others_are_there(project: CrawlProject) -> None:
    (project.folder / "refused").write_text("b.html")
    ended = project.crawl()
    told = list_receivers(project)["lines"]
    status = project.ask("status", "demo")
    (project.folder / "refused").unlink()
    project.site.set_page(HOST, "/b.html", page("page b anew"))
    project.crawl()

    assert ended.exit_code == 0
    assert (told["state"], told["waiting"], told["refused"]) == ("active", 0, 1)
    assert [(each["error"]) for each in told["documents"]] == ["not this one"]
    assert [warning["code"] for warning in status["warnings"]] == ["receiver"]
    assert list_receivers(project)["lines"]["refused"] == 0
    assert_same(project)


def test_receiver_when_it_hangs_then_the_run_ends_and_it_gets_all_later(project: CrawlProject) -> None:
    (project.folder / "hangs").touch()
    ended = project.crawl()
    (project.folder / "hangs").unlink()
    meanwhile = list_receivers(project)["lines"]
    project.crawl()

    assert (ended.exit_code, ended.status["run"]["end_reason"]) == (0, "finished")
    assert "the receiver lines does not answer" in project.log()
    assert (meanwhile["waiting"], meanwhile["state"]) == (5, "away")
    assert_same(project)


def test_resend_to_a_receiver_when_it_is_unknown_then_exit_2(project: CrawlProject) -> None:
    unknown = project.command("resend", "demo", "--receiver", "third")

    assert unknown.returncode == 2
    assert "third (it has second, lines" in unknown.stderr


def test_removals_when_past_the_limits_then_receivers_keep_the_documents_until_they_are_approved(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, lifecycle={"max_delete_documents": 0})
    project.crawl()
    for name in NAMES:
        site.delete_page(HOST, f"/{name}.html")
    held = project.crawl()
    meanwhile = set(in_lines(project)), set(in_index(project, "second"))
    decide(project, "approve", "--run", "2")

    assert held.exit_code == 9
    assert meanwhile == (ALL, ALL)
    assert set(in_lines(project)) == {f"{HOST}/"}
    assert_same(project)


def test_url_when_forgotten_then_it_leaves_receivers_also_one_that_was_away(project: CrawlProject) -> None:
    project.crawl()
    (project.folder / AWAY).touch()
    done = project.command("forget", project.site.url(HOST, "/b.html"), "--json")
    meanwhile = set(in_lines(project)), set(in_index(project, "second"))
    (project.folder / AWAY).unlink()
    project.crawl()

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["receivers"] == ["lines"]
    assert meanwhile == (ALL, ALL - {f"{HOST}/b.html"})
    assert set(in_lines(project)) == ALL - {f"{HOST}/b.html"}
    assert_same(project)


def test_source_when_deleted_then_receivers_are_emptied_before_it_is_forgotten(project: CrawlProject) -> None:
    project.crawl()
    (project.folder / AWAY).touch()
    # Also of what it has not heard yet.
    assert project.command("forget", project.site.url(HOST, "/b.html")).returncode == 0
    away = project.command("delete", "demo", "--yes", *HURRY)
    (project.folder / AWAY).unlink()
    done = project.command("delete", "demo", "--yes", *HURRY)

    assert (away.returncode, done.returncode) == (6, 0), (away.stderr, done.stderr)
    assert "receivers.lines" in away.stderr
    assert (in_lines(project), in_index(project, "second"), in_index(project)) == ({}, {}, {})


@pytest.mark.parametrize("key", [{"test": True}, {"mode": "examine"}])
def test_receivers_when_nothing_is_delivered_then_they_get_nothing(
    site: SiteProcess, tmp_path: Path, key: dict[str, Any]
) -> None:
    project = build(tmp_path, site, **key)
    ended = project.crawl()
    before = read_told(project)
    project.edit(**source(site, HOST))
    project.crawl()

    assert (ended.exit_code, before) == (0, [])
    assert_same(project)


def test_receiver_in_mode_list_when_a_run_ends_then_it_is_called_once(site: SiteProcess, tmp_path: Path) -> None:
    project = build(tmp_path, site, {"lines": {**LINES, "mode": "list"}})
    set_receivers(project, {"lines": {**LINES, "mode": "list"}}, cache={"threshold_mb": 0.00001})
    project.crawl()

    versions = [line["version"] for line in read_told(project) if "id" in line]
    assert len(versions) == len(ALL)
    assert len(set(versions)) == 1
    assert_same(project, names=("lines",))


@pytest.mark.parametrize(
    ("receivers", "own", "error"),
    [
        ({"second": {}}, {}, "receivers.second.class: one of type and class is required"),
        ({"second": {"type": "files"}}, {}, "receivers.second.path: is required"),
        ({"second": {"type": "files", "path": "all.doc"}}, {}, "receivers.second.path: the name must end in .jsonl"),
        ({"second": {"type": "files", "path": "gone/all.csv"}}, {}, "receivers.second.path: there is no such folder"),
        ({"second": {"type": "files", "path": "all.csv", "mode": "list"}}, {}, "receivers.second.mode: is of type"),
        ({"second": {"type": "local", "delta": True}}, {}, 'receivers.second.delta: is of type = "files"'),
        ({"second": {"type": "sofa"}}, {}, 'receivers.second.type: must be "local", "solr" or "files"'),
        ({"second": {"type": "solr"}}, {}, "receivers.second.url: is required"),
        ({"second": {"type": "local", "folder": "x"}}, {}, "receivers.second.folder: unknown key"),
        ({"second": {"type": "local", "rollback_days": 3}}, {}, "receivers.second.rollback_days: not available yet"),
        ({"second": {"type": "local", "path": "var/index"}}, {}, "receivers.second.path: index has the same"),
        (
            {"second": {"type": "local", "path": "x"}, "third": {"type": "local", "path": "./x"}},
            {},
            "receivers.third.path: receivers.second has the same",
        ),
        ({"Second": SECOND}, {}, "receivers"),
        ({"lines": {"class": "lines:Lines"}}, {}, "receivers.lines.class: must be made with no arguments"),
        ({"lines": {**LINES, "color": 1}}, {}, "receivers.lines.class: must be made with folder, color"),
        ({"lines": {"class": "gone:Lines"}}, {}, "receivers.lines.class: cannot be imported"),
        ({"lines": {"class": "lines:json"}}, {}, "receivers.lines.class: is no class"),
        (BOTH, {"receivers": ["secnd"]}, "receivers: no such receiver in searchcrawl.toml (did you mean second?)"),
    ],
)
def test_configuration_when_wrong_then_exit_4_with_file_and_key(
    site: SiteProcess, tmp_path: Path, receivers: dict[str, Any], own: dict[str, Any], error: str
) -> None:
    project = build(tmp_path, site, receivers, **own)

    ended = project.crawl()

    assert ended.exit_code == 4
    assert error in ended.errors


def test_receivers_that_are_files_when_pages_change_then_they_say_what_the_index_has(
    site: SiteProcess, tmp_path: Path
) -> None:
    files = {
        "whole": {"type": "files", "path": "%(name)s.csv"},
        "changes": {"type": "files", "path": "%(name)s-%(delta)s.jsonl", "delta": True},
    }
    project = build(tmp_path, site, {**files, "lines": LINES})
    project.crawl()
    project.command("receivers", "pause", "whole")
    project.command("receivers", "pause", "changes")
    change(site, 1)
    project.crawl()
    paused = list_receivers(project)
    before = (tmp_path / "demo.csv").read_text("utf-8")
    for name in files:
        project.command("receivers", "resume", name)
    change(site, 2)
    project.crawl()

    deltas = sorted(path.name for path in tmp_path.glob("demo-*.jsonl"))
    last = [json.loads(line) for line in (tmp_path / deltas[-1]).read_text("utf-8").splitlines()]
    assert {name: (row["state"], row["waiting"]) for name, row in paused.items()} == {
        "whole": ("paused", 4),
        "changes": ("paused", 4),
        "lines": ("active", 0),
    }
    assert "page b" in before
    assert deltas == ["demo-000001.jsonl", "demo-000002.jsonl"]
    assert sorted((row["deleted"], row.get("title", "")) for row in last) == [
        (False, "new 1"),
        (False, "new 2"),
        (False, "page a 2"),
        (False, "start"),
        (True, ""),
        (True, ""),
    ]
    assert {row["waiting"] for row in list_receivers(project).values()} == {0}
    assert "page b" not in (tmp_path / "demo.csv").read_text("utf-8")
    assert_same(project, names=("lines",))


def test_paused_receivers_when_they_are_to_get_everything_or_the_source_is_deleted_then_that_is_refused(
    site: SiteProcess, tmp_path: Path
) -> None:
    files = {"changes": {"type": "files", "path": "%(name)s-%(delta)s.jsonl", "delta": True}}
    project = build(tmp_path, site, {**BOTH, **files})
    project.crawl()
    project.command("receivers", "pause", "second")
    resent = project.command("resend", "demo", "--receiver", "second")
    project.command("receivers", "resume", "second")
    project.command("receivers", "pause", "changes")
    kept = project.command("delete", "demo", "--yes")
    project.command("receivers", "resume", "changes")
    done = project.command("delete", "demo", "--yes")

    assert (resent.returncode, kept.returncode, done.returncode) == (6, 6, 0)
    assert "second is paused" in resent.stderr
    assert "changes is paused" in kept.stderr
    last = max(tmp_path.glob("demo-*.jsonl"))
    assert len(last.read_text("utf-8").splitlines()) == len(ALL)


def test_doctor_when_a_receiver_is_away_then_it_says_so_and_nothing_is_wrong(site: SiteProcess, tmp_path: Path) -> None:
    gone = f"http://127.0.0.1:{free_port()}/solr/pages"
    project = build(tmp_path, site, {**BOTH, "third": {"type": "solr", "url": gone}})
    done = project.command("doctor", "--json")

    checks = [check for check in json.loads(done.stdout)["checks"] if check["what"] == "receivers"]
    assert [(check["state"], gone in json.dumps(check)) for check in checks] == [("ok", False), ("warning", True)]


def test_source_when_it_names_some_receivers_then_the_others_get_nothing(site: SiteProcess, tmp_path: Path) -> None:
    project = build(tmp_path, site, receivers=["second"])
    project.crawl()
    unknown = project.command("receivers", "pause", "lines")

    assert list(list_receivers(project)) == ["second"]
    assert read_told(project) == []
    assert unknown.returncode == 2
    assert_same(project, names=("second",))
