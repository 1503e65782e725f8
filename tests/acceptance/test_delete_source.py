"""``delete NAME`` takes a source out of index, cache and table; a source whose file is gone is named until then (L4)."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import Batch
from searchcrawl.items import IndexedDocument
from searchcrawl.sources.loading import load_project
from searchcrawl.urls import document_id
from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_quarantine import is_verified
from tests.acceptance.support_stories import page, pages, run, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess, configure, source_toml
from tests.stored_rows import query

HOST: Final = "left.acme.test"
OTHER: Final = "other.acme.test"
NAMES: Final = ("alpha", "beta", "gamma")
DOCUMENTS: Final = len(NAMES) + 1
TABLES: Final = ("urls", "documents", "outlinks", "runs", "batches", "segments", "sitemaps", "patterns", "leases")
#: Each durable step of the command, in its order.
STEPS: Final = ("source.sealed", "delete.sent", "source.uncached", "source.rows")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    """Two sources that were crawled; ``demo`` is the one to be deleted."""
    with SiteProcess() as site:
        for host in (HOST, OTHER):
            pages(site, host, **{name: page(f"text of {name} on {host}") for name in NAMES})
        project = new_project(tmp_path, site, **source(site, HOST))
        (tmp_path / "sources" / "other.toml").write_text(source_toml(site, **source(site, OTHER)), "utf-8")
        run(project)
        assert project.command("crawl", "other").returncode == 0
        yield project


def delete(project: CrawlProject, *arguments: str) -> dict[str, Any]:
    return project.ask("delete", "demo", "--yes", *arguments)


def put_aside(project: CrawlProject) -> None:
    (project.folder / "sources" / "demo.toml").rename(project.folder / "demo.aside")


def rows(project: CrawlProject) -> dict[str, int]:
    """How many rows each table has of more than the other source."""
    joined = {"outlinks": "url_id IN (SELECT id FROM urls WHERE source_id = 1)"}
    found = {}
    for table in TABLES:
        ((count,),) = query(project.folder, f"SELECT count(*) FROM {table} WHERE {joined.get(table, 'source_id = 1')}")
        found[table] = count
    return {table: count for table, count in found.items() if count}


def is_gone(project: CrawlProject) -> bool:
    """Whether nothing is left of the source, and all of the other one."""
    names = query(project.folder, "SELECT name FROM sources")
    others = project.command("verify", "other").returncode
    kept = project.ask("status", "other")["documents"]
    cache = (project.folder / "var" / "cache" / "demo").exists()
    left = (project.indexed(), rows(project), names, cache, kept, others)
    return left == ([], {}, [("other",)], False, DOCUMENTS, 0)


@pytest.mark.matrix
def test_delete_when_a_source_is_named_then_nothing_is_left_of_it_and_a_crawl_begins_anew(
    project: CrawlProject,
) -> None:
    untyped = project.command("delete", "demo")
    kept = len(project.indexed())
    done = delete(project)
    gone = is_gone(project)
    said = project.ask("status", "demo")["warnings"]
    again = run(project)
    status = project.ask("status", "demo")

    # Not before its name is typed.
    assert (untyped.returncode, kept) == (2, DOCUMENTS)
    assert f"{DOCUMENTS} documents would leave the index" in untyped.stderr
    assert done == {"source": "demo", "documents": DOCUMENTS, "removed": DOCUMENTS, "failed": 0, "to_fetch": 0}
    assert gone
    # Its tombstones in the index are no newer documents.
    assert said == []
    assert (again.ended.exit_code, again.bodies, len(project.indexed())) == (0, DOCUMENTS, DOCUMENTS)
    assert (status["run"]["kind"], status["warnings"], is_verified(project)) == ("initial", [], True)


def test_delete_when_the_file_is_gone_then_its_documents_go(project: CrawlProject) -> None:
    put_aside(project)

    delete(project)
    unknown = project.command("delete", "demo", "--yes")

    assert is_gone(project)
    assert unknown.returncode == 2


def test_delete_when_the_index_alone_has_documents_of_it_then_they_go(project: CrawlProject) -> None:
    with closing(open_index(load_project(project.folder))) as index:
        foreign = IndexedDocument(
            id="lost:" + "0" * 32, fields={"url": "http://lost.test/", "source": "lost", "title": "a"}
        )
        index.deliver(Batch(number=1, source="lost", crawl_version=9_000_000_000_000, documents=[foreign]))
        index.commit()

    assert project.ask("delete", "lost", "--yes")["removed"] == 1
    assert project.ask("verify")["ok"]


def test_delete_when_a_document_of_a_killed_crawl_comes_late_then_it_stays_out(project: CrawlProject) -> None:
    project.site.set_page(HOST, "/", page("start again", "/late.html"))
    project.site.set_page(HOST, "/late.html", page("late"))
    killed = COMMANDS.run(project.folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT="batch.post.begin")
    url = project.site.url(HOST, "/late.html")
    ((sent,),) = query(project.folder, "SELECT max(crawl_version) FROM batches WHERE source_id = 1")

    done = delete(project)
    with closing(open_index(load_project(project.folder))) as index:
        document = IndexedDocument(id=document_id("demo", url), fields={"url": url, "source": "demo", "title": "late"})
        index.deliver(Batch(number=1, source="demo", crawl_version=sent, documents=[document]))
        index.commit()

    assert (killed.returncode, done["documents"], is_gone(project)) == (-signal.SIGKILL, DOCUMENTS, True)


@pytest.mark.few(1)
@pytest.mark.parametrize("step", STEPS)
def test_delete_when_killed_then_a_crawl_of_the_source_agrees_with_the_index(project: CrawlProject, step: str) -> None:
    killed = COMMANDS.run(project.folder, "delete", "demo", "--yes", SEARCHCRAWL_FAILPOINT=step)
    runs = [run(project) for _ in range(2)]

    assert (killed.returncode, [each.ended.exit_code for each in runs]) == (-signal.SIGKILL, [0, 0])
    assert (len(project.indexed()), is_verified(project)) == (DOCUMENTS, True)


def test_delete_when_the_index_is_away_then_exit_6_and_the_next_call_completes_it(project: CrawlProject) -> None:
    put_aside(project)
    configure(project.folder, index=absent_index())

    waits = project.command("delete", "demo", "--yes", "-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=1")
    configure(project.folder)
    kept = len(project.indexed())
    delete(project)

    assert (waits.returncode, kept) == (6, DOCUMENTS)
    assert is_gone(project)


def test_delete_when_the_source_is_crawled_then_exit_5_and_nothing_is_deleted(project: CrawlProject) -> None:
    with project.busy():
        busy = project.command("delete", "demo", "--yes")

    assert (busy.returncode, len(project.indexed())) == (5, DOCUMENTS)


def test_gone_source_when_asked_then_status_check_show_and_explain_name_it(project: CrawlProject) -> None:
    url = project.site.url(HOST, "/alpha.html")
    put_aside(project)
    remedy = "put sources/demo.toml back, or searchcrawl delete demo"

    everything = project.ask("status")["sources"]
    status = project.ask("status", "demo")
    checked = project.command("sources", "check", "--json")
    shown = project.command("sources", "show", "demo")
    verified = project.command("verify", "demo")
    explained = project.ask("explain", url)
    (project.folder / "demo.aside").rename(project.folder / "sources" / "demo.toml")
    back, later = project.ask("status", "demo"), run(project)

    assert [(each["source"], each["state"]) for each in everything] == [("other", "finished"), ("demo", "disabled")]
    assert (status["documents"], status["force_recrawl"]) == (DOCUMENTS, None)
    assert [warning["code"] for warning in status["warnings"]] == ["no_file"]
    assert remedy in status["warnings"][0]["message"]
    assert (checked.returncode, remedy in json.loads(checked.stdout)["warnings"][0]["message"]) == (0, True)
    assert (shown.returncode, remedy in shown.stderr) == (2, True)
    assert (verified.returncode, verified.stdout.count(f"; {remedy.partition(': ')[2]}")) == (1, DOCUMENTS)
    assert (explained["in_index"], explained["source"]) == (True, "demo")
    assert explained["decided_by"] == {
        "step": "source",
        "rule": "the file of the source is gone",
        "file": "sources/demo.toml",
        "key": None,
    }
    assert "searchcrawl delete demo" in explained["verdict"]
    # The file is back.
    assert (back["state"], back["warnings"]) == ("finished", [])
    assert (later.ended.exit_code, later.counts["deleted"]) == (0, 0)


def test_refused_source_when_asked_then_status_and_metrics_have_it_with_its_errors(project: CrawlProject) -> None:
    file = project.folder / "sources" / "demo.toml"
    file.write_text(file.read_text() + '\n[login]\nurl = {env = "NOT_SET_ANYWHERE"}\n')

    asked = project.command("status", "--json")
    [refused] = [each for each in json.loads(asked.stdout)["sources"] if each["source"] == "demo"]
    shown = project.command("status")
    metrics = project.command("status", "--prometheus").stdout

    assert (asked.returncode, refused["state"], refused["documents"]) == (0, "failed", DOCUMENTS)
    assert {warning["code"] for warning in refused["warnings"]} == {"bad_file"}
    assert any("NOT_SET_ANYWHERE" in warning["message"] for warning in refused["warnings"])
    assert "demo: sources/demo.toml: login.url" in shown.stdout
    assert (asked.stderr, shown.stderr) == ("", "")
    assert 'searchcrawl_state{source="demo",state="failed"} 1.0' in metrics
