"""What one host of a source may do with the sitemaps of another: name them, and no more (C5, L5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess
from tests.stored_rows import query

GOOD: Final = "good.acme.test"
EVIL: Final = "evil.acme.test"
DATE: Final = "2001-01-01"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        for host in (EVIL, GOOD):
            site.set_page(host, "/", page(f"start of {host}"))
            site.set_page(host, "/dated.html", page(f"dated page of {host}"))
        yield new_project(tmp_path, site, **source(site, [EVIL, GOOD]))


def put(site: SiteProcess, host: str, path: str, *lines: str) -> None:
    kind = "text/plain" if path == "/robots.txt" else "application/xml"
    site.set_page(host, path, "\n".join(lines), content_type=kind)


def index_of(*urls: str) -> str:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>"


def urlset(*urls: str) -> str:
    entries = (f"<url><loc>{url}</loc><lastmod>{DATE}</lastmod></url>" for url in urls)
    return f"<urlset>{''.join(entries)}</urlset>"


def dated(project: CrawlProject) -> set[str]:
    """The hosts whose page has the date of a sitemap."""
    rows = query(project.folder, "SELECT url FROM urls WHERE lastmod_ms IS NOT NULL AND url LIKE '%/dated.html'")
    return {host for host in (EVIL, GOOD) for (url,) in rows if host in url}


def test_sitemaps_when_the_robots_txt_of_another_host_names_them_then_their_own_is_asked(project: CrawlProject) -> None:
    site = project.site
    put(site, GOOD, "/robots.txt", "User-agent: *", "Disallow: /private/")
    named = [site.url(GOOD, "/private/map.xml"), site.url(GOOD, "/open.xml"), site.url(EVIL, "/away.xml")]
    put(site, EVIL, "/robots.txt", *(f"Sitemap: {url}" for url in named))
    site.set_behaviour(EVIL, "/away.xml", status=302, headers={"Location": site.url(GOOD, "/private/away.xml")})
    put(site, GOOD, "/open.xml", urlset(*(site.url(host, "/dated.html") for host in (EVIL, GOOD))))

    done = run(project)

    asked = [f"{entry['host']}{entry['path']}" for entry in done.log]
    assert not [url for url in asked if url.startswith(f"{GOOD}/private")]
    assert {f"{GOOD}/open.xml", f"{EVIL}/away.xml", f"{GOOD}/dated.html"} <= set(asked)
    # It may vouch for its own pages alone.
    assert dated(project) == {EVIL}


def test_sitemap_when_a_long_chain_of_another_host_leads_to_it_then_its_own_host_has_it_read(
    project: CrawlProject,
) -> None:
    site = project.site
    chain = [site.url(EVIL, f"/chain{number}.xml") for number in range(3)]
    put(site, EVIL, "/robots.txt", f"Sitemap: {chain[0]}", f"Sitemap: {site.url(GOOD, '/early.xml')}")
    for number, following in enumerate([*chain[1:], site.url(GOOD, "/sitemap.xml")]):
        put(site, EVIL, f"/chain{number}.xml", index_of(following))
    # What is named in time, and below an index that the chain reaches at the deepest level.
    put(site, GOOD, "/robots.txt", f"Sitemap: {site.url(GOOD, '/sitemap.xml')}")
    site.set_behaviour(GOOD, "/robots.txt", delay_seconds=1.5)
    put(site, GOOD, "/sitemap.xml", index_of(site.url(GOOD, "/early.xml")))
    put(site, GOOD, "/early.xml", urlset(site.url(GOOD, "/dated.html")))

    done = run(project)

    assert f"{GOOD}/dated.html" in done.requested
    assert dated(project) == {GOOD}


def test_sitemap_when_a_foreign_index_names_it_no_more_then_what_it_says_stays(project: CrawlProject) -> None:
    site = project.site
    put(site, GOOD, "/sitemap.xml", urlset(site.url(GOOD, "/dated.html")))
    index = site.url(EVIL, "/sitemap.xml")
    site.set_behaviour(EVIL, "/sitemap.xml", delay_seconds=1)
    found = []
    for named in (site.url(GOOD, "/sitemap.xml"), index):
        put(site, EVIL, "/sitemap.xml", index_of(named))
        run(project)
        found.append(dated(project))

    assert found == [{GOOD}, {GOOD}]
