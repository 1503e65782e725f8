"""The main content of pages is indexed, and what the source file says of it holds from the cache (C8, D9)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.support_plans import HOST, apply, edit, plan, status
from tests.acceptance.support_project import new_project
from tests.site.client import SiteProcess

_NUMBERS = range(4)


def write_page(site: SiteProcess, number: int, *, footer: str = "imprint") -> None:
    links = "".join(f"<li><a href=/{other}.html>chapter {other}</a>" for other in _NUMBERS)
    site.set_page(
        HOST,
        f"/{number}.html" if number else "/",
        f"<html lang=en><title>Page {number}</title><body><nav><ul>{links}</ul>menuword</nav><div class=note>noteword</div>"
        f"<main><h1>Boiler {number}</h1><p>It burns wood of kind {number}, and needs a long brush.</p><p hidden>ghostword</p>"
        f"</main><footer>{footer}</footer></body></html>",
    )


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        for number in _NUMBERS:
            write_page(site, number)
        yield site


@pytest.mark.matrix
def test_c8_content_when_pages_have_menus_then_these_are_not_found_unless_the_source_file_says_so(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = new_project(tmp_path, site)
    edit(project)
    project.crawl()
    pages = len(project.found("brush"))
    assert pages == len(_NUMBERS)
    assert [project.found(word) for word in ("menuword", "imprint", "noteword", "ghostword")] == [[]] * 4
    snippets = [hit["snippet"] for hit in json.loads(project.command("search", "brush", "--json").stdout)["hits"]]
    assert all("chapter" not in snippet for snippet in snippets)

    site.clear_log()
    edit(project, content={"mode": "all", "drop": [".note"]})
    assert status(project)["force_recrawl"] == "changed: content.drop, content.mode"
    done = apply(project, plan(project))
    assert (done["documents"], done["to_fetch"], site.requested()) == (pages, 0, [])
    assert [len(project.found(word)) for word in ("brush", "menuword", "noteword", "ghostword")] == [pages, pages, 0, 0]

    edit(project, content={"keep": [".note"]})
    assert apply(project, plan(project))["documents"] == pages
    assert [len(project.found(word)) for word in ("brush", "menuword", "noteword")] == [0, 0, pages]

    edit(project)
    assert apply(project, plan(project))["documents"] == pages
    # The whole text says whether a page has changed.
    write_page(site, 2, footer="impressum")
    assert project.crawl().counts["changed"] == 1
    assert project.found("impressum") == []
