"""Pipelines of users' own: what they drop or fail at costs that document, never the run (K4, J2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

HOST: Final = "pipelines.acme.test"
NAMES: Final = ("good", "dropped", "broken", "late")
PIPELINES: Final = """
from scrapy.exceptions import DropItem

class Early:
    def process_item(self, item):
        if item.claim.url.endswith("/dropped.html"):
            raise DropItem("not wanted")
        if item.claim.url.endswith("/broken.html"):
            raise RuntimeError("cannot cope")
        return item

class Late:
    def process_item(self, item):
        if item.claim.url.endswith("/late.html"):
            raise DropItem("after it was handed over")
        return item
"""


@pytest.fixture(scope="module")
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        yield site


def test_crawl_when_a_pipeline_drops_or_fails_then_the_row_says_so_and_the_run_ends(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, HOST, **{name: page(f"page {name}") for name in NAMES})
    project = new_project(tmp_path, site, **source(site, HOST))
    (tmp_path / "mine.py").write_text(PIPELINES, "utf-8")

    ended = project.crawl("-s", 'ITEM_PIPELINES={"mine.Early": 50, "mine.Late": 950}')

    rows = project.rows()
    found = {name: (rows[f"{HOST}/{name}.html"]["code"], rows[f"{HOST}/{name}.html"]["rule"]) for name in NAMES}
    assert ended.exit_code == 0
    assert found == {
        "good": (200, None),
        "dropped": (952, "pipeline: not wanted"),
        "broken": (903, None),
        "late": (200, None),
    }
    assert "cannot cope" in rows[f"{HOST}/broken.html"]["error"]
    assert project.indexed() == [f"{HOST}/", f"{HOST}/good.html", f"{HOST}/late.html"]


SWALLOWING: Final = """
class Pipeline:
    def process_item(self, item):
        if item.claim.url.endswith("/nothing.html"):
            return None
        return {"other": 1} if item.claim.url.endswith("/other.html") else item

class Late:
    def process_item(self, item):
        return None

class Middleware:
    async def process_spider_output(self, response, result):
        async for each in result:
            if not response.url.endswith("/swallowed.html"):
                yield each
"""


@pytest.mark.parametrize(
    ("options", "failed"),
    [
        (("-s", 'ITEM_PIPELINES={"mine.Pipeline": 50}'), {"nothing", "other"}),
        (("-s", 'ITEM_PIPELINES={"mine.Late": 950}'), set()),
        (("-s", 'SPIDER_MIDDLEWARES={"mine.Middleware": 50}'), {"swallowed"}),
    ],
    ids=["pipeline", "late", "middleware"],
)
def test_crawl_when_a_component_swallows_pages_then_their_rows_fail_and_the_run_ends(
    site: SiteProcess, tmp_path: Path, options: tuple[str, ...], failed: set[str]
) -> None:
    names = ("good", "nothing", "other", "swallowed")
    pages(site, "swallowing.acme.test", **{name: page(f"page {name}") for name in names})
    project = new_project(tmp_path, site, **source(site, "swallowing.acme.test"))
    (tmp_path / "mine.py").write_text(SWALLOWING, "utf-8")

    ended = project.crawl(*options)

    rows = project.rows()
    codes = {name: rows[f"swallowing.acme.test/{name}.html"]["code"] for name in names}
    assert ended.exit_code == 0
    assert codes == {name: 903 if name in failed else 200 for name in names}
    assert all(
        "handed no page on" in (row["error"] or "") or "made" in row["error"]
        for row in rows.values()
        if row["code"] == 903
    )


WATCHING: Final = """
import gc

class Pipeline:
    def process_item(self, item):
        assert gc.isenabled()
        return item
"""


def test_crawl_when_pages_come_in_then_garbage_is_collected_which_it_was_not_while_all_was_loaded(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, "collected.acme.test", good=page("page good"))
    project = new_project(tmp_path, site, **source(site, "collected.acme.test"))
    (tmp_path / "mine.py").write_text(WATCHING, "utf-8")

    ended = project.crawl("-s", 'ITEM_PIPELINES={"mine.Pipeline": 50}')

    assert ended.exit_code == 0
    assert project.indexed() == ["collected.acme.test/", "collected.acme.test/good.html"]
