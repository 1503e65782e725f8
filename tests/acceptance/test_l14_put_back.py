"""Receivers, stores and indexes that are put back, lost or begun anew, and what other sources have to do with them (L14)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests import backends
from tests.acceptance import test_c8_whole_hosts as blocks
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_receivers import (
    BOTH,
    CLASS,
    HOST,
    LINES,
    NAMES,
    SECOND,
    assert_same,
    build,
    in_index,
    list_receivers,
    read_told,
    set_receivers,
)
from tests.acceptance.support_stories import page
from tests.acceptance.test_f4_shared_copies import add_source, at, set_pages
from tests.site.client import SiteProcess, configure
from tests.solr_server import RunningSolr, free_port

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("clean_site")]

ONE: dict[str, dict[str, str]] = {"second": SECOND}


def change(site: SiteProcess, name: str, text: str) -> None:
    site.set_page(HOST, f"/{name}.html", page(text))


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return build(tmp_path, site)


def test_page_when_forgotten_and_found_again_while_receivers_are_paused_then_they_have_it(
    project: CrawlProject,
) -> None:
    project.crawl()
    for name in BOTH:
        project.command("receivers", "pause", name)
    assert project.command("forget", project.site.url(HOST, "/b.html")).returncode == 0
    (project.folder / "forgotten.txt").unlink()
    project.crawl()
    project.site.delete_page(HOST, "/c.html")
    project.crawl()
    for name in BOTH:
        project.command("receivers", "resume", name)
    project.crawl()

    assert f"{HOST}/b.html" in in_index(project)
    assert_same(project)


def test_store_when_put_back_with_the_index_then_receivers_have_nothing_of_what_was_between(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path / "project", site, ONE)
    project.crawl()
    saved = backends.current.copy(project.folder, tmp_path / "saved")
    change(site, "a", "page a between")
    project.crawl()
    for part in ("store", "index"):
        backends.current.put_back(part, saved, project.folder)
    change(site, "a", "page a at last")
    change(site, "c", "page c at last")
    project.crawl()

    assert in_index(project, "second")[f"{HOST}/a.html"] == "page a at last"
    assert_same(project, names=("second",))


@pytest.mark.few(2)
def test_store_and_index_when_lost_then_receivers_lose_what_is_gone_or_say_so(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, ONE, lifecycle={"max_delete_documents": 0})
    project.crawl()
    backends.current.lose_store(tmp_path)
    backends.current.lose_index(tmp_path)
    site.delete_page(HOST, "/b.html")
    project.crawl()
    kept = in_index(project, "second")
    done = project.ask("resend", "demo", "--receiver", "second")

    # One removal is past the limit of this source.
    assert f"{HOST}/b.html" in kept
    assert "past the limits on deleting" in project.log()
    assert done["failed"] == 0
    assert_same(project, names=("second",))


def test_documents_when_the_index_lost_them_and_they_are_gone_then_they_leave_within_the_limits(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, ONE, lifecycle={"max_delete_documents": 1})
    project.crawl()
    backends.current.lose_index(tmp_path)
    shutil.rmtree(tmp_path / "var" / "cache")
    for name in NAMES:
        site.delete_page(HOST, f"/{name}.html")
    project.command("verify", "demo", "--repair", "--yes")
    project.crawl()
    kept = set(in_index(project, "second"))
    project.command("resend", "demo", "--receiver", "second")

    assert set(in_index(project)) == {f"{HOST}/"}
    assert len(kept) == len(NAMES) + 1
    assert "receivers have 4 documents that the index does not have" in project.log()
    assert set(in_index(project, "second")) == {f"{HOST}/"}


def test_source_when_deleted_and_a_class_refuses_removals_then_its_rows_stay(project: CrawlProject) -> None:
    project.crawl()
    refusing = CLASS.replace(
        "if refused in", "if hasattr(each, 'code') and pathlib.Path('stays').exists() or refused in"
    )
    (project.folder / "lines.py").write_text(refusing, "utf-8")
    (project.folder / "stays").touch()
    refused = project.command("delete", "demo", "--yes", "--json")
    (project.folder / "stays").unlink()
    status = project.ask("status", "demo")

    assert json.loads(refused.stdout)["failed"] == len(NAMES) + 1
    assert status["receivers"][1]["refused"] == len(NAMES) + 1


def test_copy_of_another_source_when_it_leaves_then_that_source_keeps_its_document(
    site: SiteProcess, tmp_path: Path
) -> None:
    def write(name: str, text: str, own: int) -> None:
        set_pages(site, name, t=page("Kettle", text=text), own=page(f"own of {name} {own}"))

    write("a", "other", 0)
    write("b", "boil some water", 0)
    a, b = (add_source(tmp_path, site, name) for name in "ab")
    configure(tmp_path, receivers={"lines": LINES})
    (tmp_path / "lines.py").write_text(CLASS, "utf-8")
    b.crawl()
    # The change log of a is to be longer than that of b.
    for own in range(1, 4):
        write("a", "other", own)
        a.crawl()
    write("a", "boil some water", 9)
    a.crawl()
    before = a.rows()[at("a")]
    told = len(read_told(a))
    b.crawl()
    after = a.rows()[at("a")]

    assert (before["document_state"], after["document_state"]) == (3, 3)
    of_b = [line for line in read_told(a)[told:] if line.get("id", "").startswith("b:")]
    assert [line["told"] for line in of_b] == ["deleted"]
    assert {row["lost"] for name in "ab" for row in list_receivers(a, "--source", name).values()} == {0}


@pytest.mark.solr
def test_solr_beside_an_embedded_index_when_away_and_emptied_then_it_is_right_at_the_end(
    site: SiteProcess, tmp_path: Path, solr_core: str, solr_server: RunningSolr
) -> None:
    gone = f"http://127.0.0.1:{free_port()}/solr/pages"
    index = {"type": "local"}

    def use(url: str) -> None:
        set_receivers(project, {"second": {"type": "solr", "url": url}}, index=index)

    project = build(tmp_path, site, {})
    use(solr_core)
    project.crawl()
    assert_same(project, names=("second",))
    for number, name in enumerate("abc"):
        use(gone)
        change(site, name, f"page {name} anew")
        site.delete_page(HOST, "/d.html")
        away = project.crawl()
        assert (away.exit_code, in_index(project)[f"{HOST}/{name}.html"]) == (0, f"page {name} anew"), number
    waiting = list_receivers(project)["second"]
    use(solr_core)
    project.crawl()
    assert_same(project, names=("second",))
    core = solr_core.rpartition("/")[2]
    solr_server.delete_core(core)
    solr_server.create_core(core)
    project.crawl()

    assert (waiting["state"], waiting["waiting"]) == ("away", 4)
    assert "receivers.second.url" in waiting["error"] or gone in waiting["error"]
    assert_same(project, names=("second",))


def test_receiver_when_slow_then_it_has_the_texts_as_they_are_cut_at_the_end(site: SiteProcess, tmp_path: Path) -> None:
    blocks.write_pages(site, blocks.MANY)
    given = {"receivers": {"lines": LINES}, "cache": {"threshold_mb": 0.0001}}
    project = new_project(tmp_path, site, project=given)
    blocks.edit(project)
    slow = CLASS.replace("def deliver(self, batch):", "def deliver(self, batch):\n        time.sleep(2)")
    (tmp_path / "lines.py").write_text(slow, "utf-8")
    project.crawl()
    (tmp_path / "lines.py").write_text(CLASS, "utf-8")
    project.crawl()

    last = {line["id"]: line["fields"].get("content", "") for line in read_told(project) if "id" in line}
    assert project.found("menuword") == []
    assert [text for text in last.values() if "menuword" in text] == []
