"""What of the fetched is indexed: filters, MIME types, dynamic pages (B8, B9); links of what is not are followed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final, NamedTuple

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess
from tests.site.pdf import make_pdf

HOST: Final = "keep.acme.test"
NEW: Final = format_datetime(datetime.now(UTC) - timedelta(days=2), usegmt=True)
OLD: Final = format_datetime(datetime.now(UTC) - timedelta(days=40), usegmt=True)
KEEP: Final = {
    "exclude_mime_types": ["application/*"],
    "min_bytes": 200,
    "max_bytes": 3_000,
    "max_age_days": 30,
    "exclude_urls": ["*/private/*"],
    "exclude_names": ["draft*"],
}
LONG: Final = "barometer " * 30
#: Path, its content, and the rule that keeps it out of the index.
REFUSED: Final = {
    "/manual.pdf": "keep.exclude_mime_types: application/*",
    "/short.html": "keep.min_bytes: min_bytes = 200",
    "/long.html": "keep.max_bytes: max_bytes = 3000",
    "/old.html": "keep.max_age_days: max_age_days = 30",
    "/renewed.html": "keep.max_age_days: max_age_days = 30",
    "/private/plan.html": "keep.exclude_urls: */private/*",
    "/draft-2.html": "keep.exclude_names: draft*",
    "/get/7": "keep.exclude_names: draft*",
}
KEPT: Final = ("/", "/undated.html", "/ageing.html", "/ageing-whole.html", "/get/8")
CHILDREN: Final = tuple(f"/of{path.replace('/', '-')}" for path in REFUSED if not path.endswith(".pdf"))
#: What is sent with a type that it is not, and types that nobody reads.
MISTAKEN: Final = {
    "/pdf-as-html": (make_pdf("quicksilver"), "text/html", 1009),
    "/zip-as-html": (b"PK\x03\x04" + bytes(400), "text/html", 1009),
    "/png-as-text": (b"\x89PNG\r\n\x1a\n" + bytes(400), "text/plain", 1009),
    "/text-as-pdf": (b"no PDF at all " * 30, "application/pdf", 952),
    # A rule says no, whether or not anything could read it.
    "/packed.7z": (b"7z\xbc\xaf\x27\x1c" + bytes(400), "application/x-7z-compressed", 952),
    "/picture.png": (b"\x89PNG\r\n\x1a\n" + bytes(400), "image/png", 908),
}


def build(site: SiteProcess) -> None:
    links = [*REFUSED, *KEPT[1:], *MISTAKEN, "/undated.html?x=1"]
    site.set_page(HOST, "/", page("start", *links, text=LONG), last_modified=NEW)
    dates = {"/old.html": OLD, "/renewed.html": OLD, "/undated.html": None}
    sizes = {"/long.html": LONG * 20}
    for path in (*REFUSED, *KEPT[1:]):
        child = (f"/of{path.replace('/', '-')}",) if path in REFUSED else ()
        text = sizes.get(path, f"{path} {LONG}") if path != "/short.html" else ""
        site.set_page(HOST, path, page(path[1:5], *child, text=text), last_modified=dates.get(path, NEW))
    site.set_page(HOST, "/manual.pdf", make_pdf("quicksilver", links=[site.url(HOST, "/in-pdf.html")]))
    site.set_page(HOST, "/manual.pdf", content_type="application/pdf", last_modified=NEW)
    site.set_page(HOST, "/ageing-whole.html", honours_conditions=False)
    for path, name in (("/get/7", "draft.html"), ("/get/8", "final.html")):
        site.set_page(HOST, path, headers={"Content-Disposition": f'inline; filename="{name}"'})
    for path in CHILDREN:
        site.set_page(HOST, path, page("child", text=path + LONG), last_modified=NEW)
    for path, (body, content_type, _) in MISTAKEN.items():
        site.set_page(HOST, path, body, content_type=content_type, last_modified=NEW)


class Seen(NamedTuple):
    """What a run left: exit code, codes and rules of the rows by path, the index, and what was asked for."""

    code: int
    codes: dict[str, int]
    rules: dict[str, str | None]
    index: set[str]
    requested: set[str]


def crawled(project: CrawlProject, **tables: Any) -> Seen:
    project.edit(**source(project.site, HOST, scope={"dynamic_pages": False}), **tables)
    project.site.clear_log()
    code = project.crawl().exit_code
    rows = {url.removeprefix(HOST): row for url, row in project.rows().items()}
    return Seen(
        code,
        {url: row["code"] for url, row in rows.items()},
        {url: row["rule"] for url, row in rows.items()},
        {url.removeprefix(HOST) for url in project.indexed()},
        {url.removeprefix(HOST) for url in project.site.requested()},
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Seen]]:
    with SiteProcess() as site:
        build(site)
        project = new_project(tmp_path_factory.mktemp("keep"), site)
        seen = [crawled(project, keep=KEEP)]
        # The same bytes and the same ETag, of another date.
        for path, date in (("/ageing.html", OLD), ("/ageing-whole.html", OLD), ("/renewed.html", NEW)):
            site.set_page(HOST, path, last_modified=date)
        seen += [crawled(project, keep=KEEP) for _ in range(2)]
        seen.append(crawled(project, keep={"max_bytes": 3_000}))
        limits = {"max_delete_documents": 3}
        seen.append(crawled(project, keep={"mime_types": ["text/plain"]}, lifecycle=limits))
        yield seen


def test_b8_page_when_a_filter_refuses_it_then_is_952_with_its_rule_and_its_links_are_indexed(runs: list[Seen]) -> None:
    first = runs[0]

    assert {path: first.codes[path] for path in REFUSED} == dict.fromkeys(REFUSED, 952)
    assert {path: first.rules[path] for path in REFUSED} == REFUSED
    assert {path: first.codes[path] for path in (*KEPT, *CHILDREN)} == dict.fromkeys((*KEPT, *CHILDREN), 200)
    assert first.index == {*KEPT, *CHILDREN}
    assert first.requested >= {*REFUSED}


def test_b9_dynamic_page_when_refused_then_has_its_own_reason_and_no_request(runs: list[Seen]) -> None:
    first = runs[0]

    assert first.codes["/undated.html?x=1"] == 955
    assert first.rules["/undated.html?x=1"] == "scope.dynamic_pages: dynamic_pages = false"
    assert not any("?" in url for run in runs for url in run.requested)


def test_b9_bytes_when_their_type_says_otherwise_then_the_row_has_the_code(runs: list[Seen]) -> None:
    first, edited = runs[0], runs[3]

    assert {path: first.codes[path] for path in MISTAKEN} == {path: code for path, (_, _, code) in MISTAKEN.items()}
    # What claims to be a PDF is read as one, where PDF is wanted.
    assert edited.codes["/text-as-pdf"] == 903


def test_b9_pdf_when_not_wanted_then_its_links_are_not_followed_either(runs: list[Seen]) -> None:
    assert all("/in-pdf.html" not in run.codes for run in runs)


def test_b8_known_page_when_it_grows_too_old_then_leaves_though_unchanged(runs: list[Seen]) -> None:
    first, second, third = runs[:3]

    left = {"/ageing.html", "/ageing-whole.html"}
    assert {second.codes[path] for path in left} == {952}
    assert {second.rules[path] for path in left} == {"keep.max_age_days: max_age_days = 30"}
    assert first.index - second.index == left
    assert (second.code, third.index & left) == (0, set())
    assert {third.codes[path] for path in left} == {952}


def test_b8_page_when_its_date_is_new_again_then_is_indexed(runs: list[Seen]) -> None:
    third = runs[2]

    assert third.codes["/renewed.html"] == 200
    assert "/renewed.html" in third.index


def test_b8_rules_when_edited_then_all_is_processed_again(runs: list[Seen]) -> None:
    edited = runs[3]

    assert edited.index == {*KEPT, *CHILDREN, *REFUSED} - {"/long.html"}
    assert edited.rules["/long.html"] == "keep.max_bytes: max_bytes = 3000"


def test_b8_rules_when_they_refuse_too_many_then_the_documents_wait_in_quarantine(runs: list[Seen]) -> None:
    edited, last = runs[3], runs[4]

    assert last.code == 9
    assert last.index == edited.index
    assert last.codes["/"] == 952
