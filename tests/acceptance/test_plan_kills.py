"""``plan`` and ``apply`` may end at any moment: called again they go on (L2, X-S1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import backends
from tests.acceptance import support_plans
from tests.acceptance.support_plans import apply, edit, plan, status
from tests.acceptance.support_project import CrawlProject
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with support_plans.make_site() as site:
        yield site


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return support_plans.crawled(tmp_path, site)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "failpoint", ["apply.begun", "row.updated:1", "links.committed:1", "batch.sealed", "apply.processed"]
)
def test_apply_when_it_is_killed_then_it_goes_on_where_it_was(project: CrawlProject, failpoint: str) -> None:
    edit(project, attributes={"meta:dc.creator": "writer"}, keep={"exclude_urls": ["*/p/1*"]})
    made = plan(project, code=10)

    killed = COMMANDS.run(project.folder, "apply", made["plan"], SEARCHCRAWL_FAILPOINT=failpoint)
    apply(project, made)

    assert killed.returncode == -9
    assert len(project.indexed()) == 23 - made["leave"] == 12
    assert {hit.fields.get("writer_s") for hit in project.hits("number")} == {f"author {n}" for n in range(3)}
    assert status(project)["force_recrawl"] is None


def test_plan_when_it_is_killed_then_the_next_one_says_the_same(project: CrawlProject) -> None:
    edit(project, keep={"exclude_urls": ["*/secret/*"]})

    killed = COMMANDS.run(project.folder, "plan", project.name, SEARCHCRAWL_FAILPOINT="links.committed:1")
    again = COMMANDS.run(project.folder, "plan", project.name, SEARCHCRAWL_FAILPOINT="plan.written:1")
    made = plan(project)

    assert (killed.returncode, again.returncode) == (-9, -9)
    assert (made["leave"], made["enter"]) == (2, 0)
    assert apply(project, made)["removed"] == 2


@pytest.mark.soak
def test_apply_when_it_is_killed_at_each_failpoint_and_once_more_after_it_then_it_ends_as_if_undisturbed(
    project: CrawlProject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    edit(project, attributes={"meta:dc.creator": "writer"}, keep={"exclude_urls": ["*/p/1*"]})
    made = plan(project, code=10)
    folder = tmp_path_factory.mktemp("killed")
    reference, counts = copy(project, folder / "reference"), folder / "counts.json"
    COMMANDS.run(reference.folder, "apply", made["plan"], SEARCHCRAWL_FAILPOINT_COUNT=str(counts))
    whole = state(reference)
    points = [
        f"{name}:{number}"
        for name, passed in json.loads(counts.read_text("utf-8")).items()
        for number in range(1, min(passed, 3) + 1)
        if name != "lease.renew"
    ]

    results = {}
    for number, point in enumerate(points):
        killed = copy(project, folder / f"round{number}")
        COMMANDS.run(killed.folder, "apply", made["plan"], SEARCHCRAWL_FAILPOINT=point)
        COMMANDS.run(killed.folder, "apply", made["plan"], SEARCHCRAWL_FAILPOINT=points[-1 - number])
        ended = killed.command("apply", made["plan"], "--json")
        if ended.returncode == 2:
            # It died before it could note that it had begun: nothing was applied, and the plan is made anew.
            again = json.loads(killed.command("plan", killed.name, "--json").stdout)
            ended = killed.command("apply", again["plan"], "--json")
        results[point] = (ended.returncode, state(killed))

    assert {point: result for point, result in results.items() if result != (0, whole)} == {}
    assert {"apply.begun:1", "apply.processed:1", "delete.marked:1"} <= set(points)


def copy(project: CrawlProject, folder: Path) -> CrawlProject:
    """The same project in another folder."""
    return CrawlProject(folder=backends.current.copy(project.folder, folder), site=project.site)


def state(project: CrawlProject) -> dict[str, Any]:
    """What is in the index, and what the table believes of it."""
    hits = {hit.fields["url"]: hit.fields.get("writer_s") for hit in project.hits("*")}
    known = {url: (row["code"], row["indexed_version"] is not None) for url, row in project.rows().items()}
    return {"hits": hits, "known": known, "force_recrawl": status(project)["force_recrawl"]}


def test_apply_when_it_was_killed_and_a_crawl_follows_then_that_ends_what_was_begun(
    project: CrawlProject, site: SiteProcess
) -> None:
    edit(project, attributes={"meta:dc.creator": "writer"})
    made = plan(project)
    COMMANDS.run(project.folder, "apply", made["plan"], SEARCHCRAWL_FAILPOINT="links.committed:1")

    ended = project.crawl()
    late = project.command("apply", made["plan"])

    assert ended.exit_code == 0
    assert {hit.fields.get("writer_s") for hit in project.hits("number")} == {f"author {n}" for n in range(3)}
    assert status(project)["force_recrawl"] is None
    assert late.returncode == 2
