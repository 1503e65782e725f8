"""An edited source file counts for each page, also for one that could not be visited in the run after the edit (D9, B6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess

pytestmark = pytest.mark.matrix

HOST: Final = "edited.acme.test"
NAMES: Final = ("one", "two", "three")
ONE: Final = f"{HOST}/one.html"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"page {name}", text=f"Text of {name}. " * (9 * len(name))) for name in NAMES})
        yield new_project(tmp_path, site, **source(site, HOST))


@pytest.mark.parametrize(
    "keep", [{"exclude_urls": ["*/one.html"]}, {"min_bytes": 600}, {"exclude_names": ["one.html"]}], ids=str
)
@pytest.mark.parametrize("fault", ["down", "503", "reset", "limit"])
def test_page_when_it_failed_in_the_run_after_an_edit_then_the_edit_counts_at_its_next_visit(
    project: CrawlProject, keep: dict[str, Any], fault: str
) -> None:
    site = project.site
    run(project)
    project.edit(**source(site, HOST), keep=keep)
    if fault == "down":
        site.down()
    elif fault == "503":
        site.set_behaviour(HOST, path="/one.html", status=503)
    elif fault == "reset":
        site.set_behaviour(HOST, path="/one.html", mode="reset")
    options = ("-a", "limit=1") if fault == "limit" else ()
    failed = run(project, *options)
    site.up()
    site.clear_behaviours()
    after = run(project)

    assert ONE in failed.versions
    assert (after.codes[ONE], ONE in after.versions) == (952, False)
