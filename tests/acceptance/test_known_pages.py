"""Pages whose documents are known: an edited limit on traps refuses new URLs only, and no row is left behind (L3, L8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess
from tests.stored_rows import query_columns

pytestmark = pytest.mark.extended

HOST: Final = "known.acme.test"
#: Pages that pass each of the limits; {} is the number of the page.
PATHS: Final = {
    "max_path_segments": "/one/two/three/page-{}.html",
    "max_query_parameters": "/list-{}.html?size=1&order=2&view=3",
    "max_repeated_segments": "/again/again/again/{}.html",
    "max_urls_per_pattern": "/day/{}.html",
    "max_urls": "/day/{}.html",
}
LIMITS: Final = {
    "max_path_segments": 2,
    "max_query_parameters": 2,
    "max_repeated_segments": 1,
    "max_urls_per_pattern": 2,
    "max_urls": 3,
}
COUNT: Final = 6
#: Rows with a document that nothing will ever look at again.
STUCK: Final = """
    SELECT urls.url, urls.code, urls.rule FROM urls JOIN documents ON documents.url_id = urls.id
    WHERE documents.indexed_version IS NOT NULL AND urls.due_ms IS NULL AND documents.leaving = 0
    AND documents.state NOT IN (5, 6)
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        yield new_project(tmp_path, site)


def write(site: SiteProcess, template: str, numbers: range, *, text: str = "text") -> list[str]:
    """Sets pages, and a start page that leads to all up to the last of them."""
    paths = [template.format(number) for number in numbers]
    for path, number in zip(paths, numbers, strict=True):
        # The site knows pages by their paths alone.
        site.set_page(HOST, path.partition("?")[0], page(f"page {number}", text=f"{text} of {template} {number}"))
    site.set_page(HOST, "/", page("start", *(template.format(number) for number in range(numbers.stop))))
    return paths


def edit(project: CrawlProject, **scope: Any) -> None:
    project.edit(**source(project.site, HOST, scope=scope), lifecycle={"max_delete_percent": 100})


def refused(project: CrawlProject) -> dict[str, str]:
    """The keys of the rules that refuse rows, by path."""
    rows = project.rows().items()
    return {url.removeprefix(HOST): row["rule"].partition(":")[0] for url, row in rows if row["code"] in {955, 961}}


@pytest.mark.few(2)
@pytest.mark.parametrize("limit", LIMITS)
def test_known_pages_when_a_limit_on_traps_is_set_below_them_then_they_are_visited_updated_and_removed(
    project: CrawlProject, limit: str
) -> None:
    site = project.site
    paths = write(site, PATHS[limit], range(COUNT))
    edit(project)
    first = run(project)
    edit(project, **{limit: LIMITS[limit]})
    write(site, PATHS[limit], range(COUNT, COUNT + 2))

    limited = run(project)
    stuck = query_columns(project.folder, STUCK)
    explained = project.ask("explain", site.url(HOST, paths[0]))
    write(site, PATHS[limit], range(COUNT), text="otherwise")
    changed = run(project)
    found = set(project.found("otherwise"))
    for path in paths:
        site.delete_page(HOST, path.partition("?")[0])
    removed = run(project)

    known = {f"{HOST}{path}" for path in paths}
    assert known <= first.in_index
    assert known <= limited.in_index
    # The site's log has no queries.
    assert {url.partition("?")[0] for url in known} <= {url.partition("?")[0] for url in limited.requested}
    if limit == "max_urls":
        # Links to new URLs get no row.
        (counted,) = limited.ended.status["refused_links"]
        assert (refused(project), counted["rule"], counted["count"]) == ({}, "scope.max_urls: 3", 2)
    else:
        assert refused(project) == {PATHS[limit].format(new): f"scope.{limit}" for new in range(COUNT, COUNT + 2)}
    assert stuck == []
    assert (explained["in_index"], explained["verdict"]) == (True, "in the index")
    assert (changed.counts["changed"], found) == (COUNT + 1, known)
    assert (removed.counts["deleted"], set(project.indexed())) == (COUNT, {f"{HOST}/"})


@pytest.mark.few(2)
@pytest.mark.parametrize("limit", LIMITS)
def test_known_pages_when_excluded_and_let_in_again_below_a_limit_then_all_are_back(
    project: CrawlProject, limit: str
) -> None:
    site = project.site
    paths = write(site, PATHS[limit], range(12))
    edit(project)
    first = run(project)
    # Too many to leave at once: they wait.
    project.edit(**source(site, HOST, scope={"exclude_urls": ["*.html*"]}), lifecycle={"max_delete_documents": 1})
    held = run(project)
    edit(project, **{limit: LIMITS[limit]})

    back = run(project)

    assert (held.ended.exit_code, back.ended.exit_code) == (9, 0)
    assert back.in_index == first.in_index == set(back.versions)
    assert len(paths) < len(back.requested)
    assert refused(project) == {}
    assert query_columns(project.folder, STUCK) == []


@pytest.mark.parametrize(
    ("scope", "code"), [({"max_url_length": 45}, 1004), ({"depth": 1}, 955), ({"dynamic_pages": False}, 955)]
)
def test_known_pages_when_another_limit_refuses_them_then_leave_within_the_limits_and_come_back(
    project: CrawlProject, scope: dict[str, Any], code: int
) -> None:
    site = project.site
    site.set_page(HOST, "/", page("start", "/near.html"))
    deep = [f"/{'far' * 12}-{number}.html?page={number}" for number in range(3)]
    site.set_page(HOST, "/near.html", page("near", *deep))
    for path in deep:
        site.set_page(HOST, path.partition("?")[0], page(path, text=f"text of {path}"))
    edit(project)
    first = run(project)

    edit(project, **scope)
    limited = run(project)
    edit(project)
    back = run(project)

    gone = {f"{HOST}{path}" for path in deep}
    assert gone <= first.in_index
    assert limited.in_index == first.in_index - gone == set(limited.versions)
    assert {limited.codes[url] for url in gone} == {code}
    assert back.in_index == first.in_index == set(back.versions)


def test_urls_when_an_edited_limit_refuses_a_page_that_was_fetched_then_it_is_shown_as_rejected(
    project: CrawlProject,
) -> None:
    site = project.site
    site.set_page(HOST, "/", page("start", "/one/two/three/gone.html", "/one/two/three/four.html"))
    site.set_page(HOST, "/one/two/three/four.html", page("four", head='<meta name="robots" content="noindex">'))
    edit(project)
    run(project)
    edit(project, max_path_segments=2)
    limited = run(project)

    shown = project.lines("urls", "demo")

    below = {f"{HOST}/one/two/three/{name}.html" for name in ("gone", "four")}
    assert {limited.codes[url] for url in below} == {961}
    assert {row["state"] for row in shown if "/three/" in row["url"]} == {"rejected"}
    assert {row["in_index"] for row in shown if "/three/" in row["url"]} == {False}
