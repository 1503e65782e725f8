"""Groups of sources, display names of values, and what ``search`` says besides hits, on the command line (G6, A7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess

A: Final = "press.acme.test"
B: Final = "staff.acme.test"
COLORS: Final = {"red": {"name": "Red", "de": "Rot"}, "blue": "Blue"}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        for host in (A, B):
            made = {name: page("barometer", head=f'<meta name="color" content="{name}">') for name in ("red", "green")}
            pages(site, host, **made)
        yield new_project(tmp_path / "project", site, **tables(site, A, groups=["press", "all"]))


def tables(site: SiteProcess, host: str, **more: Any) -> dict[str, Any]:
    return {**source(site, host), "attributes": {"meta:color": "color", "values": {"color": COLORS}}, **more}


def search(project: CrawlProject, *words: str) -> dict[str, Any]:
    return project.ask("search", *words)


def count(project: CrawlProject, *groups: str) -> int:
    asked = [part for group in groups for part in ("--group", group)]
    total: int = search(project, "barometer", *asked)["total"]
    return total


@pytest.mark.matrix
def test_g6_search_when_it_is_limited_to_groups_then_the_documents_of_their_sources(project: CrawlProject) -> None:
    other = replace(project, name="staff")
    other.edit(**tables(project.site, B, groups=["staff", "all"]))
    run(project)
    run(other)

    found = [
        count(project),
        *(count(project, each) for each in ("press", "staff", "all")),
        count(project, "press", "staff"),
    ]
    unknown = search(project, "barometer", "--group", "pres")
    other.edit(**tables(project.site, B, groups=["press"]))
    project.site.clear_log()
    plan = project.ask("plan", "staff")
    applied = project.ask("apply", str(plan["plan"]))
    requests = project.site.log()
    after = [count(project, each) for each in ("press", "staff")]
    again = run(other)

    assert found == [4, 2, 2, 4, 4]
    assert (unknown["total"], unknown["notes"]) == (
        0,
        ["there is no document with group pres", "no source belongs to the group pres (did you mean press?)"],
    )
    # The edit costs no request, and the documents of this source are sent again.
    assert (plan["enter"], plan["leave"], requests) == (0, 0, [])
    assert applied["documents"] == 3
    assert after == [4, 0]
    assert again.counts["indexed"] == 0


@pytest.mark.matrix
def test_a7_search_when_asked_on_the_command_line_then_facets_offsets_notes_and_suggestions_also_without_its_file(
    project: CrawlProject,
) -> None:
    run(project)

    english, german = (search(project, "barometer", "--facet", "color", "--language", tag) for tag in ("en", "de-AT"))
    shown = project.command("search", "barometer", "--facet", "color", "--language", "de").stdout
    parts = [search(project, "barometer", "--offset", str(start), "--rows", "1") for start in range(3)]
    misspelled = search(project, "baromter")
    told = project.command("search", "baromter").stderr
    beginning = search(project, "barom*")
    refused = project.command("search", "barometer", "--offset", "-1")

    assert english["facets"] == german["facets"] == {"color": {"green": 1, "red": 1}}
    assert (english["facet_names"], german["facet_names"]) == ({"color": {"red": "Red"}}, {"color": {"red": "Rot"}})
    assert ("Rot" in shown, "green" in shown) == (True, True)
    urls = [[hit["url"].rpartition("/")[2] for hit in part["hits"]] for part in parts]
    assert (sorted(urls[0] + urls[1]), urls[2], {part["total"] for part in parts}) == (
        ["green.html", "red.html"],
        [],
        {2},
    )
    assert (misspelled["suggestion"], misspelled["notes"]) == ("barometer", ["no document has baromter"])
    assert "try: barometer" in told
    assert (beginning["total"], beginning["suggestion"], beginning["notes"]) == (2, None, [])
    assert (refused.returncode, "--offset: must be 0 to 1000000 (got -1)" in refused.stderr) == (2, True)

    # Attributes, texts and groups of a source whose file is gone are known.
    file = project.folder / "sources" / f"{project.name}.toml"
    file.rename(file.with_suffix(".away"))
    asked = ("barometer", "--facet", "color", "--language", "de", "--filter", "color:red")

    everywhere = search(project, *asked, "--group", "press")
    by_name = search(project, *asked, "--source", project.name)
    unknown = project.command("search", "barometer", "--source", "other")
    misnamed = project.command("search", "barometer", "--facet", "colour")

    assert everywhere == by_name
    assert (everywhere["total"], everywhere["facet_names"]) == (1, {"color": {"red": "Rot"}})
    assert everywhere["notes"] == []
    assert (unknown.returncode, "unknown source: other" in unknown.stderr) == (2, True)
    assert (misnamed.returncode, "unknown attribute: colour (did you mean color?)" in misnamed.stderr) == (2, True)

    # Where there is a file, it counts at once.
    project.edit(**tables(project.site, A) | {"attributes": {"meta:color": "color", "values": {"color": {"red": "R"}}}})
    assert search(project, *asked)["facet_names"] == {"color": {"red": "R"}}
