"""The main content of pages is indexed, and what the source file says of it holds from the cache (C8, D9)."""

from __future__ import annotations

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


def test_c8_content_when_pages_have_menus_then_these_are_not_found_unless_the_source_file_says_so(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = new_project(tmp_path, site)
    edit(project)
    project.crawl()
    pages = len(project.found("brush"))
    assert pages == len(_NUMBERS)
    assert [project.found(word) for word in ("menuword", "imprint", "noteword", "ghostword")] == [[]] * 4
    snippets = [hit["snippet"] for hit in project.ask("search", "brush")["hits"]]
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


def test_c8_explain_when_other_text_is_taken_than_the_markup_says_then_says_so_also_from_the_cache(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = new_project(tmp_path, site)
    words = "<p>It burns wood of every kind, and needs a long brush." * 9
    menu = "<a href=/>Page of boilers</a> " * 99
    for number, body in (1, f"<nav>{menu}</nav><p>x"), (2, f"<main>Loading</main><div class=wrap>{words}</div>"):
        head = f"<html><head><title>Page {number}</title></head>"
        site.set_page(HOST, f"/{number}.html", f"<!doctype html>{head}<body>{body}</body></html>")
    edit(project)
    project.crawl()
    before = [project.step("content", site.url(HOST, f"/{number}.html")) for number in (1, 2, 3)]

    edit(project, content={"language": "de"})
    assert apply(project, plan(project))["to_fetch"] == 0

    assert "; taken uncut, because 1 of 1584 characters would be left without what looks like navigation" in before[0]
    assert "; what it declares its main content is not taken for it, because that has 7 of 483 characters" in before[1]
    assert "because" not in before[2]
    for number, text in enumerate(before[:2], 1):
        assert project.step("content", site.url(HOST, f"/{number}.html")).endswith(
            f'language "de" (content.language); {text.rpartition("; ")[2]}'
        )
    live = project.ask("explain", site.url(HOST, "/2.html"), "--live")["steps"][-1]
    assert "has 7 of 483 characters" in live["detail"]
