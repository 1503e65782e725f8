"""B7: depth from the start, over all hosts of the source; the smallest one counts, whatever the timing, in quarantine too."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess

HOST, OTHER, AWAY = "depth.acme.test", "depth-too.acme.test", "away.acme.test"
#: More than may be removed without a question.
NAMES: Final = tuple(f"/p{number:02}.html" for number in range(14))


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    site.set_page(HOST, "/chain/0", page("0", "/chain/1"))
    site.set_page(HOST, "/chain/1", page("1", site.url(OTHER, "/chain/2")))
    site.set_page(OTHER, "/chain/2", page("2", "/chain/3"))
    for number in (3, 4):
        site.set_page(OTHER, f"/chain/{number}", page(str(number), f"/chain/{number + 1}"))
    # One page is found at depth 4 first, where it may not be fetched, and then at 2.
    site.set_page(HOST, "/", page("start", "/slow", "/quick/1"))
    site.set_page(HOST, "/slow", page("slow", "/target"))
    site.set_page(HOST, "/quick/1", page("quick 1", "/quick/2"))
    site.set_page(HOST, "/quick/2", page("quick 2", "/quick/3"))
    site.set_page(HOST, "/quick/3", page("quick 3", "/target"))
    site.set_page(HOST, "/target", page("target", "/below"))
    site.set_page(HOST, "/below", page("below", "/lowest"))
    site.set_page(HOST, "/lowest", page("lowest"))
    return site


def depths(site: SiteProcess, folder: Path, start: str, limit: int) -> tuple[dict[str, Any], list[str], list[str]]:
    """Depth and code by short URL, what the index holds, and what was asked for."""
    site.clear_log()
    scope = {"include_hosts": [HOST, OTHER], "depth": limit}
    start_urls = {"urls": [site.url(HOST, start)], "sitemaps": "off"}
    project = new_project(folder, site, start=start_urls, scope=scope, fetch={"retries": 0})
    project.crawl()
    rows = {url.partition("/")[2]: (row["depth"], row["code"]) for url, row in project.rows().items()}
    return rows, sorted(url.partition("/")[2] for url in project.indexed()), sorted(site.requested())


def test_depth_when_a_chain_of_five_is_limited_to_two_then_three_pages_over_both_hosts(
    site: SiteProcess, tmp_path: Path
) -> None:
    rows, indexed, requested = depths(site, tmp_path / "two", "/chain/0", 2)
    unlimited, everything, _ = depths(site, tmp_path / "all", "/chain/0", 0)

    assert requested == sorted([f"{HOST}/chain/0", f"{HOST}/chain/1", f"{OTHER}/chain/2"])
    assert indexed == ["chain/0", "chain/1", "chain/2"]
    assert rows == {"chain/0": (0, 200), "chain/1": (1, 200), "chain/2": (2, 200), "chain/3": (3, 955)}
    assert everything == [f"chain/{number}" for number in range(5)]
    assert unlimited["chain/5"] == (5, 404)


@pytest.mark.few(2)
@pytest.mark.parametrize("delay_seconds", [round(number * 0.07, 2) for number in range(20)])
def test_depth_when_a_page_is_reached_by_two_ways_then_the_shorter_one_counts_whatever_the_timing(
    site: SiteProcess, tmp_path: Path, delay_seconds: float
) -> None:
    site.set_behaviour(HOST, "/slow", delay_seconds=delay_seconds)
    try:
        rows, indexed, _ = depths(site, tmp_path, "/", 3)
    finally:
        site.clear_behaviours()

    assert rows == {
        "": (0, 200),
        "slow": (1, 200),
        "quick/1": (1, 200),
        "quick/2": (2, 200),
        "quick/3": (3, 200),
        "target": (2, 200),
        "below": (3, 200),
        "lowest": (4, 955),
    }
    assert indexed == ["", "below", "quick/1", "quick/2", "quick/3", "slow", "target"]


def test_depth_when_it_becomes_smaller_in_quarantine_then_the_index_has_it_once_the_page_is_back(
    site: SiteProcess, tmp_path: Path
) -> None:
    nearer, bodies = NAMES[0], {name: page(f"text of {name}") for name in NAMES}
    site.set_pages(AWAY, {"/": page("start", "/hub.html"), "/hub.html": page("hub", *NAMES), **bodies})
    project = new_project(tmp_path, site, **source(site, AWAY))
    first = run(project)
    for name in NAMES:
        site.delete_page(AWAY, name)
    run(project)
    site.set_page(AWAY, "/", page("start", "/hub.html", nearer))
    held = run(project)
    site.set_pages(AWAY, bodies)
    back = run(project)

    found = {hit.fields["url"].rpartition("/")[2]: hit.fields["depth"] for hit in project.hits("*")}
    assert held.ended.exit_code == 9
    assert {name: found[name[1:]] for name in NAMES} == {name: 1 if name == nearer else 2 for name in NAMES}
    # Of these only what differs is sent.
    assert {name for name in NAMES if first.versions[AWAY + name] != back.versions[AWAY + name]} == {nearer}
