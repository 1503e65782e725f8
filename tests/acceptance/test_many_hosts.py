"""Hosts that are many, as wildcard DNS gives them, cost nothing once they were visited (X-T6).

Redirects to one that is slow hold up nobody but those that lead there (C2).
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project, run_apart
from tests.acceptance.support_stories import page, source
from tests.crawl_forks import Forks
from tests.site.client import SiteProcess

_HOSTS: Final = 300
#: A crawl of one host opens fewer than half of them.
_OPEN_FILES: Final = 160
_LIMITED: Final = f'ulimit -n {_OPEN_FILES} && exec "$0" -m searchcrawl crawl demo'


def test_crawl_when_hosts_are_many_then_their_connections_do_not_take_all_files(
    site: SiteProcess, tmp_path: Path
) -> None:
    hosts = ["docs.acme.test", *(f"h{number}.acme.test" for number in range(_HOSTS))]
    urls = [site.url(host) for host in hosts]
    project = new_project(tmp_path, site, start={"urls": urls}, scope={"follow_links": False})

    ended = run_apart(project.folder, "/bin/sh", "-c", _LIMITED, sys.executable)

    requested = site.log(robots=False)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(entry["host"] for entry in requested) == sorted(hosts)
    assert sorted(project.codes().values()) == [200] + [404] * _HOSTS


GOOD, LEADING, SLOW = "good.acme.test", "leading.acme.test", "slow.acme.test"
#: More than the window has rows.
LEADING_PAGES: Final = 450
GOOD_PAGES: Final = 5


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    leading = [f"/{number}.html" for number in range(LEADING_PAGES)]
    clean_site.set_page(LEADING, "/", page("leading", *leading))
    for path in leading:
        clean_site.set_page(LEADING, path, "", status=302, headers={"Location": clean_site.url(SLOW, path)})
    clean_site.set_page(SLOW, "/robots.txt", "User-agent: *\nCrawl-delay: 60\n", content_type="text/plain")
    clean_site.set_page(GOOD, "/", page("good", clean_site.url(LEADING, "/")))
    return new_project(
        tmp_path, clean_site, **{**source(clean_site, GOOD), "scope": {"include_hosts": [GOOD, LEADING]}}
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_hosts_when_redirects_lead_to_a_slow_one_then_all_others_are_visited(
    project: CrawlProject, processes: int
) -> None:
    site = project.site
    good = {f"/{number}.html": page(f"good {number}") for number in range(GOOD_PAGES)}
    with Forks(1) as forks:
        running = forks.start(project.folder, "crawl", "demo", "--processes", str(processes))
        try:
            running.until(lambda: len(requested(site, LEADING)) > LEADING_PAGES - 50)
            # They become known while visits wait at the slow host.
            site.set_pages(GOOD, good)
            for path in good:
                assert project.command("submit", site.url(GOOD, path), "--source", "demo").returncode == 0
            running.until(lambda: requested(site, GOOD) >= good.keys())
        finally:
            running.signal(signal.SIGKILL)
            running.wait()

    assert len(requested(site, SLOW) - {"/robots.txt"}) <= 2


def requested(site: SiteProcess, host: str) -> set[str]:
    return {request["path"] for request in site.log() if request["host"] == host}
