"""An index that was lost, emptied or put back from a copy: it is noticed, said, and filled again (E7, L4)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import tantivy

from searchcrawl import urls
from searchcrawl.sources.loading import load_project
from tests import backends
from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess, configure, source_toml
from tests.tampering import tamper

pytestmark = pytest.mark.extended

HOST: Final = "lost.acme.test"
NAMES: Final = tuple(f"page{number:02}" for number in range(12))
ALL: Final = ["/", *(f"/{name}.html" for name in NAMES)]


def word(name: str, version: int = 1) -> str:
    """A word that this version of a page has, and no other page."""
    return f"text{name}v{version}"


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    pages(clean_site, HOST, **{name: page(word(name)) for name in NAMES})
    return new_project(tmp_path / "project", clean_site, **source(clean_site, HOST))


def lose(project: CrawlProject) -> None:
    backends.current.lose_index(project.folder)


def empty(project: CrawlProject) -> None:
    backends.current.empty_index(project.folder, project.name)


def make_earlier_index(folder: Path) -> None:
    """An embedded index with a field less than those of this release."""
    folder.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    writer = tantivy.Index(builder.build(), path=str(folder)).writer(15_000_000, 1)
    writer.add_document(tantivy.Document(id="demo:1"))
    writer.commit()
    writer.wait_merging_threads()


LOSSES: Final = pytest.mark.parametrize("happens", [lose, empty], ids=["gone", "emptied"])


def answer(project: CrawlProject, *words: str) -> tuple[dict[str, Any], int]:
    ended = project.command(*words, "--json")
    return json.loads(ended.stdout), ended.returncode


def warned(project: CrawlProject) -> dict[str, str]:
    status, _ = answer(project, "status", project.name)
    return {warning["code"]: warning["message"] for warning in status["warnings"]}


def resend(project: CrawlProject) -> tuple[dict[str, Any], int]:
    return answer(project, "resend", project.name)


def missing(project: CrawlProject, **versions: int) -> list[str]:
    """The pages that are not found by their present text, alone."""
    wanted = {name: word(name, versions.get(name, 1)) for name in NAMES if versions.get(name, 1)}
    return [name for name, text in wanted.items() if project.found(text) != [f"{HOST}/{name}.html"]]


def sent(documents: int, *, to_fetch: int = 0) -> dict[str, Any]:
    return {"source": "demo", "documents": documents, "removed": 0, "failed": 0, "to_fetch": to_fetch}


@pytest.mark.matrix
@LOSSES
def test_index_when_it_has_nothing_any_more_then_run_status_and_search_say_what_mends_it(
    project: CrawlProject, happens: Callable[[CrawlProject], None]
) -> None:
    run(project)
    before = warned(project)
    happens(project)

    status = warned(project)
    found = answer(project, "search", "*")[0]
    spoken = project.command("search", word(NAMES[0]))
    shown = project.command("status", "demo").stdout
    after = run(project)

    assert before == {}
    assert "searchcrawl resend demo" in status["index_emptied"]
    assert (found["total"], ["searchcrawl resend demo" in note for note in found["notes"]]) == (0, [True])
    assert (spoken.returncode, "searchcrawl resend demo" in spoken.stderr) == (0, True)
    assert "13 by the table, but see below" in shown
    assert (after.ended.exit_code, after.counts["deleted"]) == (0, 0)
    assert [warning["code"] for warning in after.ended.status["warnings"]] == ["index_emptied"]
    assert "searchcrawl resend demo" in project.log()


def test_index_when_an_earlier_release_made_it_then_each_command_says_what_mends_it_and_nothing_is_lost(
    project: CrawlProject,
) -> None:
    run(project)
    index = project.folder / "var" / "index"
    shutil.rmtree(index)
    make_earlier_index(index)

    searched = project.command("search", "*")
    crawled, code = answer(project, "crawl", "demo")
    refused = project.command("resend", "demo")
    index.rename(index.with_name("earlier"))
    done = resend(project)

    for ended in (searched, refused):
        assert (ended.returncode, str(index) in ended.stderr) == (6, True), ended.stderr
        assert "the index of another release" in ended.stderr
        assert "searchcrawl resend NAME" in ended.stderr
    assert (code, crawled["counts"]["deleted"], crawled["documents"]) == (0, 0, len(ALL))
    assert done == (sent(len(ALL)), 0)
    assert missing(project) == []
    assert [
        entry["name"] for entry in json.loads((index.with_name("earlier") / "meta.json").read_text())["schema"]
    ] == ["id"]


@pytest.mark.few(2)
@pytest.mark.parametrize("cache", [{"preserve": False}, {"max_gb": 0.000001}], ids=["preserve", "max_gb"])
@LOSSES
def test_resend_when_records_were_given_up_then_the_next_run_fetches_their_pages(
    project: CrawlProject, happens: Callable[[CrawlProject], None], cache: dict[str, Any]
) -> None:
    configure(project.folder, cache={"threshold_mb": 0.0005, **cache})
    run(project)
    count, _ = answer(project, "cache", "count", "demo")
    kept = count["records"]
    happens(project)

    first = resend(project)
    second = resend(project)
    documents = answer(project, "status", "demo")[0]["documents"]
    after = run(project)
    third = resend(project)

    lost = len(ALL) - kept
    assert lost > 5
    assert first == (sent(kept, to_fetch=lost), 1)
    assert second == (sent(0 if "preserve" in cache else kept, to_fetch=lost), 1)
    assert documents == kept
    assert (after.ended.exit_code, missing(project)) == (0, [])
    assert after.ended.status["documents"] == len(ALL)
    assert third[0]["documents"] + third[0]["to_fetch"] == len(ALL)


@pytest.mark.matrix
def test_index_when_an_older_one_was_put_back_then_a_resend_and_a_run_make_it_true(project: CrawlProject) -> None:
    run(project)
    saved = backends.current.copy(project.folder, project.folder.with_name("saved"))
    project.site.set_page(HOST, "/page01.html", page(word("page01", 2)))
    project.site.set_page(HOST, "/page02.html", page(word("page02", 2)))
    project.site.delete_page(HOST, "/page03.html")
    run(project)
    backends.current.put_back("index", saved, project.folder)

    status = warned(project)
    notes = answer(project, "search", "*")[0]["notes"]
    between = run(project)
    resent = resend(project)
    after = run(project)

    assert "searchcrawl resend demo" in status["index_older"]
    assert len(notes) == 1
    assert (between.ended.exit_code, between.counts["deleted"]) == (0, 0)
    # The page that is gone came back with the index.
    assert resent == (sent(len(ALL) - 1, to_fetch=1), 1)
    assert after.ended.exit_code == 0
    assert missing(project, page01=2, page02=2, page03=0) == []
    assert len(project.indexed()) == len(ALL) - 1
    assert project.command("verify", "demo").returncode == 0
    assert warned(project) == {}


def test_index_when_an_older_one_has_only_what_was_removed_since_then_that_is_noticed_and_leaves_again(
    project: CrawlProject,
) -> None:
    run(project)
    saved = backends.current.copy(project.folder, project.folder.with_name("saved"))
    project.site.delete_page(HOST, "/page03.html")
    run(project)
    backends.current.put_back("index", saved, project.folder)

    status = warned(project)
    resent = resend(project)
    after = run(project)

    assert "searchcrawl resend demo" in status["index_older"]
    assert resent == (sent(len(ALL) - 1, to_fetch=1), 1)
    assert (after.ended.exit_code, after.counts["deleted"], missing(project, page03=0)) == (0, 1, [])
    assert len(project.indexed()) == len(ALL) - 1
    assert warned(project) == {}


def test_index_when_one_source_of_two_was_lost_then_that_one_is_named_and_filled_again(project: CrawlProject) -> None:
    other = CrawlProject(folder=project.folder, site=project.site, name="other")
    pages(project.site, "other.acme.test", alpha=page("one more"))
    overrides = source(project.site, "other.acme.test")
    (project.folder / "sources" / "other.toml").write_text(source_toml(project.site, **overrides), "utf-8")
    run(project)
    run(other)
    empty(project)

    notes = answer(project, "search", "more")[0]
    codes = [list(warned(project)), list(warned(other))]
    resend(project)

    assert (notes["total"], len(notes["notes"])) == (1, 1)
    assert "resend demo" in notes["notes"][0]
    assert codes == [["index_emptied"], []]
    assert missing(project) == []
    assert len(other.indexed()) == 2


def test_run_when_documents_were_altered_behind_its_back_then_its_end_and_status_say_so_until_they_are_mended(
    project: CrawlProject,
) -> None:
    run(project)
    good = project.log()
    url = project.site.url(HOST, "/page03.html")
    altered = {"url": url, "access_url": url, "source": "demo", "checksum": "00", "crawl_version": 1}
    tamper(load_project(project.folder), put={urls.document_id("demo", url): altered})

    after = run(project)
    codes = [warning["code"] for warning in after.ended.status["warnings"]]
    configure(project.folder, index=absent_index())
    away = warned(project)
    configure(project.folder)
    mended = project.command("verify", "demo", "--repair")

    assert "13 documents of the index were looked at: it has them as the table says" in good
    assert (
        "1 of 13 documents that were looked at differ in the index: searchcrawl verify demo --repair" in project.log()
    )
    assert (after.ended.exit_code, codes) == (0, ["index_older"])
    assert "1 of 13 documents" in away["index_differs"]
    assert (mended.returncode, warned(project)) == (0, {})
