"""Rendered pages that are not whole, as parts of them fail: what a known and a new document become (C10, C11, D9, L3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support_rendering import HOST, SHELL, Rendering, app, plain, rendering, text_of
from tests.site.client import SiteProcess
from tests.stored_rows import execute

JS, DATA = ["/app.js", "script", 200, "text/javascript"], ["/api/1", "data", 200, "application/json"]
HERE, ELSEWHERE = "/app.js", "http://scripts.test/app.js"
FRAME = ["/frame", "frame", 200, "text/html"]
WHOLE = {"html": app("begin"), "body": SHELL, "parts": [JS, DATA, FRAME]}
LATE = "no answer of http://www.acme.test/api/1 within 5 s (render.max_seconds)"
ABSENT = "no element of render.wait_for (article) within 5 s (render.max_seconds)"


def less(*parts: list[Any], **more: Any) -> dict[str, Any]:
    """The page without its text: these parts of it ended so, the others well."""
    ended = {part[0] for part in parts}
    well = [part for part in (JS, DATA, FRAME) if part[0] not in ended]
    return {"html": SHELL, "body": SHELL, "parts": [*well, *parts], **more}


LESS = {
    "data-late": less(gave_up=LATE),
    "wait-for": less(gave_up=ABSENT),
    "data-403": less(["/api/1", "data", 403, "application/json"]),
    "data-404": less(["/api/1", "data", 404, "application/json"]),
    "data-204": less(["/api/1", "data", 204, ""]),
    "data-in-html": less(["/api/1", "data", 200, "text/html"]),
    "data-of-nothing": less(),
    "data-cut": less(["/api/1", "data", 958, ""]),
    "script-404": less(["/app.js", "script", 404, "text/html"]),
    "script-in-html": less(["/app.js", "script", 200, "text/html"]),
    "script-renamed": less(["/app.2.js", "script", 404, "text/html"]),
    "frame-404": less(["/frame", "frame", 404, "text/html"]),
}


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as running:
        running.set_page(HOST, "/begin.html", SHELL, etag='"1"')
        yield running


def visit(here: Rendering, page: Any) -> dict[str, Any]:
    """Crawls with this as what the browser shows; the row of the page then, and the counts of the run."""
    here.pages(**{"begin.html": page})
    ended = here.run("crawl", "demo", "--json")
    (row,) = here.project.rows().values()
    return {**row, **json.loads(ended.stdout)["counts"]}


def lacks(part: str, html: str = SHELL) -> dict[str, Any]:
    """A page as it was sent, because a part of it failed."""
    return {"html": html, "body": html, "parts": [[part, "script", 503]]}


def many(tmp_path: Path, site: SiteProcess, pages: Mapping[str, Any], **overrides: Any) -> Rendering:
    """A project with a page for each way to be incomplete."""
    for path in pages:
        site.set_page(HOST, f"/{path}", SHELL)
    return rendering(tmp_path, site, *(f"/{path}" for path in pages), **overrides)


def crawl(here: Rendering, pages: dict[str, Any]) -> dict[str, int]:
    here.pages(**pages)
    counts: dict[str, int] = json.loads(here.run("crawl", "demo", "--json").stdout)["counts"]
    return counts


def loading(path: str) -> str:
    """What a page shows that waits, with more than a few words of its own."""
    return SHELL.replace("id=root>", f"id=root>Loading: {' '.join(f'{path}word{number}' for number in range(9))}")


def warned(here: Rendering) -> dict[str, str]:
    return {each["code"]: each["message"] for each in here.ask("status", "demo")["warnings"]}


def explained(here: Rendering, site: SiteProcess, path: str = "/begin.html") -> str:
    return here.project.step("render", site.url(HOST, path))


# More than ten at once that turn into one text are kept by another limit.
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("mode", ["auto", "always"])
def test_c10_known_documents_when_their_pages_are_incomplete_then_they_stay_until_three_runs_ended_so(
    tmp_path: Path, site: SiteProcess, mode: str, part: int
) -> None:
    pages = dict(list(LESS.items())[part::2])
    here = many(tmp_path, site, pages, render={"mode": mode}, fetch={"retries": 0})
    here.pages(**{path: {**WHOLE, "html": app(f"own{path}")} for path in pages})
    here.crawl()

    held = crawl(here, {path: {**page, "html": loading(path)} for path, page in pages.items()})
    rows, warning = here.project.rows(), warned(here)["incomplete"]

    assert {row["code"] for row in rows.values()} == {958}
    assert all(row["error"].startswith("not rendered: ") for row in rows.values())
    assert (held["incomplete"], held["changed"], held["deleted"]) == (len(pages), 0, 0)
    assert warning.startswith(f"{len(pages)} rendered pages are incomplete: for example, http://")
    assert len(here.project.found("ridge")) == len(pages)

    back = crawl(here, {path: {**WHOLE, "html": app(f"own{path}")} for path in pages})
    assert (back["incomplete"], back["unchanged"], "incomplete" in warned(here)) == (0, len(pages), False)

    codes = []
    for _ in range(3):
        crawl(here, {path: {**page, "html": loading(path)} for path, page in pages.items()})
        codes.append({row["code"] for row in here.project.rows().values()})

    assert codes == [{958}, {958}, {200}]
    assert len(here.project.found("loading")) == len(pages)
    assert "incomplete" not in warned(here)
    assert crawl(here, {path: {**page, "html": loading(path)} for path, page in pages.items()})["incomplete"] == 0


def test_c10_new_documents_when_their_pages_are_incomplete_then_they_are_indexed_with_what_they_have_and_counted(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = many(tmp_path, site, LESS, fetch={"retries": 0})
    # Of the others only a known text tells.
    incomplete = {
        path: page for path, page in LESS.items() if path not in {"data-of-nothing", "data-204", "data-in-html"}
    }

    counts = crawl(here, {path: {**page, "html": f"<p>{text_of(path, 3)}</p>"} for path, page in incomplete.items()})

    assert (counts["incomplete"], counts["new"]) == (len(incomplete), len(incomplete))
    assert len(here.project.found("ridge")) == len(incomplete)
    assert "; incomplete: " in explained(here, site, "/data-403")
    assert "(1 run; after 3 it is taken as it is)" in explained(here, site, "/data-403")


def test_c10_new_documents_when_nothing_but_their_frames_is_there_then_what_may_come_is_waited_for(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = many(tmp_path, site, LESS, fetch={"retries": 0})

    counts = crawl(here, LESS)

    codes = {url.rpartition("/")[2]: row["code"] for url, row in here.project.rows().items()}
    assert {path for path, code in codes.items() if code == 958} == {"data-cut"}
    assert {code for path, code in codes.items() if path != "data-cut"} == {200, 909}
    assert counts["incomplete"] == len(LESS) - 3


@pytest.mark.parametrize("target", ["/maintenance", "http://elsewhere.test/"])
def test_c10_known_document_when_a_script_leaves_because_data_failed_then_it_stays_until_three_runs_ended_so(
    tmp_path: Path, site: SiteProcess, target: str
) -> None:
    site.set_page(HOST, "/maintenance", plain("maintenance"))
    here = rendering(tmp_path, site, fetch={"retries": 0})
    visit(here, WHOLE)
    left = {**LESS["data-404"], "url": target, "moves": True, "redirects": [["/begin.html", 302]]}

    rows = [visit(here, left) for _ in range(2)]

    assert [(row["code"], row["deleted"]) for row in rows] == [(958, 0), (958, 0)]
    assert "/api/1 failed with 404, and it went elsewhere" in rows[0]["error"]
    assert "(2 runs in a row; after 3 it is taken as it is)" in explained(here, site)
    assert len(here.project.found("ridge")) == 1
    assert visit(here, left)["code"] != 958


def test_c10_incomplete_documents_when_too_many_runs_failed_or_they_say_noindex_then_none_is_removed(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = rendering(tmp_path, site, fetch={"retries": 0}, lifecycle={"error_runs_before_hidden": 1})
    visit(here, WHOLE)
    noindex = f"<meta name=robots content=noindex>{app('begin')}"

    rows = [visit(here, LESS["data-404"]), visit(here, {**LESS["script-404"], "html": noindex})]

    assert [(row["deleted"], row["incomplete"]) for row in rows] == [(0, 1), (0, 1)]
    assert len(here.project.found("ridge")) == 1


def test_c10_many_documents_when_all_shrink_to_one_frame_then_the_limit_on_turned_pages_keeps_them(
    tmp_path: Path, site: SiteProcess
) -> None:
    paths = [f"/page/{name}" for name in "abcdefghijklmn"]
    for path in paths:
        site.set_page(HOST, path, SHELL)
    here = rendering(tmp_path, site, *paths, fetch={"retries": 0})
    here.pages(**{path[1:]: {"html": app(f"own{path[-1]}"), "body": SHELL, "parts": [JS, DATA]} for path in paths})
    here.crawl()
    frame = SHELL.replace("id=root>", "id=root>Please wait while we load what you asked for")
    here.pages(**{path[1:]: {**LESS["data-404"], "html": frame, "body": frame} for path in paths})

    here.run("crawl", "demo")
    assert warned(here)["incomplete"].startswith("14 rendered pages are incomplete: http://")
    assert "/api/1 failed with 404" in warned(here)["incomplete"]
    for _ in range(3):
        here.run("crawl", "demo")

    assert len(here.project.found("ridge")) == 14
    assert {row["code"] for row in here.project.rows().values()} == {965}


def test_c10_rendered_document_when_an_earlier_release_made_it_then_only_a_whole_page_takes_its_place(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = rendering(tmp_path, site, fetch={"retries": 0})
    visit(here, {"html": app("begin"), "body": SHELL})
    execute(here.project.folder, "UPDATE documents SET parts = NULL")

    assert visit(here, LESS["data-404"])["code"] == 958
    assert visit(here, {**LESS["data-404"], "html": app("begin")})["code"] == 958
    assert visit(here, {**WHOLE, "html": app("after")})["code"] == 200


def test_c10_status_when_rendered_pages_are_empty_or_lack_what_a_rule_refuses_then_warns_with_what_to_do(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = rendering(tmp_path, site, fetch={"retries": 0})
    rule = "render.allow_hosts: api.test is outside the boundary"

    visit(here, {"html": SHELL, "body": SHELL, "refused": {rule: 1, "kind image": 9}})

    found = warned(here)
    assert found["rendered_empty"].startswith("1 page was rendered, and still has next to no text, such as http://")
    assert found["refused_parts"].startswith(f"1 of 1 rendered page asked for what is refused by {rule}; render.allow")
    assert "next to no text" in explained(here, site)


def test_c10_resend_and_apply_when_a_page_was_incomplete_then_what_is_noted_of_it_stays(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = rendering(tmp_path, site, fetch={"retries": 0})
    visit(here, {**LESS["data-404"], "html": app("begin")})
    before = explained(here, site)

    assert here.run("resend", "demo").returncode == 0
    source = here.project.folder / "sources" / "demo.toml"
    source.write_text(f"{source.read_text()}\n[keep]\nmax_age_days = 1000000\n")
    planned = here.run("plan", "demo", "--json")
    assert planned.returncode == 0, planned.stderr

    assert explained(here, site) == before
    assert len(here.project.found("ridge")) == 1


def test_j4_log_when_urls_are_logged_then_says_what_a_page_was_refused(tmp_path: Path, site: SiteProcess) -> None:
    here = rendering(tmp_path, site)
    project = here.project.folder / "searchcrawl.toml"
    project.write_text(f"{project.read_text()}\n[logs]\nurls = true\n")

    visit(here, {**WHOLE, "refused": {"kind image": 3, "method POST": 1}})

    log = "".join(path.read_text() for path in here.project.folder.rglob("demo.log"))
    assert "SC154" in log
    assert "/begin.html was refused: kind image (3), method POST (1)" in log
    assert "; complete; refused to it: 3 × kind image, 1 × method POST" in explained(here, site)


def test_j2_test_when_a_page_lacks_something_then_shows_it(tmp_path: Path, site: SiteProcess) -> None:
    site.set_page(HOST, "/begin.html", plain("before"))
    here = rendering(tmp_path, site)
    here.pages(**{"begin.html": {**LESS["data-404"], "html": app("begin"), "gave_up": LATE}})
    command = ("test", site.url(HOST, "/begin.html"), "--source", "demo", "--render")

    view, printed = here.ask(*command), here.run(*command).stdout

    assert view["gave_up"] == LATE
    assert [part.rpartition("/api")[2] for part in view["failing_parts"]] == ["/1 failed with 404"]
    assert "/api/1 failed with 404" in printed
    assert f"not waited for any longer: {LATE}" in printed


@pytest.mark.few(2)
@pytest.mark.parametrize("part", [HERE, ELSEWHERE])
@pytest.mark.parametrize("etag", ["", '"1"'])
def test_c10_document_when_a_part_of_its_page_fails_then_it_stays_and_the_next_run_tries_again(
    tmp_path: Path, site: SiteProcess, part: str, etag: str
) -> None:
    site.set_page(HOST, "/begin.html", SHELL, etag=etag)
    here = rendering(tmp_path, site, fetch={"retries": 1})
    assert visit(here, app("begin"))["code"] == 200

    row = visit(here, lacks(part))

    assert (row["code"], len(here.asked())) == (958, 2)
    assert "app.js failed with 503, and the page has less text than it may have" in row["error"]
    assert len(here.project.found("ridge")) == 1
    assert visit(here, app("begin"))["code"] == 200


@pytest.mark.parametrize(("part", "code"), [(HERE, 958), (ELSEWHERE, 200)])
def test_c10_first_visit_when_a_part_fails_then_one_of_another_site_costs_no_page(
    tmp_path: Path, site: SiteProcess, part: str, code: int
) -> None:
    site.set_page(HOST, "/begin.html", SHELL)

    assert visit(rendering(tmp_path, site, fetch={"retries": 0}), lacks(part))["code"] == code


@pytest.mark.parametrize("mode", ["auto", "always"])
def test_c10_page_when_it_has_its_text_without_the_part_that_fails_then_it_is_a_page_as_any(
    tmp_path: Path, site: SiteProcess, mode: str
) -> None:
    html = plain("begin", script=f"<script src={HERE}></script>")
    site.set_page(HOST, "/begin.html", html)
    here = rendering(tmp_path, site, render={"mode": mode})

    assert visit(here, lacks(HERE, html))["code"] == 200
    site.set_page(HOST, "/begin.html", html.replace("ridge", "bridge"))
    assert visit(here, lacks(HERE, html.replace("ridge", "bridge")))["code"] == 200
    assert len(here.project.found("bridge")) == 1


def test_c10_page_when_more_than_its_frame_is_there_without_the_part_that_fails_then_that_is_taken(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/begin.html", SHELL)
    here = rendering(tmp_path, site)

    assert visit(here, {**lacks("/statistics"), "html": app("begin")})["code"] == 200
