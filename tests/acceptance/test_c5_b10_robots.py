"""robots.txt, meta robots and X-Robots-Tag: what was never requested, what is not indexed (C5, B10, L5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page
from tests.site.client import SiteProcess
from tests.site.pdf import make_pdf
from tests.stored_rows import execute, query

MANUAL: Final = "manual.acme.test"
META: Final = "meta.acme.test"
#: The example of the manual, and a group for a crawler whose name has a blank.
ROBOTS: Final = """# robots.txt
User-agent: *
Disallow: /cyberworld/map/
Disallow: /tmp/
Disallow: /foo.html
Disallow: /deep/
Allow: /deep/open/

User-agent: Ultra Search
Disallow: /reports/
"""
FORBIDDEN: Final = {
    "/cyberworld/map/": "Disallow: /cyberworld/map/",
    "/cyberworld/map/north.html": "Disallow: /cyberworld/map/",
    "/tmp/": "Disallow: /tmp/",
    "/foo.html": "Disallow: /foo.html",
    "/deep/x.html": "Disallow: /deep/",
}
OPEN: Final = ("/", "/cyberworld/", "/deep/open/x.html", "/reports/1.html")
RULES: Final = "User-agent: *\nDisallow: /x.html\n"
#: Hosts by what /robots.txt answers, and the code and rule of /x.html there.
FAILING: Final[dict[str, tuple[dict[str, Any], int, str | None]]] = {
    "missing": ({"status": 404, "body": RULES}, 200, None),
    "forbidden": ({"status": 403, "body": RULES}, 200, None),
    "broken": ({"status": 503, "body": RULES}, 951, "robots.unavailable"),
    "busy": ({"status": 429, "body": RULES}, 951, "robots.unavailable"),
    "long": ({"body": RULES + "# filler\n" * 60_000 + "Disallow: /\n"}, 951, "Disallow: /x.html"),
    "moved": ({"status": 301, "headers": {"Location": "/robots-1"}}, 951, "Disallow: /x.html"),
    "reset": ({"mode": "reset"}, 905, None),
}
#: Pages by what they say: meta elements, a header, and the codes of the page and of the one it links to.
SAYING: Final[dict[str, tuple[str, str, int, int | None]]] = {
    "noindex": ("robots: noindex", "", 952, 200),
    "both": ("ROBOTS: NOINDEX, NOFOLLOW", "", 952, None),
    "none": ("robots: none", "", 952, None),
    "nofollow": ("robots: nofollow", "", 200, None),
    "ours": ("searchcrawl: noindex", "", 952, 200),
    "others": ("otherbot: noindex", "", 200, 200),
    "header": ("", "noindex", 952, 200),
    "header-nofollow": ("", "nofollow", 200, None),
    "header-ours": ("", "otherbot: nofollow, searchcrawl: noindex", 952, 200),
    "header-others": ("", "otherbot: noindex, nofollow", 200, 200),
    "expired": ("", "unavailable_after: Wed, 01 Jan 2020 00:00:00 GMT", 952, 200),
    "not-expired": ("", "unavailable_after: 2199-12-31", 200, 200),
}


def build(site: SiteProcess) -> None:
    paths = [*FORBIDDEN, *OPEN[1:]]
    site.set_page(MANUAL, "/", page("start", *paths))
    site.set_page(MANUAL, "/robots.txt", ROBOTS, content_type="text/plain")
    for path in paths:
        site.set_page(MANUAL, path, page(f"at {path}"))
    for name, (answer, _, _) in FAILING.items():
        host = f"{name}.acme.test"
        site.set_page(host, "/x.html", page(f"on {host}"))
        site.set_behaviour(host, "/robots.txt", **{"status": 200, **answer} if "mode" not in answer else answer)
    for hop in range(1, 5):
        target = {"headers": {"Location": f"/robots-{hop + 1}"}} if hop < 4 else {}
        site.set_page("moved.acme.test", f"/robots-{hop}", RULES, status=302 if hop < 4 else 200, **target)
    site.set_page(META, "/", page("start", *(f"/{name}.html" for name in SAYING), "/sheet.pdf", text="links"))
    for name, (meta, header, _, _) in SAYING.items():
        which, _, content = meta.partition(": ")
        head = f'<meta name="{which}" content="{content}">' if meta else ""
        headers = {"headers": {"X-Robots-Tag": header}} if header else {}
        site.set_page(META, f"/{name}.html", page(name, f"/of-{name}.html", head=head), **headers)
        site.set_page(META, f"/of-{name}.html", page(f"child of {name}"))
    site.set_page(META, "/rel.html", page("rel"))
    site.set_page(META, "/of-noindex.html", page("child") + '<a rel="external NOFOLLOW" href="/rel.html">no</a>')
    site.set_page(META, "/sheet.pdf", make_pdf("a sheet"), headers={"X-Robots-Tag": "noindex"})
    site.set_page(META, "/sheet.pdf", content_type="application/pdf")


class Crawled(NamedTuple):
    """Rows, index and requests of a run, by URL; what ``status`` warns of; the log."""

    rows: dict[str, dict[str, Any]]
    index: list[str]
    requested: set[str]
    warnings: list[str]
    log: str


def crawl(folder: Path, site: SiteProcess, *urls: str, **tables: Any) -> Crawled:
    tables = {"scope": {"include_hosts": ["acme.test"]}, "fetch": {"retries": 0}, **tables}
    return read_run(new_project(folder, site, start={"urls": urls, "sitemaps": "off"}, **tables))


def read_run(project: CrawlProject) -> Crawled:
    project.site.clear_log()
    ended = project.crawl()
    assert ended.exit_code == 0, ended.errors
    warnings = [warning["message"] for warning in ended.status["warnings"]]
    return Crawled(project.rows(), project.indexed(), set(project.site.requested()), warnings, project.log())


def expired(folder: Path, site: SiteProcess) -> Crawled:
    """The next run of the first project, when the date of a page is over that the site calls unchanged."""
    assert len(query(folder, "SELECT url_id FROM documents WHERE unavailable_ms IS NOT NULL")) == 1
    execute(folder, "UPDATE documents SET unavailable_ms = 1 WHERE unavailable_ms IS NOT NULL")
    site.set_page(META, "/not-expired.html", headers={"X-Robots-Tag": "unavailable_after: 1970-01-02"})
    return read_run(CrawlProject(folder=folder, site=site))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Crawled]]:
    with SiteProcess() as site:
        build(site)
        manual = site.url(MANUAL)
        starts = [manual, site.url(META), *(site.url(f"{name}.acme.test", "/x.html") for name in FAILING)]
        folder = tmp_path_factory.mktemp("robots")
        yield {
            "obeying": crawl(folder / "obeying", site, *starts),
            "overriding": crawl(folder / "overriding", site, manual, robots={"obey": False}),
            "expired": expired(folder / "obeying", site),
            "blank": crawl(folder / "blank", site, manual, robots={"user_agent": "Ultra Search"}),
        }


def test_c5_manuals_example_when_obeyed_then_never_requested_and_951_with_the_line(runs: dict[str, Crawled]) -> None:
    run = runs["obeying"]

    rows = {path: run.rows[f"{MANUAL}{path}"] for path in (*FORBIDDEN, *OPEN)}
    assert {path: row["rule"] for path, row in rows.items() if row["code"] == 951} == FORBIDDEN
    assert {path for path, row in rows.items() if row["code"] == 200} == {*OPEN}
    assert run.requested.isdisjoint(f"{MANUAL}{path}" for path in FORBIDDEN)
    assert {f"{MANUAL}{path}" for path in OPEN} == {url for url in run.index if url.startswith(MANUAL)}


def test_c5_override_when_set_then_all_is_requested_and_log_and_status_say_so(runs: dict[str, Crawled]) -> None:
    run = runs["overriding"]

    assert run.requested == {f"{MANUAL}{path}" for path in (*FORBIDDEN, *OPEN)}
    assert run.index == sorted(run.requested)
    message = "robots.txt is not obeyed for this source (robots.obey = false)"
    assert run.warnings == [message]
    assert message in run.log
    assert runs["obeying"].warnings == []


def test_c5_agent_when_its_name_has_a_blank_then_its_own_group_holds(runs: dict[str, Crawled]) -> None:
    run = runs["blank"]

    assert run.rows[f"{MANUAL}/reports/1.html"]["rule"] == "Disallow: /reports/"
    assert {url for url, row in run.rows.items() if row["code"] == 200} == {
        f"{MANUAL}{path}" for path in (*FORBIDDEN, *OPEN) if path != "/reports/1.html"
    }


@pytest.mark.parametrize("name", FAILING)
def test_c5_robots_when_it_answers_otherwise_then_rfc_9309_says_what_it_means(
    runs: dict[str, Crawled], name: str
) -> None:
    _, code, rule = FAILING[name]
    run, page_of = runs["obeying"], f"{name}.acme.test/x.html"

    assert (run.rows[page_of]["code"], run.rows[page_of]["rule"]) == (code, rule)
    assert (page_of in run.requested) == (code == 200) == (page_of in run.index)


@pytest.mark.parametrize("name", SAYING)
def test_b10_page_when_it_speaks_to_robots_then_index_and_links_follow(runs: dict[str, Crawled], name: str) -> None:
    _, _, code, child = SAYING[name]
    run, own, linked = runs["obeying"], f"{META}/{name}.html", f"{META}/of-{name}.html"

    assert run.rows[own]["code"] == code
    assert (own in run.index) == (code == 200)
    assert (linked in run.rows, linked in run.requested, linked in run.index) == ((child == 200),) * 3


def test_b10_link_when_nofollow_then_no_row_and_no_request(runs: dict[str, Crawled]) -> None:
    run = runs["obeying"]

    assert f"{META}/rel.html" not in run.rows
    assert f"{META}/rel.html" not in run.requested


def test_l5_x_robots_tag_when_a_pdf_has_it_then_is_952(runs: dict[str, Crawled]) -> None:
    run = runs["obeying"]

    assert run.rows[f"{META}/sheet.pdf"]["code"] == 952
    assert run.rows[f"{META}/sheet.pdf"]["rule"] == "keep.meta_robots: X-Robots-Tag noindex"
    assert f"{META}/sheet.pdf" not in run.index


def test_b10_known_page_when_its_date_is_over_then_leaves_though_the_site_calls_it_unchanged(
    runs: dict[str, Crawled],
) -> None:
    before, after = runs["obeying"], runs["expired"]

    left = f"{META}/not-expired.html"
    assert after.rows[left]["code"] == 952
    assert {*before.index} - {*after.index} == {left}
    # Unchanged, it leaves the others as they were.
    assert {url: row["code"] for url, row in after.rows.items() if url != left} == {
        url: row["code"] for url, row in before.rows.items() if url != left
    }
