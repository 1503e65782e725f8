"""``forget`` while a source is crawled: the crawl asks for it no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages, source
from tests.acceptance.test_forget import HOST, NAMES, left, url_of
from tests.crawl_forks import Forks, started
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended


@pytest.mark.parametrize("processes", [1, 3])
def test_forget_when_a_crawl_is_under_way_then_it_is_asked_for_no_more(tmp_path: Path, processes: int) -> None:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"text of {name}") for name in NAMES})
        for name in ("alpha", "beta"):
            site.set_page(HOST, f"/to-{name}.html", "", status=302, headers={"Location": f"/{name}.html"})
        fetch = {"processes": processes, "delay_seconds": 0.5, "host_concurrency": 1}
        scope = {"include_hosts": [HOST], "exclude_urls": ["*/alpha.html"]}
        starts = [site.url(HOST, path) for path in ("/", "/gamma.html", "/to-beta.html")]
        project = new_project(tmp_path, site, start={"urls": starts, "sitemaps": "off"}, scope=scope, fetch=fetch)
        with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
            running.until(lambda: bool(site.log(host=HOST, robots=False)))
            busy = project.command("forget", url_of(project, "page11"), url_of(project, "beta"))
            running.wait()
        asked = {each["path"] for each in site.log(host=HOST)}
        rules = {url.rpartition("/")[2]: row["rule"] for url, row in project.rows().items()}

    # 0: no row of the source names them yet.
    assert busy.returncode in {0, 5}, busy.stderr
    assert "/page10.html" in asked
    assert not asked & {"/page11.html", "/beta.html"}
    assert rules["page11.html"].startswith("forget: ")
    assert left(project) == set(NAMES) - {"alpha", "beta", "page11"}


def test_forget_when_the_list_cannot_be_read_during_a_crawl_then_it_says_so_once_and_goes_on(tmp_path: Path) -> None:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"text of {name}") for name in NAMES})
        project = new_project(
            tmp_path, site, **{**source(site, HOST), "fetch": {"delay_seconds": 0.3, "host_concurrency": 1}}
        )
        with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
            running.until(lambda: bool(site.log(host=HOST, robots=False)))
            (project.folder / "forgotten.txt").write_text("pattern: re:(\n", "utf-8")
            code = running.wait()
        (project.folder / "forgotten.txt").unlink()

    assert code == 0
    assert left(project) == set(NAMES)
    assert project.log().count("what it said before holds") == 1
