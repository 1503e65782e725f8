"""What users see of rendering, and what an edit of it does: explain, test, status, plan (C10, D9, J2, L1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.support_rendering import HOST, SHELL, app, plain, rendering
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as running:
        yield running


def test_l1_explain_when_pages_were_rendered_or_not_then_it_says_so_and_why(tmp_path: Path, site: SiteProcess) -> None:
    site.set_pages(HOST, {"/begin.html": plain("begin", "/app", "/late"), "/app": SHELL, "/late": SHELL})
    here = rendering(tmp_path, site)
    here.pages(app=app("app"), late={"fails": 904})
    here.crawl()

    said = {
        path: [
            (step["outcome"], step["detail"])
            for step in here.ask("explain", site.url(HOST, path))["steps"]
            if step["step"] == "render"
        ]
        for path in ("/begin.html", "/app", "/late")
    }

    assert said["/begin.html"] == [("plain", "taken as the server sends it (render.mode: auto)")]
    assert said["/app"] == [
        ("rendered", "by a browser: an empty element #root, 0 bytes of text and 1 script; complete")
    ]
    assert said["/late"][0][0] == "failed"


@pytest.mark.parametrize("mode", ["never", "auto", "always"])
def test_j2_test_when_a_page_is_to_be_rendered_then_its_text_before_and_after_is_shown(
    tmp_path: Path, site: SiteProcess, mode: str
) -> None:
    site.set_page(HOST, "/page.html", plain("before"))
    here = rendering(tmp_path, site, render={"mode": mode})
    here.pages(**{"page.html": {"html": app("after", "/more"), "refused": {"kind image": 3}}})
    trace = tmp_path / "trace.zip"

    command = ("test", site.url(HOST, "/page.html"), "--source", "demo", "--render")
    view, printed = here.ask(*command, "--trace", str(trace)), here.run(*command)

    assert view["rendered"] == "render.mode: always"
    assert (view["text_before"][:6], view["text"][:5]) == ("before", "after")
    assert view["refused_requests"] == [{"reason": "kind image", "requests": 3}]
    assert [link["url"].rpartition("/")[2] for link in view["links"]] == ["more"]
    assert trace.read_text(encoding="utf-8").endswith("/page.html")
    lines = [line.strip() for line in printed.stdout.splitlines()]
    assert "refused to the page: 3 × kind image" in lines
    assert lines.index("as it was sent:") < lines.index("as it was rendered:")


def test_j2_test_when_it_is_not_asked_to_render_then_it_does_what_a_crawl_would(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_pages(HOST, {"/plain": plain("plain"), "/app": SHELL})
    here = rendering(tmp_path, site)
    here.pages(app=app("app"))

    views = [here.ask("test", site.url(HOST, path), "--source", "demo") for path in ("/plain", "/app")]

    assert [view["rendered"] is not None for view in views] == [False, True]
    assert ["text_before" in view for view in views] == [False, False]
    refused = here.run("test", site.url(HOST, "/app"), "--source", "demo", "--trace", "x")
    assert (refused.returncode, "--trace needs --render" in refused.stderr) == (2, True)
    refused = here.run("test", site.url(HOST, "/app"), "--source", "demo", "--render", "--trace", "no/such/x")
    assert (refused.returncode, "--trace: no folder no/such" in refused.stderr) == (2, True)


def test_d9_render_when_it_is_edited_then_status_says_so_and_the_pages_are_fetched_and_rendered_anew(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_pages(HOST, {"/begin.html": SHELL, "/other": plain("other")})
    here = rendering(tmp_path, site, "/begin.html", "/other", render={"mode": "never"})
    here.pages(**{"begin.html": app("shown")})
    first, asked = here.crawl(), here.asked()
    source = here.project.folder / "sources" / "demo.toml"
    source.write_text(source.read_text().replace('"never"', '"auto"'))

    status, planned = here.ask("status", "demo"), here.ask("plan", "demo")
    site.clear_log()
    second, asked_then = here.crawl(), here.asked()
    third, asked_again = here.crawl(), here.asked()

    assert (first["indexed"], asked) == (2, [])
    assert "render.mode" in json.dumps(status["force_recrawl"])
    assert (planned["reprocess"], planned["refetch"]) == (0, 2)
    assert {entry["status"] for entry in site.log(host=HOST, robots=False)[:2]} == {200}
    assert (second["new"] + second["changed"], asked_then) == (1, ["/begin.html"])
    assert len(here.project.found("shown")) == 1
    assert (third["indexed"], asked_again) == (0, ["/begin.html"])


def test_c10_test_when_no_browser_can_start_then_exit_4_and_no_page_is_requested(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = rendering(tmp_path, site)
    (here.folder / "pages.json").write_text(json.dumps({"quits": True}))

    ended = here.run("test", site.url(HOST, "/begin.html"), "--source", "demo")

    assert (ended.returncode, site.requested()) == (4, [])
    assert "no browser here: install one" in ended.stderr
    assert "Traceback" not in ended.stderr
