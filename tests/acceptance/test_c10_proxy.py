"""C10: a crawl through a proxy asks nothing past it: pages, robots.txt, sitemaps; and the delay of the hour (C2)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Final

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages
from tests.proxy_server import ProxyServer
from tests.site.client import SiteProcess, source_toml

HOST: Final = "proxied.acme.test"
DELAY_SECONDS: Final = 0.2


def test_c10_c2_crawl_when_it_has_a_proxy_and_windows_then_everything_goes_through_it_at_the_pace_of_the_hour(
    tmp_path: Path,
) -> None:
    with SiteProcess() as site, ProxyServer({HOST: "127.0.0.1"}) as proxy:
        pages(site, HOST, one=page("one"), two=page("two"))
        text = source_toml(
            site,
            start={"urls": [site.url(HOST)]},
            scope={"include_hosts": [HOST]},
            fetch={
                "proxy": {"env": "OUR_PROXY"},
                "windows": [{"from": "00:00", "to": "00:00", "delay_seconds": DELAY_SECONDS}],
                "timezone": "Asia/Tokyo",
                "resolve": None,
                "private_networks": None,
            },
        )
        project = new_project(tmp_path, site)
        (project.folder / "sources" / "demo.toml").write_text(text, "utf-8")

        ended = project.crawl(OUR_PROXY=proxy.url)

        log, asked = site.log(), [line.split(" ")[1] for line in proxy.asked]

    times = [entry["time"] for entry in log]
    assert (ended.exit_code, ended.errors) == (0, "")
    assert sorted(asked) == sorted(site.url(HOST, entry["path"]) for entry in log)
    assert {entry["path"] for entry in log} >= {"/robots.txt", "/sitemap.xml", "/", "/one.html", "/two.html"}
    assert min(after - before for before, after in pairwise(times)) >= DELAY_SECONDS - 0.05
    assert project.indexed() == [f"{HOST}/", f"{HOST}/one.html", f"{HOST}/two.html"]
    assert "which resolves names" in project.log()
