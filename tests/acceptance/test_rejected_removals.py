"""A rejected removal: the document stays and is found as the table believes, until there is other evidence (L3, L4)."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import (
    HOST,
    NAMES,
    NOINDEX,
    PATHS,
    canonical_elsewhere,
    decide,
    gone,
    is_verified,
    listed,
    moved_outside,
    noindex,
    settings,
    status_410,
    write,
)
from tests.acceptance.support_stories import page, pages, run
from tests.crawl_forks import CLOCK, COMMANDS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

Change = Callable[[CrawlProject], None]


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    # A third page is never touched: no answer looks like those of the whole host.
    pages(clean_site, HOST, **{name: page(f"text of {name}") for name in (*NAMES, "gamma")})
    return new_project(tmp_path, clean_site, **settings(clean_site))


def noindex_with_another_text(project: CrawlProject) -> None:
    write(project, "newer text of", head=NOINDEX)


def noindex_by_header(project: CrawlProject) -> None:
    for path in PATHS:
        project.site.set_behaviour(HOST, path, headers={"X-Robots-Tag": "noindex"})


def forbidden_by_robots(project: CrawlProject) -> None:
    lines = "".join(f"Disallow: {path}\n" for path in PATHS)
    project.site.set_page(HOST, "/robots.txt", f"User-agent: *\n{lines}", content_type="text/plain")


def kept_out(project: CrawlProject) -> None:
    project.edit(**settings(project.site, keep={"exclude_urls": ["*alpha*", "*beta*"]}))


def outside(project: CrawlProject) -> None:
    project.edit(**settings(project.site, scope={"include_hosts": [HOST], "exclude_urls": ["*alpha*", "*beta*"]}))


EVIDENCE: Final = (
    gone,
    noindex,
    noindex_with_another_text,
    noindex_by_header,
    moved_outside,
    forbidden_by_robots,
    kept_out,
    outside,
)


@pytest.mark.matrix
@pytest.mark.few(2)
@pytest.mark.parametrize("happen", EVIDENCE)
def test_rejected_when_later_runs_find_the_same_then_the_documents_stay_and_nothing_waits(
    project: CrawlProject, happen: Change
) -> None:
    run(project)
    happen(project)
    held = run(project)

    rejected = decide(project, "reject")
    again = [run(project) for _ in range(2)]

    assert (held.ended.exit_code, rejected["documents"]) == (9, 2)
    assert [each.ended.exit_code for each in again] == [0, 0]
    assert listed(project) == []
    assert len(project.indexed()) == 4
    assert len(project.found('"text of alpha"')) == 1
    assert is_verified(project)


def test_rejected_when_a_page_answers_the_same_with_other_bytes_each_day_then_its_document_stays(
    project: CrawlProject,
) -> None:
    run(project)
    codes = []
    for day in range(4):
        write(project, f"day {day} of", head=NOINDEX)
        codes.append(run(project).ended.exit_code)
        if day == 0:
            decide(project, "reject")

    assert codes == [9, 0, 0, 0]
    assert len(project.found('"text of alpha"')) == 1
    assert is_verified(project)


@pytest.mark.parametrize("happen", [noindex_with_another_text, kept_out])
def test_rejected_when_the_page_may_be_indexed_again_then_its_present_text_is_found(
    project: CrawlProject, happen: Change
) -> None:
    run(project)
    write(project, "newer text of")
    happen(project)
    run(project)

    decide(project, "reject")
    before = is_verified(project)
    write(project, "newer text of")
    project.edit(**settings(project.site))
    run(project)

    assert before
    assert len(project.found('"newer text of alpha"')) == 1
    assert is_verified(project)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("first", "second"),
    [(gone, status_410), (noindex, gone), (gone, noindex), (kept_out, gone), (gone, outside), (noindex, outside)],
)
def test_rejected_when_there_is_other_evidence_then_the_removal_waits_again(
    project: CrawlProject, first: Change, second: Change
) -> None:
    run(project)
    first(project)
    run(project)
    decide(project, "reject")

    second(project)
    after = run(project)

    assert after.ended.exit_code == 9
    assert len(listed(project)) == 2
    assert len(project.indexed()) == 4


@pytest.mark.few(2)
@pytest.mark.parametrize("happen", [gone, noindex, noindex_with_another_text])
@pytest.mark.parametrize("back", ["text of", "other text of"])
def test_rejected_when_the_page_came_back_and_went_again_then_its_removal_waits_again(
    project: CrawlProject, happen: Change, back: str
) -> None:
    run(project)
    happen(project)
    run(project)
    decide(project, "reject")
    write(project, back)
    between = run(project)

    happen(project)
    after = run(project)

    assert [between.ended.exit_code, after.ended.exit_code] == [0, 9]
    assert len(project.found(f'"{back} alpha"')) == 1
    assert len(listed(project)) == 2


def kill_before_delivery(project: CrawlProject, seconds: int = 0) -> None:
    """A run that fetches the pages and is killed before it sends them, with a clock that is so many seconds ahead.

    An edit makes the next run visit them again.
    """
    killed = COMMANDS.run(
        project.folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT="shutdown.begin", **{CLOCK: str(seconds)}
    )
    assert killed.returncode == -signal.SIGKILL
    project.edit(**settings(project.site, keep={"max_bytes": 1_000_000}))


@pytest.mark.few(2)
@pytest.mark.parametrize("seconds", [0, -86_400])
@pytest.mark.parametrize("happen", [gone, noindex])
def test_rejected_when_a_changed_text_had_not_been_sent_then_it_is_unless_it_may_not_be_indexed(
    project: CrawlProject, happen: Change, seconds: int
) -> None:
    run(project)
    write(project, "newer text of")
    kill_before_delivery(project, seconds)
    happen(project)
    held = run(project)

    decide(project, "reject")
    after = run(project)

    assert [held.ended.exit_code, after.ended.exit_code] == [9, 0]
    assert len(project.found('"newer text of alpha"')) == (1 if happen is gone else 0)
    assert len(project.indexed()) == 4
    assert is_verified(project)


def test_rejected_when_the_changed_text_was_lost_before_it_was_sent_then_the_page_is_fetched_once_it_is_back(
    project: CrawlProject,
) -> None:
    run(project)
    write(project, "newer text of")
    kill_before_delivery(project)
    gone(project)
    run(project)
    shutil.rmtree(project.folder / "var" / "cache" / "demo")
    decide(project, "reject")
    without = run(project)
    verified = is_verified(project)
    kept = project.found('"text of alpha"')

    write(project, "newer text of")
    after = run(project)

    assert (without.ended.exit_code, verified, len(kept)) == (0, True, 1)
    assert after.ended.exit_code == 0
    assert len(project.found('"newer text of alpha"')) == 1
    assert is_verified(project)


def one_text(project: CrawlProject) -> None:
    for path in PATHS:
        project.site.set_page(HOST, path, page("text of gamma"))


@pytest.mark.parametrize(
    ("happen", "found"), [(canonical_elsewhere, '"newest text of alpha"'), (one_text, '"text of alpha"')]
)
def test_rejected_when_other_pages_are_indexed_in_their_place_then_the_documents_stay(
    project: CrawlProject, happen: Change, found: str
) -> None:
    run(project)
    happen(project)
    held = run(project)

    reasons = {row["reason"] for row in listed(project)}
    decide(project, "reject")
    again = []
    for text in ("still newer text of", "newest text of"):
        if happen is canonical_elsewhere:
            canonical_elsewhere(project, text)
        again.append(run(project).ended.exit_code)
    kept, verified = project.found(found), is_verified(project)
    write(project, "other text of")
    after = run(project)

    assert (held.ended.exit_code, again, after.ended.exit_code) == (9, [0, 0], 0)
    assert reasons == ({"964"} if happen is canonical_elsewhere else {"909"})
    assert (len(kept), verified) == (1, True)
    assert len(project.found('"other text of alpha"')) == 1
    assert listed(project, "--rejected") == []
    assert is_verified(project)
