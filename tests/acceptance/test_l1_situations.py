"""L1: each sentence of ``explain`` against what was made, and what it says would admit a URL against what that does."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any, Final

import pytest

from tests.acceptance.support_explain import HOST, INDEXED, Asking, Told, ask, check, take_advice
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import list_in_sitemap, page
from tests.site.client import SiteProcess
from tests.site.pdf import make_pdf

WORDS: Final = "barometer " * 30
NEVER: Final = "not in the index: never seen: "


#: By path; ``{www}`` is the origin of the site. Those of which it does not say how they were found are on the start page.
SITUATIONS: Final = {
    "/good.html": Told(*INDEXED),
    "/old.html": Told(
        "not in the index: 954, it moved for good to another URL: {www}/new.html", "moved for good to {www}/new.html"
    ),
    "/new.html": Told(*INDEXED, found="by the redirect of {www}/old.html,"),
    "/refresh.html": Told(
        "not in the index: 953, it sends its readers to another URL: {www}/fresh.html", "meta refresh to {www}/fresh.html"
    ),
    "/fresh.html": Told(*INDEXED, found="by the meta refresh of {www}/refresh.html,"),
    "/print.html": Told(
        "not in the index: 964, it names another URL as the canonical one: {www}/canon.html",
        "its canonical URL is {www}/canon.html",
    ),
    "/canon.html": Told(*INDEXED, found="as the canonical URL of {www}/print.html,"),
    "/t": Told("not in the index: 909, a copy of another page: {www}/target-of-t.html", "a copy of {www}/target-of-t.html"),
    "/target-of-t.html": Told(*INDEXED),
    "/hop.html": Told(*INDEXED),
    "/only-by-hop.html": Told(
        "not in the index by itself: its page is in the index as {www}/hop.html, which redirects to it",
        "{www}/hop.html redirects to it",
        found="no link to it was followed",
    ),
    "/listed.html": Told(*INDEXED, found="in the sitemap {www}/sitemap.xml"),
    "/missing.html": Told("not in the index: 404 Not Found", "404 Not Found"),
    "/empty.html": Told("not in the index: 911, an empty document", "empty document"),
    "/tmp/x.html": Told(
        "not in the index: 951, robots.txt forbids it", "Disallow: /tmp/", "robots.txt", edit=("set", "robots.obey", False)
    ),
    "/private/x.html": Told(
        "not in the index: 955, outside the boundary",
        "*/private/*",
        "scope.exclude_urls",
        edit=("remove", "scope.exclude_urls", "*/private/*"),
    ),
    "/deep-2.html": Told(
        "not in the index: 955, outside the boundary", "depth = 1", "scope.depth", ("set", "scope.depth", 2),
        found="on {www}/deep-1.html,",
    ),
    "/a/b/a/b/a/b/a/x.html": Told(
        "not in the index: 961, beyond a limit that ends traps",
        "max_repeated_segments = 3",
        "scope.max_repeated_segments",
        edit=("set", "scope.max_repeated_segments", 4),
    ),
    "/sheet.pdf": Told(
        "not in the index: 952, fetched, and not to be indexed",
        "application/pdf",
        "keep.exclude_mime_types",
        edit=("remove", "keep.exclude_mime_types", "application/pdf"),
    ),
    "/short.html": Told(
        "not in the index: 952, fetched, and not to be indexed", "min_bytes = 200", "keep.min_bytes"
    ),
    "/noindex.html": Told(
        "not in the index: 952, fetched, and not to be indexed",
        "meta robots noindex",
        "keep.meta_robots",
        edit=("set", "keep.meta_robots", False),
    ),
    "/header.html": Told(
        "not in the index: 952, fetched, and not to be indexed",
        "X-Robots-Tag noindex",
        "keep.meta_robots",
        edit=("set", "keep.meta_robots", False),
    ),
    "/expired.html": Told(
        "not in the index: 952, fetched, and not to be indexed", "X-Robots-Tag noindex", "keep.meta_robots"
    ),
    "/huge.html": Told(
        "not in the index: 960, it is larger than fetch.max_bytes",
        "max_bytes = 50000",
        "fetch.max_bytes",
        edit=("raise", "fetch.max_bytes", 50000),
    ),
    "/lonely.html": Told(
        NEVER + "no page that was read has a link to it that may be followed, and no sitemap that was read lists it",
        "no link to it was followed",
        found="no link to it was followed",
    ),
    "/behind-nofollow.html": Told(
        NEVER + "no page that was read has a link to it that may be followed (rel=nofollow on {www}/good.html)",
        "rel=nofollow on {www}/good.html",
        found="links to it may not be followed: rel=nofollow on {www}/good.html",
    ),
    "/behind-meta.html": Told(
        NEVER + "no page that was read has a link to it that may be followed (meta robots nofollow on {www}/meta.html)",
        "meta robots nofollow on {www}/meta.html",
        "keep.meta_robots",
        ("set", "keep.meta_robots", False),
        found="links to it may not be followed: keep.meta_robots: meta robots nofollow on {www}/meta.html",
    ),
    "/behind-header.html": Told(
        NEVER + "no page that was read has a link to it that may be followed (X-Robots-Tag nofollow on {www}/tag.html)",
        "X-Robots-Tag nofollow on {www}/tag.html",
        "keep.meta_robots",
        ("set", "keep.meta_robots", False),
        found="links to it may not be followed: keep.meta_robots: X-Robots-Tag nofollow on {www}/tag.html",
    ),
    "/meta.html": Told(*INDEXED),
    "/tag.html": Told(*INDEXED),
}  # fmt: skip
#: Nothing in the project admits these: the site decides.
OF_THE_SITE: Final = {
    path for path, told in SITUATIONS.items() if told.edit is None and path not in {"/short.html", "/expired.html"}
}


def build(site: SiteProcess) -> None:
    linked = [path for path, told in SITUATIONS.items() if not told.found]
    bodies = {path: page(path, text=path + WORDS) for path in SITUATIONS}
    bodies["/"] = page("start", *linked, "/deep-1.html", text=WORDS)
    bodies["/deep-1.html"] = page("deep", "/deep-2.html", text="deep" + WORDS)
    bodies["/refresh.html"] = page("r", head='<meta http-equiv="refresh" content="0; url=/fresh.html">')
    bodies["/print.html"] = page("print", text="print" + WORDS, head='<link rel="canonical" href="/canon.html">')
    bodies["/noindex.html"] = page("no", text="no" + WORDS, head='<meta name="robots" content="noindex">')
    nofollow = '<a rel="nofollow" href="/behind-nofollow.html">x</a></body>'
    bodies["/good.html"] = bodies["/good.html"].replace("</body>", nofollow)
    nofollow = '<meta name="robots" content="nofollow">'
    bodies["/meta.html"] = page("meta", "/behind-meta.html", text="meta" + WORDS, head=nofollow)
    bodies["/tag.html"] = page("tag", "/behind-header.html", text="tag" + WORDS)
    bodies["/short.html"] = page("short")
    bodies["/huge.html"] = page("huge", text=WORDS * 200)
    bodies["/empty.html"] = "<html><body>" + " " * 300 + "</body></html>"
    site.set_pages(HOST, bodies)
    site.set_page(HOST, "/header.html", headers={"X-Robots-Tag": "noindex"})
    site.set_page(HOST, "/tag.html", headers={"X-Robots-Tag": "nofollow"})
    site.set_page(HOST, "/expired.html", headers={"X-Robots-Tag": "unavailable_after: 2020-01-01"})
    site.delete_page(HOST, "/missing.html")
    site.set_page(HOST, "/old.html", "", status=301, headers={"Location": "/new.html"})
    site.set_page(HOST, "/t", "", status=302, headers={"Location": "/target-of-t.html"})
    site.set_page(HOST, "/hop.html", "", status=302, headers={"Location": "/only-by-hop.html?jsessionid=1"})
    site.set_page(HOST, "/only-by-hop.html?jsessionid=1", bodies["/only-by-hop.html"])
    site.set_page(HOST, "/sheet.pdf", make_pdf("a sheet"), content_type="application/pdf")
    site.set_page(HOST, "/robots.txt", "User-agent: *\nDisallow: /tmp/\n", content_type="text/plain")
    list_in_sitemap(site, HOST, "/listed.html")


@pytest.fixture(scope="module")
def project(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    build(site)
    made = new_project(
        tmp_path_factory.mktemp("situations"),
        site,
        start={"urls": [site.url(HOST)]},
        scope={"include_hosts": [HOST], "exclude_urls": ["*/private/*"], "depth": 1},
        keep={"exclude_mime_types": ["application/pdf"], "min_bytes": 200},
        fetch={"retries": 0, "max_bytes": 50_000},
    )
    assert made.crawl().exit_code == 0
    return made


def test_explain_when_a_situation_was_made_then_its_sentences_are_true_and_its_advice_admits_the_url(
    project: CrawlProject,
) -> None:
    www = project.site.url(HOST, "")
    situations = {path: told._replace(found=told.found or "on {www}/,") for path, told in SITUATIONS.items()}
    told = check(project.folder, situations, www=www)
    assert [path for path in OF_THE_SITE if "proposal" in told[path]["decided_by"]] == []
    take_advice(project.folder, [found["decided_by"] for path, found in told.items() if path not in OF_THE_SITE])
    assert project.crawl().exit_code == 0
    after = ask(project.folder, *(www + path for path in SITUATIONS if path not in OF_THE_SITE))
    assert [found["url"] for found in after if not found["in_index"]] == []


@pytest.mark.parametrize(
    ("table", "key", "value", "verdict"),
    [
        ("scope", "follow_links", False, NEVER + "links are not followed, and no sitemap that was read lists it"),
        (
            "start",
            "sitemaps",
            "off",
            NEVER + "no page that was read has a link to it that may be followed, and no sitemap",
        ),
        ("", "mode", "index_only", NEVER + "no URL is new with mode: index_only"),
    ],
)
def test_explain_when_a_key_keeps_urls_from_being_found_then_it_is_named(
    project: CrawlProject, table: str, key: str, value: Any, verdict: str
) -> None:
    url = project.site.url(HOST, "/nowhere.html")
    with closing(Asking(project.folder)) as asking:
        tables: dict[str, Any] = json.loads(json.dumps(asking.written))
        (tables.setdefault(table, {}) if table else tables)[key] = value
        [found] = asking.edited(tables, [url]) or [{}]
    assert found["verdict"].startswith(verdict)
    named = [reason.get("proposal", {}).get("key") for reason in (found["decided_by"], *found["also"])]
    assert (f"{table}.{key}" if table else key) in named
