"""Archives whose own URL has the mark in its path, and those whose URL does not say that they are one (C8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, run, source
from tests.office_files import make_zip
from tests.site.client import SiteProcess

HOST: Final = "marks.acme.test"
JAR: Final = "/jar!/x/pack.zip"
PLAIN: Final = "/download/5"
INNER: Final = make_zip({"b.txt": b"tarragon"})
IN_JAR: Final = (f"{HOST}{JAR}!/a.txt", f"{HOST}{JAR}!/in.zip!/b.txt")
IN_PLAIN: Final = f"{HOST}{PLAIN}!/in.zip!/c.txt"


def put(project: CrawlProject, path: str, **files: bytes) -> None:
    project.site.set_page(HOST, path, make_zip(files), content_type="application/zip")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        made = new_project(tmp_path, site, **source(site, HOST))
        site.set_page(HOST, "/", page("start", JAR, PLAIN))
        put(made, JAR, **{"a.txt": b"juniper", "in.zip": INNER})
        put(made, PLAIN, **{"in.zip": make_zip({"c.txt": b"sumac"})})
        yield made


def test_c8_archive_when_its_own_path_has_the_mark_then_its_files_are_indexed(project: CrawlProject) -> None:
    first, second = run(project), run(project)

    assert [project.found(word) for word in ("juniper", "tarragon", "sumac")] == [
        [each] for each in (*IN_JAR, IN_PLAIN)
    ]
    assert [each.ended.exit_code for each in (first, second)] == [0, 0]
    assert (first.versions, first.requested.count(f"{HOST}{JAR}")) == (second.versions, 1)
    # Whether the part before the mark is an archive is asked, and nothing in one ever is.
    assert {url for url in first.requested + second.requested if "!/" in url} == {f"{HOST}{JAR}"}


def test_d4_archive_when_its_own_path_has_the_mark_then_its_files_change_and_go_with_it(project: CrawlProject) -> None:
    run(project)
    put(project, JAR, **{"a.txt": b"estragon"})
    run(project)
    changed = [project.found(word) for word in ("estragon", "tarragon")]
    project.site.set_page(HOST, JAR, "", status=404)

    gone = run(project)

    assert changed == [[IN_JAR[0]], []]
    assert (project.found("estragon"), gone.codes[IN_JAR[0]]) == ([], 404)
    assert project.found("sumac") == [IN_PLAIN]


@pytest.mark.parametrize(("status", "code", "stays"), [(200, 903, True), (403, 903, True), (404, 404, False)])
def test_d5_archive_when_it_is_not_called_like_one_then_files_of_inner_ones_go_with_evidence_only(
    project: CrawlProject, status: int, code: int, stays: bool
) -> None:
    run(project)
    project.site.set_page(HOST, PLAIN, page("repairs", text="come back later"), status=status)

    second = run(project)

    assert (second.codes[IN_PLAIN], project.found("sumac") == [IN_PLAIN]) == (code, stays)
    assert [project.found(word) for word in ("juniper", "tarragon")] == [[each] for each in IN_JAR]


def test_l8_archive_when_its_files_are_alike_but_for_numbers_then_all_are_indexed(project: CrawlProject) -> None:
    words = " ".join(f"boilerplate{number}" for number in range(60))
    put(project, "/inv.zip", **{f"invoice-{number:03}.txt": f"{words} no {number}".encode() for number in range(60)})
    project.site.set_page(HOST, "/", page("start", "/inv.zip"))
    tables = source(project.site, HOST)
    project.edit(**tables | {"scope": {**tables["scope"], "trap_after": 20, "max_urls_per_pattern": 30}})

    first = run(project)

    assert sum("!/invoice-" in url for url in first.versions) == 60
    assert (first.ended.exit_code, 961 in first.codes.values()) == (0, False)


def test_c8_archive_when_files_are_called_like_parameters_then_each_is_a_document(project: CrawlProject) -> None:
    put(project, "/get?f=pack.zip", **{"a&utm_source=1.txt": b"lovage", "a;jsessionid=2.txt": b"savory"})
    project.site.set_page(HOST, "/", page("start", "/get?f=pack.zip"))

    run(project)

    assert [project.found(word) for word in ("lovage", "savory")] == [
        [f"{HOST}/get?f=pack.zip!/a&utm_source=1.txt"],
        [f"{HOST}/get?f=pack.zip!/a;jsessionid=2.txt"],
    ]
