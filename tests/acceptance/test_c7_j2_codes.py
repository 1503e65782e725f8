"""A fixture for each code that a URL can have, in one crawl (C7, J2, B12)."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from searchcrawl.codes import Code, describe_code
from searchcrawl.convert.pdf_converter import MAX_PAGES
from searchcrawl.queries.explain import explain_url
from searchcrawl.queries.explain_context import build_inputs
from searchcrawl.sources.loading import load_project, load_source
from searchcrawl.store.engine.database import Database
from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page
from tests.certificates import write_certificate
from tests.hostile_server import HostileServer
from tests.site.client import SiteProcess
from tests.site.pdf import make_pdf, make_pdf_of_pages

HOST: Final = "codes.acme.test"
OTHER: Final = "bad.acme.test"
#: Codes of other parts of the house, each with the test that has its fixture, or why no row can have it.
ELSEWHERE: Final = {
    Code.DUPLICATE_IN_RUN: "a copy met within a run is told by its row as well: 909",
    Code.LOGIN_FAILED: "needs [login]; see the tests of logins",
    Code.SENTINEL: "needs a host that answers to any path; see the tests of the sentinel",
    Code.NO_LONGER_LISTED: "needs a folder or table that listed it; see the tests of files and tables",
    Code.SET_ASIDE: "needs a page that stops the crawler three times; see the tests of stalls",
}
#: Path to (answer, code); what is no answer of its own is a behaviour, a status or a target.
STATUSES: Final = (400, 401, 403, 404, 410, 451, 500, 503, 599, 799)
FOLDER: Final = {
    "/broken.pdf": 903,
    "/endless.pdf": 904,
    "/archive.7z": 908,
    "/copy-b.html": 909,
    "/empty.html": 911,
    "/forbidden/x.html": 951,
    "/noindex.html": 952,
    "/refresh.html": 953,
    "/moved.html": 954,
    "/excluded/x.html": 955,
    "/shown-b/x.html": 956,
    "/large.html": 960,
    "/a/a/a/a/a.html": 961,
    "/loop": 963,
    "/print.html": 964,
    "/no-location": 1003,
    f"/{'long' * 600}": 1004,
    "/pdf.html": 1009,
    "/invalid/x.html": 1010,
    "/hang": 902,
    "/reset": 905,
    "/cut": 958,
    **{f"/status-{status}": status for status in STATUSES},
}


#: The step of ``explain`` in which a code was decided; all others are answers of the host.
DECIDING: Final = {
    200: "boundary",
    Code.DUPLICATE: "duplicate",
    Code.NOT_CANONICAL: "duplicate",
    Code.EMPTY: "content",
    Code.ROBOTS: "robots",
    Code.NOT_INDEXED: "keep",
    Code.META_REFRESH: "redirect",
    Code.MOVED: "redirect",
    Code.OUTSIDE_BOUNDARY: "boundary",
    Code.TRAP_LIMIT: "boundary",
    Code.MALFORMED_URL: "boundary",
    Code.DISPLAY_URL_CLASH: "display",
    Code.INVALID_DISPLAY_URL: "display",
}


class Crawled(NamedTuple):
    """The rows after each of two runs, and the codes that ``urls --json`` tells."""

    first: dict[str, dict[str, Any]]
    rows: dict[str, dict[str, Any]]
    listed: dict[str, int]
    indexed: list[str]
    elsewhere: dict[str, int]
    folder: Path


def build(site: SiteProcess, elsewhere: dict[str, int]) -> None:
    links = [*FOLDER, "/copy-a.html", "/shown-a/x.html", "/good.html"]
    site.set_page(HOST, "/", page("start", *links, *elsewhere))
    bodies: dict[str, tuple[bytes, str]] = {
        "/broken.pdf": (make_pdf("cut")[:60], "application/pdf"),
        "/endless.pdf": (make_pdf_of_pages(MAX_PAGES + 1), "application/pdf"),
        "/archive.7z": (b"7z\xbc\xaf\x27\x1c an archive", "application/x-7z-compressed"),
        "/pdf.html": (make_pdf("disguised"), "text/html"),
    }
    html = {
        **{f"/copy-{name}.html": page("twice") for name in "ab"},
        **{f"/shown-{name}/x.html": page(f"shown {name}") for name in "ab"},
        "/empty.html": "<html></html>",
        "/noindex.html": page("no", head='<meta name="robots" content="noindex">'),
        "/refresh.html": page("go", head='<meta http-equiv="refresh" content="0;url=/good.html">'),
        "/print.html": page("print", head='<link rel="canonical" href="/good.html">'),
        "/large.html": page("large", text="words " * 60_000),
        "/invalid/x.html": page("shown nowhere"),
        "/good.html": page("good"),
    }
    for path, text in html.items():
        site.set_page(HOST, path, text)
    for path, (body, content_type) in bodies.items():
        site.set_page(HOST, path, body, content_type=content_type)
    for path, status, headers in (
        ("/moved.html", 301, {"Location": "/good.html"}),
        ("/loop", 302, {"Location": "/loop"}),
        ("/no-location", 302, {}),
    ):
        site.set_page(HOST, path, "", status=status, headers=headers)
    for status in STATUSES:
        site.set_page(HOST, f"/status-{status}", "no", status=status)
    for mode in ("hang", "reset", "cut"):
        site.set_behaviour(HOST, f"/{mode}", mode=mode)
    site.set_page(HOST, "/robots.txt", "User-agent: *\nDisallow: /forbidden/\n", content_type="text/plain")


def tables(site: SiteProcess) -> dict[str, Any]:
    long = "long" * 10_000
    pairs = [("/shown-a/", "/shown/"), ("/shown-b/", "/shown/"), ("/invalid/", f"/{long}/")]
    return {
        "start": {"urls": [site.url(HOST)], "sitemaps": "off"},
        "scope": {"include_hosts": ["acme.test"], "exclude_urls": ["*/excluded/*"]},
        "fetch": {
            "retries": 0,
            "timeout_seconds": 4,
            "max_bytes": 200_000,
            "resolve": {"*.acme.test": "127.0.0.1", "private.acme.test": "127.0.0.9"},
        },
        "display": [{"from": site.url(HOST, start), "to": f"http://shown.test{end}"} for start, end in pairs],
    }


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("codes")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write_certificate(folder, host="tls.acme.test"))
    with SiteProcess() as site, HostileServer(tls=context) as tls:
        elsewhere = {
            "http://refused.acme.test:1/": 906,
            f"http://private.acme.test:{site.port}/": 907,
            f"https://tls.acme.test:{tls.url.rpartition(':')[2]}/ok": 962,
            site.url(OTHER, "/not-http.html"): 1006,
        }
        build(site, elsewhere)
        project = new_project(folder, site, **tables(site))
        project.crawl("-a", "limit=1")
        first = project.rows()
        assert project.crawl().exit_code == 0
        yield Crawled(
            first,
            project.rows(),
            {line["access_url"]: line["code"] for line in project.lines("urls", "demo")},
            project.indexed(),
            elsewhere,
            folder,
        )


@pytest.mark.parametrize("path", FOLDER)
def test_c7_row_when_visited_then_has_the_code_of_what_happened(crawled: Crawled, path: str) -> None:
    assert crawled.rows[f"{HOST}{path}"]["code"] == FOLDER[path]


def test_c7_row_when_its_host_fails_then_has_the_code_of_the_cause(crawled: Crawled) -> None:
    codes = {row["url"]: row["code"] for row in crawled.rows.values()}

    assert {url: codes[url] for url in crawled.elsewhere} == crawled.elsewhere


def test_c7_codes_when_all_are_listed_then_each_has_a_fixture(crawled: Crawled) -> None:
    seen = {row["code"] for row in (*crawled.rows.values(), *crawled.first.values())}

    assert {code for code in Code if code not in seen} == ELSEWHERE.keys()


def test_c7_index_when_the_run_ended_then_has_what_answered_200_alone(crawled: Crawled) -> None:

    good = [f"{HOST}{path}" for path in ("/", "/copy-a.html", "/good.html")]

    assert crawled.indexed == [*good, "shown.test/shown/x.html"]


def test_j2_rows_when_the_run_ended_then_all_have_a_code_and_those_refused_a_reason(crawled: Crawled) -> None:
    rows = crawled.rows.values()

    assert {row["fetch_state"] for row in rows} == {2}
    assert 0 not in crawled.listed.values()
    assert crawled.listed == {row["url"]: row["code"] for row in rows}
    refused = [row for row in rows if row["code"] in (951, 952, 955, 961, 1004, 1010)]
    assert all(row["rule"] for row in refused)
    failed = [row for row in rows if row["code"] in (902, 903, 904, 905, 906, 907, 908, 958, 960, 962, 1006, 1009)]
    assert all(row["error"] for row in failed)


def test_l1_explain_when_a_url_has_any_code_then_says_what_it_means_and_what_decided(crawled: Crawled) -> None:
    project = load_project(crawled.folder)
    inputs = build_inputs(project, load_source(project, "demo"))

    with closing(Database(project.database_url, crawled.folder)) as database:
        found = {url: explain_url(database, inputs, row["url"]).as_json() for url, row in crawled.rows.items()}

    for url, row in crawled.rows.items():
        code, told = row["code"], found[url]
        assert told["in_index"] == (row["indexed_version"] is not None), told
        assert told["verdict"].startswith("in the index" if told["in_index"] else "not in the index"), told
        assert code == 200 or describe_code(code) in told["verdict"], told
        assert told["decided_by"]["step"] == DECIDING.get(code, "answer"), told
        assert told["decided_by"]["rule"], told
        assert [step["step"] for step in told["steps"]][:2] == ["identity", "boundary"], told
        assert all(set(step) == {"step", "outcome", "detail", "rule"} and step["detail"] for step in told["steps"])
    assert found[f"{HOST}/large.html"]["decided_by"]["key"] == "fetch.max_bytes"
    assert found[f"{HOST}/forbidden/x.html"]["decided_by"]["rule"] == "Disallow: /forbidden/"
    assert found[f"{HOST}/copy-b.html"]["verdict"].endswith("/copy-a.html")
