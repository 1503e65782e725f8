"""Near copies are taken out only where the source file asks for it, within the limits on deleting (F6, F3, L3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.support_plans import apply, plan
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess

HOST = "editions.acme.test"
#: More than may always leave.
MANY = 14


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        yield site


def manual(number: int, edition: int) -> str:
    """A page of a manual; its editions differ in one word."""
    text = " ".join(f"the part{number}x{each} rarely differs," for each in range(150))
    return page(f"Manual {number}", text=f"{text} edition {edition}")


def edit(project: CrawlProject, near: str) -> None:
    project.edit(**source(project.site, HOST), copies={"near": near})


def at(name: str) -> str:
    return f"{HOST}/{name}.html"


@pytest.mark.matrix
def test_near_copies_when_they_are_removed_then_the_best_stays_and_another_takes_its_place_in_the_same_run(
    site: SiteProcess, tmp_path: Path
) -> None:
    bodies = {f"a{number}{'b' * edition}": manual(number, edition) for number in range(2) for edition in range(3)}
    pages(site, HOST, **bodies)
    project = new_project(tmp_path, site)
    edit(project, "remove")
    first, again = run(project), run(project)

    assert first.versions.keys() == {f"{HOST}/", at("a0"), at("a1")}
    assert first.listed == {at(f"a{number}"): [at(f"a{number}b"), at(f"a{number}bb")] for number in range(2)}
    assert {first.codes[at(f"a0{rest}")] for rest in ("b", "bb")} == {909}
    assert (first.counts["indexed"], first.counts["deleted"], again.counts["indexed"]) == (3, 0, 0)
    decided = project.ask("explain", site.url(HOST, "/a0b.html"))["decided_by"]
    assert (decided["rule"], decided["key"]) == (f"a near copy of {site.url(HOST, '/a0.html')}", "copies.near")

    # One of those that stay is gone, the other has another text.
    site.set_page(HOST, "/a0.html", page("gone"), status=404)
    site.set_page(HOST, "/a1.html", manual(7, 0))
    changed = run(project)

    assert changed.versions.keys() == {f"{HOST}/", at("a0b"), at("a1"), at("a1b")}
    assert changed.listed == {at("a0b"): [at("a0bb")], at("a1b"): [at("a1bb")]}
    assert (changed.counts["deleted"], changed.ended.exit_code) == (1, 0)

    edit(project, "group")
    made = plan(project)
    apply(project, made)
    back = run(project)

    assert (made["edited"], made["enter"], made["leave"]) == (["copies.near"], 2, 0)
    assert set(back.versions) == {f"{HOST}/", *(at(f"a{each}") for each in ("0b", "0bb", "1", "1b", "1bb"))}
    assert (back.listed, back.counts["indexed"]) == ({}, 0)


def test_near_copies_when_the_cache_keeps_no_record_then_are_compared_all_the_same_and_listed_by_the_next_run(
    site: SiteProcess, tmp_path: Path
) -> None:
    editions = {f"a{'b' * edition}": manual(1, edition) for edition in range(3)}
    pages(site, HOST, a=editions["a"])
    project = new_project(tmp_path, site, project={"cache": {"preserve": False}})
    edit(project, "remove")
    run(project)
    pages(site, HOST, **editions)
    second, third, fourth = run(project), run(project), run(project)

    assert second.versions.keys() == third.versions.keys() == {f"{HOST}/", at("a")}
    # It was fetched again, for its record was gone.
    assert third.listed == fourth.listed == {at("a"): [at("ab"), at("abb")]}
    assert (fourth.counts["indexed"], fourth.counts["deleted"], fourth.counts["fetch_failures"]) == (0, 0, 0)


def test_documents_when_many_would_leave_as_near_copies_then_they_wait_and_are_found_until_somebody_approves(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, HOST, **{f"a{edition:02}": manual(1, edition) for edition in range(MANY)})
    project = new_project(tmp_path, site)
    edit(project, "group")
    before = run(project)
    edit(project, "remove")
    planned = plan(project, code=10)
    held = run(project)

    assert set(held.versions) == set(before.versions)
    assert (held.ended.exit_code, held.ended.status["quarantined"], held.counts["deleted"]) == (9, MANY - 1, 0)
    assert (planned["leave"], planned["refetch"]) == (MANY - 1, 0)

    assert project.command("quarantine", "approve", "demo").returncode == 0
    after = run(project)

    assert after.versions.keys() == {f"{HOST}/", at("a00")}
    assert (after.ended.exit_code, after.counts["indexed"]) == (0, 0)
    assert len(after.listed[at("a00")]) == MANY - 1


def test_near_copies_when_a_menu_alone_is_alike_then_they_stay_as_soon_as_it_is_known_to_be_one(
    site: SiteProcess, tmp_path: Path
) -> None:
    def menu_and(number: int) -> str:
        menu = "".join(f"<p>the part{line} rarely differs here or there or there" for line in range(60))
        return page(f"Kettle {number}", text=f"{menu}<p>It boils water of kind {number}")

    # Of fewer pages than ten nothing is said.
    few, many = ({f"a{number:02}": menu_and(number) for number in range(most)} for most in (8, 16))
    pages(site, HOST, **few)
    project = new_project(tmp_path / "grown", site)
    edit(project, "remove")
    first = run(project)
    pages(site, HOST, **many)
    second, third = run(project), run(project)
    fresh = new_project(tmp_path / "fresh", site)
    edit(fresh, "remove")

    assert first.versions.keys() == {f"{HOST}/", at("a00")}
    assert second.versions.keys() == run(fresh).versions.keys() == {f"{HOST}/", *map(at, many)}
    assert (second.listed, third.counts["indexed"], third.counts["changed"]) == ({}, 0, 0)
    assert project.found("rarely") == []
