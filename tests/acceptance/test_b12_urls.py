"""B12: malformed and overlong URLs are rejected, with their code in the log and, where they are URLs, in the table."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page
from tests.site.client import SiteProcess

HOST = "urls.acme.test"
LONGEST, OVERLONG, START = f"/{'a' * 200}", f"/{'b' * 400}", f"/{'s' * 400}"
MALFORMED = ["http://[bad/", "http://a b/", "http://1.2.3.4.5.6.7.8.9/", "http://x:99999/", f"http://{'e' * 70_000}/"]
OTHER_SCHEMES = ["mailto:a@b.test", "javascript:void(0)", "file:///etc/passwd", "ftp://a.test/x"]


def test_urls_when_malformed_or_overlong_then_rejected_with_1004_and_everything_else_is_crawled(tmp_path: Path) -> None:
    with SiteProcess() as site:
        site.set_page(HOST, "/", page("start", "/good.html", LONGEST, OVERLONG, *MALFORMED, *OTHER_SCHEMES, "/a\\b"))
        site.set_page(HOST, "/moved.html", "", status=301, headers={"Location": OVERLONG})
        site.set_page(HOST, "/good.html", page("good", "/moved.html", OVERLONG))
        site.set_page(HOST, LONGEST, page("longest"))
        start = {"urls": [site.url(HOST), site.url(HOST, START)], "sitemaps": "off"}
        scope = {"include_hosts": [HOST], "max_url_length": 256}
        project = new_project(tmp_path, site, start=start, scope=scope, fetch={"retries": 0})
        ended = project.crawl()
        requested = {path.removeprefix(HOST) for path in site.requested()}

    rows = {url.removeprefix(HOST): (row["code"], row["rule"]) for url, row in project.rows().items()}
    refused = (1004, "scope.max_url_length: max_url_length = 256")
    lines = project.log().splitlines()
    named = next(line for line in lines if "1004: links of " in line)
    assert ended.exit_code == 0
    assert requested == {"/", "/good.html", "/moved.html", LONGEST, "/a/b"}
    assert {path: said for path, said in rows.items() if said[0] == 1004} == {OVERLONG: refused, START: refused}
    assert rows["/moved.html"] == (954, refused[1])
    assert sorted(project.indexed()) == [f"{HOST}/", f"{HOST}{LONGEST}", f"{HOST}/good.html"]
    assert all(repr(text[:200]) in named for text in MALFORMED)
    assert not any(text in named for text in OTHER_SCHEMES)
    assert sum("1004: refused, " in line and "bbbb" in line for line in lines) == 1
    assert sum("start URL outside the boundary" in line for line in lines) == 1
