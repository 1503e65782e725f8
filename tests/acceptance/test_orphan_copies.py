"""Orphans that stood for copies: one of these is indexed in their place (D6, F2)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import HOST, decide, is_verified, left
from tests.acceptance.support_stories import page, run, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

NAMES = ("alpha", "beta", "gamma")


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    link(clean_site, *NAMES)
    clean_site.set_page(HOST, "/gamma.html", page("text of gamma", "/"))
    for name in ("alpha", "beta"):
        clean_site.set_page(HOST, f"/{name}.html", page("one text for both", "/"))
    return new_project(tmp_path, clean_site, **source(clean_site, HOST), lifecycle={"orphans": "delete"})


def link(site: SiteProcess, *names: str) -> None:
    """What the start page links to."""
    site.set_page(HOST, "/", page(f"start of {len(names)}", *(f"/{name}.html" for name in names)))


def twins(project: CrawlProject) -> tuple[str, str]:
    """The page that stands for the other one of the same text, and that one."""
    (survivor,) = left(project) & {"alpha", "beta"}
    (copy,) = {"alpha", "beta"} - {survivor}
    return survivor, copy


@pytest.mark.parametrize("known_first", [True, False])
def test_orphans_when_they_stood_for_copies_then_one_of_these_is_indexed_in_the_same_run(
    project: CrawlProject, known_first: bool
) -> None:
    if known_first:
        link(project.site, "alpha", "gamma")
        run(project)
        link(project.site, *NAMES)
    run(project)
    survivor, copy = twins(project)
    link(project.site, copy, "gamma")

    run(project)
    alone = left(project)
    link(project.site, *NAMES)
    run(project)

    assert alone == {"gamma", copy}
    # Named again it stands for the other one as before.
    assert left(project) == {"gamma", survivor}
    assert is_verified(project)


@pytest.mark.parametrize("is_named_again", [True, False])
@pytest.mark.parametrize("point", ["batch.sealed", "batch.marked", "delete.selected", "delete.marked"])
@pytest.mark.few(1)
def test_orphans_when_they_stood_for_copies_and_the_run_is_killed_then_one_of_both_is_left(
    project: CrawlProject, point: str, is_named_again: bool
) -> None:
    run(project)
    survivor, copy = twins(project)
    link(project.site, copy, "gamma")
    number = 2 if point.startswith("batch") else 1
    killed = COMMANDS.run(project.folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT=f"{point}:{number}").returncode
    if is_named_again:
        link(project.site, *NAMES)

    run(project)
    run(project)

    assert killed == -signal.SIGKILL
    assert left(project) == {"gamma", survivor if is_named_again else copy}
    assert is_verified(project)


@pytest.mark.parametrize("way", ["reject", "undelete"])
def test_orphan_when_its_removal_is_taken_back_then_it_and_its_copy_are_not_both_in_the_index(
    project: CrawlProject, way: str
) -> None:
    run(project)
    survivor, copy = twins(project)
    link(project.site, copy, "gamma")
    held = {"orphans": "delete", "max_delete_documents": 0 if way == "reject" else 100}
    project.edit(**source(project.site, HOST), lifecycle=held)
    project.crawl()
    removed = project.last_run()
    both = left(project) >= {survivor, copy}

    done = decide(project, "reject") if way == "reject" else project.ask("undelete", removed)
    project.edit(**source(project.site, HOST), lifecycle={"orphans": "delete"})
    project.crawl()

    assert both is (way == "reject")
    assert done["failed"] == 0
    assert len(left(project) & {survivor, copy}) == 1
    assert left(project) == {"gamma", survivor}
    assert is_verified(project)
    # The survivor lists the other one, as for every copy.
    (hit,) = project.hits("text both")
    assert [url.rpartition("/")[2] for url in hit.fields["duplicates"]] == [f"{copy}.html"]
