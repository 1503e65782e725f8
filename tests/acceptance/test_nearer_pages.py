"""Depths that shrink while a crawl goes on, and what rows keep of a visit that changed nothing."""

from __future__ import annotations

from pathlib import Path

from tests import kill_site
from tests.crawl_forks import Forks
from tests.final_state import read_state
from tests.kill_site import HOST, page
from tests.site.client import SiteProcess


def test_depth_when_a_page_comes_nearer_while_it_is_fetched_then_its_links_do_too(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    pages = {"/": ("/1", "/slow"), "/1": ("/2",), "/2": ("/slower",), "/slow": ("/slower",), "/slower": ("/last",)}
    for path, links in pages.items():
        site.set_page(HOST, path, page(path, *links))
    site.set_page(HOST, "/last", page("last"))
    # Asked for as a page of depth 3; answered when it is known to be one of depth 2.
    site.set_behaviour(HOST, "/slow", delay_seconds=1)
    site.set_behaviour(HOST, "/slower", delay_seconds=2.5)
    project = kill_site.project(tmp_path / "nearer", site, "nearer", start={"urls": [site.url(HOST)]})

    code = forks.run(project, "crawl", "nearer")

    state = read_state(project, "nearer")
    depths = {url.removeprefix(site.url(HOST)): row["depth"] for url, row in state.rows.items()}
    assert (code, depths) == (0, {"": 0, "1": 1, "slow": 1, "2": 2, "slower": 2, "last": 3})
    assert state.index[site.url(HOST, "/last")]["depth"] == 3


def test_rule_when_a_page_that_may_not_be_indexed_is_as_before_then_it_stays(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    site.set_page(HOST, "/hidden/", page("Hidden", head='<meta name="robots" content="noindex">'))
    project = kill_site.project(tmp_path / "rule", site, "rule", start={"urls": [site.url(HOST, "/hidden/")]})
    forks.run(project, "crawl", "rule")

    before = read_state(project, "rule").rows
    forks.run(project, "crawl", "rule")

    assert read_state(project, "rule").rows == before
    row = before[site.url(HOST, "/hidden/")]
    assert (row["code"], row["depth"], row["rule"]) == (952, 0, "keep.meta_robots: meta robots noindex")
