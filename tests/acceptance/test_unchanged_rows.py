"""What rows keep of a visit that changed nothing."""

from __future__ import annotations

from pathlib import Path

from tests import kill_site
from tests.crawl_forks import Forks
from tests.final_state import read_state
from tests.kill_site import HOST, page
from tests.site.client import SiteProcess


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
