"""Applications of React, Vue and Svelte with their routers, as their tools build them, crawled with a real browser (C10)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from searchcrawl.codes import Code
from tests.acceptance.support_project import CrawlProject, new_project
from tests.framework_builds import FRAMEWORKS, KEPT, NodeMissing, build_all, read_build
from tests.page_wall import need_browser
from tests.site.client import SiteProcess
from tests.site.expected import short

pytestmark = pytest.mark.extended

ARTICLES: Final = {"lamps": "Lamps", "chairs": "Chairs", "clocks": "Clocks", "kettles": "Kettles"}
#: Title and text of each page, as its data have them.
PAGES: Final = {
    "/": ("All instruments", "Everything that our workshop by the harbour makes, from the smallest lamp to clocks."),
    "/about": (
        "About the workshop",
        "Three sisters have led it since their uncle went to sea and sent no letter home.",
    ),
    "/articles/lamps": ("Lamps", "Brass and green glass, made to be read by. The wick is trimmed once in a week."),
    "/articles/lamps/notes": ("Notes on lamps", "One burned for eleven years in the tower of the old observatory."),
    "/articles/chairs": ("Chairs", "Beech without arms, for kitchens. Four of them are carried by one person easily."),
    "/articles/clocks": (
        "Clocks",
        "They strike the quarters, but for the night, when a felt is laid under the hammer.",
    ),
    "/articles/kettles": (
        "Kettles",
        "Copper that is tinned inside. Their whistle is tuned to the note of a blackbird.",
    ),
}
#: What becomes of paths that the application links to and has no page for: a route that leads to another one, a path without
#: a route, and one whose data are gone. Hosts send the same shell for them.
ASIDE: Final = {"/information": Code.DUPLICATE, "/gone": Code.SENTINEL, "/articles/lost": Code.SENTINEL}
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
}


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    need_browser()
    with SiteProcess() as running:
        yield running


def serve(site: SiteProcess, framework: str) -> None:
    """An application as hosts serve it: its files, its data, and for any other path its shell."""
    host, files = host_of(framework), read_build(KEPT, framework)
    shell = files.pop("/index.html").decode()
    site.set_behaviour(host, status=200, body=shell, headers={"Content-Type": _TYPES[".html"]}, missing=True)
    site.set_pages(host, dict.fromkeys([*PAGES, *ASIDE], shell))
    for path, content in files.items():
        site.set_page(host, path, content, content_type=_TYPES[Path(path).suffix])
    site.set_behaviour(host, prefix="/api/", status=404, missing=True)
    for path, (title, text) in PAGES.items():
        set_data(site, host, path, title, f"{text} This is {framework}.")


def host_of(framework: str) -> str:
    return f"{framework}.acme.test"


def set_data(site: SiteProcess, host: str, path: str, title: str, text: str) -> None:
    data: dict[str, Any] = {"title": title, "text": text, "notes": f"{path}/notes" in PAGES}
    if path == "/":
        data["items"] = [{"name": name, "title": label} for name, label in ARTICLES.items()]
    name = "/list" if path == "/" else path
    site.set_page(host, f"/api{name}.json", json.dumps(data), content_type=_TYPES[".json"])


def applications(folder: Path, site: SiteProcess) -> CrawlProject:
    return new_project(
        folder,
        site,
        start={"urls": [site.url(host_of(framework), "/") for framework in FRAMEWORKS]},
        scope={"include_hosts": [f"={host_of(framework)}" for framework in FRAMEWORKS]},
        render={"mode": "auto"},
    )


def test_c10_applications_of_frameworks_when_they_are_crawled_then_each_page_is_found_and_later_only_a_changed_one_sent(
    tmp_path: Path, site: SiteProcess
) -> None:
    for framework in FRAMEWORKS:
        serve(site, framework)
    project = applications(tmp_path, site)

    first = project.crawl().counts
    hits = {path: project.hits(f'"{text}"') for path, (_, text) in PAGES.items()}
    codes = project.codes()
    second = project.crawl().counts
    set_data(
        site, host_of("vue"), "/articles/clocks", "Clocks", "Silent now: the smith who tuned their bells moved away."
    )
    third = project.crawl().counts

    hosts = [host_of(framework) for framework in FRAMEWORKS]
    expected = dict.fromkeys(PAGES, 200) | ASIDE
    assert codes == {host + path: code for host in hosts for path, code in expected.items()}
    for path, (title, _) in PAGES.items():
        found = {short(hit.fields["url"]): hit.fields["title"] for hit in hits[path]}
        assert found == {host + path: title for host in hosts}
    assert (first["indexed"], first["duplicates"]) == (len(PAGES) * len(hosts), len(hosts))
    assert (second["new"], second["changed"], second["indexed"]) == (0, 0, 0)
    assert (third["new"], third["changed"], third["indexed"]) == (0, 1, 1)
    assert project.found('"bells moved away"') == ["vue.acme.test/articles/clocks"]


def test_c10_applications_when_they_are_built_anew_then_they_are_as_they_were_kept(
    part_missing: Callable[[str], NoReturn],
) -> None:
    try:
        built = build_all()
    except NodeMissing as error:
        part_missing(str(error))

    # Where they are not: python -m tests.framework_builds
    assert {name: read_build(built, name) for name in FRAMEWORKS} == {
        name: read_build(KEPT, name) for name in FRAMEWORKS
    }
