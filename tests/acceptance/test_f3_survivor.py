"""Another copy takes the place of one that is gone, in the same run and without a request of its own (F3)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, Story, Tell, page, pages, run, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess, write_project

HOST = "survivor.acme.test"
SAME = page("the same everywhere")


def at(name: str) -> str:
    return f"{HOST}/{name}.html"


def _gone(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(**source(site, HOST))
    pages(site, HOST, a=SAME, bb=SAME, ccc=SAME)
    runs = [run(project)]
    site.delete_page(HOST, "/a.html")
    runs.append(run(project))
    site.set_page(HOST, "/a.html", SAME)
    return [*runs, run(project)]


def _failing(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(**source(site, HOST))
    pages(site, HOST, a=SAME, bb=SAME)
    runs = [run(project)]
    site.set_behaviour(HOST, "/a.html", status=503)
    return [*runs, run(project)]


def _forgetful(project: CrawlProject) -> list[Run]:
    site = project.site
    pages(site, HOST, a=SAME, bb=SAME, ccc=SAME)
    write_project(project.folder, site, project={"cache": {"preserve": False}}, **source(site, HOST))
    runs = [run(project)]
    site.delete_page(HOST, "/a.html")
    return [*runs, run(project), run(project)]


STORIES: dict[str, Story] = {"gone": _gone, "failing": _failing, "forgetful": _forgetful}


def test_survivor_when_gone_then_the_next_copy_is_searchable_after_the_same_run(tell: Tell) -> None:
    first, gone, back = tell("gone")

    assert (first.codes[at("a")], first.codes[at("bb")], first.codes[at("ccc")]) == (200, 909, 909)
    assert (gone.codes[at("a")], gone.codes[at("bb")], gone.codes[at("ccc")]) == (404, 200, 909)
    assert gone.versions.keys() == {f"{HOST}/", at("bb")}
    assert gone.listed == {at("bb"): [at("ccc")]}
    # From the cache: the copies were only asked whether they had changed.
    assert gone.bodies == 0
    assert gone.counts["deleted"] == 1
    # And it takes its place again.
    assert back.versions.keys() == {f"{HOST}/", at("a")}
    assert back.listed == {at("a"): [at("bb"), at("ccc")]}
    # The one that stood in for it was a document of the index: it counts.
    assert (back.codes[at("bb")], back.counts["deleted"]) == (909, 1)


def test_survivor_when_it_only_fails_then_it_stays_the_document(tell: Tell) -> None:
    first, failing = tell("failing")

    assert failing.codes[at("a")] == 503
    assert (failing.versions, failing.listed) == (first.versions, first.listed)


def test_survivor_when_gone_and_the_cache_keeps_nothing_then_the_next_is_fetched_in_the_same_run(tell: Tell) -> None:
    first, gone, again = tell("forgetful")

    assert first.listed == {at("a"): [at("bb"), at("ccc")]}
    assert gone.versions.keys() == {f"{HOST}/", at("bb")}
    assert gone.listed == {at("bb"): [at("ccc")]}
    # Asked for once more, whole; nobody else was.
    assert [entry["path"] for entry in gone.log if entry["status"] == 200 and "html" in entry["path"]] == ["/bb.html"]
    assert (again.versions, again.counts["indexed"]) == (gone.versions, 0)


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        yield site


def test_f3_copy_when_the_text_of_its_survivor_waits_for_the_index_then_it_stays_until_that_is_there(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, HOST, a=page("once one thing"), bb=page("once another thing"))
    project = new_project(tmp_path, site, **source(site, HOST))
    run(project)
    pages(site, HOST, a=SAME, bb=SAME)

    # Killed with the new text on its way to the index, and again with the first removals sent to it.
    codes = [
        COMMANDS.run(tmp_path, "crawl", "demo", SEARCHCRAWL_FAILPOINT=point).returncode
        for point in ("batch.sealed", "delete.sent")
    ]
    found = project.found("everywhere")
    after = run(project)

    assert codes == [-signal.SIGKILL] * 2
    assert found != []
    assert sorted(after.versions) == [f"{HOST}/", at("a")]
    assert after.codes[at("bb")] == 909
    assert project.found("everywhere") == [at("a")]
