"""The sites and the projects of tests of several processes of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages
from tests.site.client import SiteProcess

HOSTS: Final = ("one.acme.test", "two.acme.test", "three.acme.test")
GENERATED: Final = "gen.acme.test"
#: Of the clock of a server: see test_c2_delay.py.
TOLERANCE_SECONDS: Final = 0.002


def fill(site: SiteProcess) -> None:
    """Sets the pages of HOSTS."""
    for place, host in enumerate(HOSTS):
        other = HOSTS[(place + 1) % len(HOSTS)]
        texts = {f"page{number}": page(f"{host} text {number} " * 30, f"http://{other}/") for number in range(20)}
        pages(site, host, **texts, same=page("the same on each host " * 20))
        site.set_page(host, "/moved.html", "", status=302, headers={"Location": site.url(other, "/page3.html")})
        site.set_page(host, "/gone.html", "", status=404)


def make(folder: Path, site: SiteProcess, *, processes: int, delay: float = 0.0, **more: object) -> CrawlProject:
    folder.mkdir(parents=True, exist_ok=True)
    starts = [site.url(host, path) for host in HOSTS for path in ("/", "/moved.html", "/gone.html")]
    return new_project(
        folder,
        site,
        start={"urls": [*starts, site.url(GENERATED, "/n/80,links=3/")], "sitemaps": "off"},
        scope={"include_hosts": [f"={host}" for host in (*HOSTS, GENERATED)], "trap_after": 0},
        fetch={"processes": processes, "delay_seconds": delay, "retries": 1},
        **more,
    )
