"""Session and tracking parameters are no part of a URL, wherever one is found (X-T2)."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import list_in_sitemap, page
from tests.site.client import SiteProcess

HOST = "sessions.acme.test"


def fill(site: SiteProcess) -> None:
    """Pages that are found with sessions in each way there is; each answers with and without."""
    counted = ";jsessionid=1A2B!3"
    links = (
        *(f"/linked?PHPSESSID={number}&b=2&a=1" for number in range(30)),
        *(f"/servlet{counted}{number}?x=1" for number in range(10)),
        "/plain?utm_source=a&utm_medium=b",
        "/kept?q=jsessionid&xphpsessid=1",
        "/to-session",
        "/to-itself",
        "/moved-here",
        "/refreshing",
        "/naming",
    )
    site.set_page(HOST, "/", page("start", *links))
    for path in ("/linked", "/plain", "/kept", "/target", "/refreshed", "/canonical", "/listed", "/listed-first"):
        site.set_page(HOST, path, page(path))
    site.set_page(HOST, "/servlet", page("servlet"))
    # A session goes with a page for the time of a visit: temporary redirects are followed as they are written.
    site.set_page(HOST, "/to-session", "", status=302, headers={"Location": f"/given{counted}"})
    site.set_page(HOST, f"/given{counted}", page("given with a session"))
    # Moved for good, but only into a session.
    site.set_page(HOST, "/to-itself", "", status=301, headers={"Location": f"/to-itself{counted}"})
    site.set_page(HOST, f"/to-itself{counted}", page("itself"))
    site.set_page(HOST, "/moved-here", "", status=301, headers={"Location": "/target?CFID=1&CFTOKEN=2"})
    refresh = '<meta http-equiv="refresh" content="0; url=/refreshed?ASPSESSIONIDABC=1">'
    site.set_page(HOST, "/refreshing", page("refreshing", head=refresh))
    site.set_page(HOST, "/naming", page("naming", head='<link rel="canonical" href="/canonical?gclid=1&fbclid=2">'))
    list_in_sitemap(site, HOST, *(f"/listed?jsessionid={number}" for number in range(9)))


def test_sessions_when_links_carry_them_then_each_page_is_asked_for_once_and_without(
    site: SiteProcess, tmp_path: Path
) -> None:
    fill(site)
    (tmp_path / "more.txt").write_text(site.url(HOST, "/listed-first;jsessionid=9") + "\n", "utf-8")
    start = {"urls": [site.url(HOST, "/?utm_campaign=start")], "files": ["more.txt"]}
    project = new_project(tmp_path, site, start=start, scope={"include_hosts": [HOST]}, fetch={"retries": 0})
    ended = project.crawl()
    requested = sorted(url.removeprefix(HOST) for url in site.requested())
    again = project.crawl()

    followed = {"/given;jsessionid=1A2B!3", "/to-itself;jsessionid=1A2B!3"}
    identities = {
        "/", "/linked?b=2&a=1", "/servlet?x=1", "/plain", "/kept?q=jsessionid&xphpsessid=1", "/to-session", "/to-itself",
        "/moved-here", "/target", "/refreshing", "/refreshed", "/naming", "/canonical", "/listed", "/listed-first",
    }  # fmt: skip
    codes = {url.removeprefix(HOST): code for url, code in project.codes().items()}
    assert ended.exit_code == again.exit_code == 0
    assert set(requested) == identities | followed
    # Each once, but for the page that is asked for with and without its session.
    assert len(requested) == len(identities) + len(followed)
    assert codes.keys() == identities
    leading = {"/moved-here": 954, "/refreshing": 953, "/naming": 964}
    assert {path: code for path, code in codes.items() if code != 200} == leading
    assert {url.removeprefix(HOST) for url in project.indexed()} == identities - leading.keys()
    counts = again.counts
    assert (counts["indexed"], counts["new"], counts["discovered"] - counts["fetched"]) == (0, 0, 0)
