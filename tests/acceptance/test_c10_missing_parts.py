"""Pages whose scripts or data fail for a while: none loses its document, and none waits for what it does not need (C10, D9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support_rendering import HOST, SHELL, Rendering, app, plain, rendering
from tests.site.client import SiteProcess

HERE = "/app.js"
ELSEWHERE = "http://scripts.test/app.js"


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as running:
        yield running


def _lacks(part: str, html: str = SHELL) -> dict[str, Any]:
    """A page as it was sent, because a part of it failed."""
    return {"html": html, "body": html, "parts": [[part, "script", 503]]}


def _visit(here: Rendering, page: Any) -> dict[str, Any]:
    """Crawls with this as what the browser shows; the row of the page then."""
    here.pages(**{"begin.html": page})
    here.run("crawl", "demo")
    (row,) = here.project.rows().values()
    return row


@pytest.mark.few(2)
@pytest.mark.parametrize("part", [HERE, ELSEWHERE])
@pytest.mark.parametrize("etag", ["", '"1"'])
def test_c10_document_when_a_part_of_its_page_fails_then_it_stays_and_the_next_run_tries_again(
    tmp_path: Path, site: SiteProcess, part: str, etag: str
) -> None:
    site.set_page(HOST, "/begin.html", SHELL, etag=etag)
    here = rendering(tmp_path, site, fetch={"retries": 1})
    assert _visit(here, app("begin"))["code"] == 200

    row = _visit(here, _lacks(part))

    assert (row["code"], len(here.asked())) == (958, 2)
    assert "app.js failed with 503, and the page has less text than it may have" in row["error"]
    assert len(here.project.found("ridge")) == 1
    assert _visit(here, app("begin"))["code"] == 200


@pytest.mark.parametrize(("part", "code"), [(HERE, 958), (ELSEWHERE, 200)])
def test_c10_first_visit_when_a_part_fails_then_one_of_another_site_costs_no_page(
    tmp_path: Path, site: SiteProcess, part: str, code: int
) -> None:
    site.set_page(HOST, "/begin.html", SHELL)

    assert _visit(rendering(tmp_path, site, fetch={"retries": 0}), _lacks(part))["code"] == code


@pytest.mark.parametrize("mode", ["auto", "always"])
def test_c10_page_when_it_has_its_text_without_the_part_that_fails_then_it_is_a_page_as_any(
    tmp_path: Path, site: SiteProcess, mode: str
) -> None:
    html = plain("begin", script=f"<script src={HERE}></script>")
    site.set_page(HOST, "/begin.html", html)
    here = rendering(tmp_path, site, render={"mode": mode})

    assert _visit(here, _lacks(HERE, html))["code"] == 200
    site.set_page(HOST, "/begin.html", html.replace("ridge", "bridge"))
    assert _visit(here, _lacks(HERE, html.replace("ridge", "bridge")))["code"] == 200
    assert len(here.project.found("bridge")) == 1


def test_c10_page_when_more_than_its_frame_is_there_without_the_part_that_fails_then_that_is_taken(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/begin.html", SHELL)
    here = rendering(tmp_path, site)

    assert _visit(here, {**_lacks("/statistics"), "html": app("begin")})["code"] == 200
