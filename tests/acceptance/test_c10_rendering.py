"""Pages that need JavaScript, with a browser of the tests: what is rendered, when, what becomes of it, and what users see of it
(C10, C11, D9, J2, L1).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from searchcrawl.rules.rendering import SAMPLE_ONE_IN, is_sampled
from tests.acceptance.support_project import environment
from tests.acceptance.support_rendering import HOST, SHELL, Rendering, app, plain, rendering, text_of
from tests.site.client import SiteProcess


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as running:
        yield running


MENU = "<script src=/menu.js></script>"


def test_c10_mixed_site_when_it_is_crawled_twice_then_the_pages_that_need_it_and_a_sample_are_rendered(
    tmp_path: Path, site: SiteProcess
) -> None:
    names = [f"plain{number}" for number in range(300)]
    apps = [f"app{number}" for number in range(30)]
    bodies = {f"/{name}": plain(name, script=MENU) for name in names} | {f"/{name}": SHELL for name in apps}
    bodies["/begin.html"] = plain("begin", *(f"/{name}" for name in [*names, *apps]))
    site.set_pages(HOST, bodies)
    here = rendering(tmp_path, site)
    here.pages(**{name: app(name) for name in apps}, **{name: plain(name, script=MENU) for name in names})

    first, asked = here.crawl(), here.asked()
    second, asked_again = here.crawl(), here.asked()

    assert sorted(path for path in asked if "app" in path) == sorted(f"/{name}" for name in apps)
    assert len(asked) - len(apps) <= 3 * 300 // SAMPLE_ONE_IN
    assert (first["fetched"], first["new"], first["rendered"]) == (331, 331, len(asked))
    assert first["rendered_ms"] == 250 * len(asked)
    assert first["rendered_bytes"] == 1000 * len(asked)
    sample = {path for name in names if is_sampled(site.url(HOST, path := f"/{name}"), 2)}
    assert {path for path in asked_again if "app" not in path} <= sample | {"/begin.html"}
    assert sample <= set(asked_again)
    # Their shells are unchanged: they are rendered all the same, and nothing of them is new.
    assert sorted(path for path in asked_again if "app" in path) == sorted(f"/{name}" for name in apps)
    assert (second["new"], second["changed"], second["indexed"]) == (0, 0, 0)
    assert "/app7" in " ".join(here.project.found("app7"))


def test_c10_page_when_its_shell_is_unchanged_and_what_is_rendered_is_not_then_it_is_sent(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/begin.html", SHELL)
    here = rendering(tmp_path, site)
    here.pages(**{"begin.html": app("first")})
    here.crawl()
    here.pages(**{"begin.html": app("second")})
    site.clear_log()

    counts = here.crawl()

    # One of the sample, as its URL may be by its port, is asked for without a condition.
    status = 200 if is_sampled(site.url(HOST, "/begin.html"), 2) else 304
    assert [entry["status"] for entry in site.log(host=HOST) if entry["path"] == "/begin.html"] == [status]
    assert (counts["changed"], counts["indexed"], counts["not_modified"]) == (1, 1, 0)
    assert len(here.project.found("second")) == 1


def test_c10_links_when_a_page_is_rendered_then_those_of_its_tree_and_its_routes_are_followed(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_pages(HOST, {"/begin.html": SHELL, "/listed": plain("listed"), "/route": plain("route")})
    here = rendering(tmp_path, site)
    here.pages(**{"begin.html": {"html": app("begin", "/listed"), "routes": ["/route", "/excluded"]}})

    here.crawl()

    assert sorted(here.asked()) == ["/begin.html"]
    codes = {urlsplit(url).path.rpartition("test")[2] or url: code for url, code in here.project.codes().items()}
    assert sum(code == 200 for code in codes.values()) == 3


def test_c10_apply_when_texts_are_read_anew_then_the_cache_has_what_was_rendered(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/begin.html", SHELL)
    here = rendering(tmp_path, site)
    here.pages(**{"begin.html": app("begin").replace("</body>", "<nav>navigated</nav></body>")})
    here.crawl()
    source = here.project.folder / "sources" / "demo.toml"
    source.write_text(source.read_text() + '\n[content]\nmode = "all"\n')

    here.ask("apply", here.ask("plan", "demo")["plan"])

    assert here.asked() == []
    assert len(here.project.found("navigated")) == 1
    steps = here.ask("explain", site.url(HOST, "/begin.html"))["steps"]
    assert [step["outcome"] for step in steps if step["step"] == "render"] == ["rendered"]


@pytest.mark.parametrize(("code", "tries"), [(902, 2), (904, 1), (955, 1)])
def test_c10_page_when_it_cannot_be_rendered_then_its_row_says_so_and_the_others_go_on(
    tmp_path: Path, site: SiteProcess, code: int, tries: int
) -> None:
    site.set_pages(HOST, {"/begin.html": plain("begin", "/app"), "/app": SHELL})
    here = rendering(tmp_path, site, fetch={"retries": 1})
    here.pages(app={"fails": code})

    counts = here.crawl()

    row = next(row for url, row in here.project.rows().items() if url.endswith("/app"))
    assert (row["code"], len(here.asked())) == (code, tries)
    assert row["error"].startswith("not rendered: it took too long")
    assert counts["new"] == 1


def test_c10_redirect_when_a_script_makes_it_then_its_target_is_the_page(tmp_path: Path, site: SiteProcess) -> None:
    site.set_pages(HOST, {"/begin.html": SHELL, "/target": plain("target")})
    here = rendering(tmp_path, site)
    here.pages(**{"begin.html": {"url": "/target", "redirects": [["/begin.html", 301]], "html": plain("target")}})

    here.crawl()

    codes = {url.rpartition("/")[2]: code for url, code in here.project.codes().items()}
    assert codes == {"begin.html": 954, "target": 200}


def test_c10_placeholder_when_an_application_answers_any_path_then_what_it_renders_for_it_is_no_document(
    tmp_path: Path, site: SiteProcess
) -> None:
    pages = {"begin.html": app("begin", "/one", "/two", "/gone", "/old"), "one": app("one"), "two": app("two")}
    # The same frame for each path, also for those that nobody has.
    site.set_behaviour(HOST, status=200, body=SHELL, headers={"Content-Type": "text/html"})
    here = rendering(tmp_path, site)
    here.pages(**pages, **{"*": app("missing")})

    here.crawl()

    codes = {url.rpartition("/")[2]: code for url, code in here.project.codes().items()}
    assert codes == {"begin.html": 200, "one": 200, "two": 200, "gone": 965, "old": 965}


def test_c10_source_when_no_browser_can_start_then_exit_4_before_the_first_request(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = rendering(tmp_path, site)
    (here.folder / "pages.json").write_text(json.dumps({"quits": True}))

    ended = here.run("crawl", "demo")

    assert ended.returncode == 4, ended.stderr
    assert "sources/demo.toml: render.mode: no browser here: install one" in ended.stderr
    assert site.log() == []


def run_code(here: Rendering, code: str) -> subprocess.CompletedProcess[str]:
    """A program in the project, in a process that has loaded nothing."""
    command = [sys.executable, "-c", code]
    folder = here.project.folder
    return subprocess.run(command, check=False, cwd=folder, env=environment(), capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "requested"),
    [(["crawl", "demo"], []), (["test", "URL", "--source", "demo", "--render"], ["/robots.txt"])],
)
def test_c10_source_when_the_driver_is_not_installed_then_exit_4_names_what_is_missing(
    tmp_path: Path, site: SiteProcess, arguments: list[str], requested: list[str]
) -> None:
    here = rendering(tmp_path, site)
    asked = [site.url(HOST, "/begin.html") if word == "URL" else word for word in arguments]
    code = (
        f"import sys; sys.modules['playwright'] = None; sys.argv = ['searchcrawl', *{asked}]; "
        "from searchcrawl.__main__ import main; main()"
    )

    ended = run_code(here, code)

    assert ended.returncode == 4, ended.stderr
    assert "sources/demo.toml: render.mode: the driver of the browser is not installed" in ended.stderr
    assert [request["path"] for request in site.log()] == requested


def test_c10_source_when_it_does_not_render_then_nothing_of_a_browser_is_loaded(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/begin.html", SHELL)
    here = rendering(tmp_path, site, render={"mode": "never"})
    (here.folder / "pages.json").write_text(json.dumps({"quits": True}))
    code = (
        "import sys, atexit; atexit.register(lambda: print([name for name in sys.modules if 'playwright' in name "
        "or name == 'searchcrawl.render.browser'], file=sys.stderr)); "
        "sys.argv = ['searchcrawl', 'crawl', 'demo']; from searchcrawl.__main__ import main; main()"
    )

    ended = run_code(here, code)

    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.splitlines()[-1] == "[]"
    log = here.project.log()
    assert "RenderMiddleware" not in log
    assert not re.search("browser", log, re.IGNORECASE)


def test_c10_always_when_pages_have_text_then_they_are_rendered_all_the_same_and_files_are_not(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_pages(HOST, {"/begin.html": plain("begin", "/notes.txt")})
    site.set_page(HOST, "/notes.txt", text_of("notes"), content_type="text/plain")
    here = rendering(tmp_path, site, render={"mode": "always"})
    here.pages(**{"begin.html": app("shown", "/notes.txt")})

    counts, asked = here.crawl(), here.asked()

    assert (counts["new"], asked) == (2, ["/begin.html"])
    assert here.project.found("shown") == ["www.acme.test/begin.html"]
    assert "www.acme.test/notes.txt" in here.project.found("notes")


def test_c10_doubtful_pages_when_rendering_brings_their_text_then_all_like_them_are_rendered(
    tmp_path: Path, site: SiteProcess
) -> None:
    short = "<html><body><p>number {}</p><script src=/menu.js></script></body></html>"
    links = [f"/item/{number}" for number in range(20)]
    site.set_pages(HOST, {"/begin.html": plain("begin", *links), **{link: short.format(link) for link in links}})
    here = rendering(tmp_path, site)
    here.pages(**{link[1:]: app(f"item{link[6:]}x") for link in links})

    here.crawl()
    asked = [path for path in here.asked() if path != "/begin.html"]
    second = here.crawl()

    assert sorted(asked) == sorted(links)
    assert (second["new"], second["changed"]) == (0, 0)
    assert sorted(path for path in here.asked() if path != "/begin.html") == sorted(links)
    assert len(here.project.found("item7x")) == 1


def test_c10_browser_when_it_is_lost_for_good_then_the_run_ends_no_page_is_blamed_and_the_next_run_goes_on(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_pages(HOST, {"/begin.html": plain("begin", "/app"), "/app": SHELL})
    here = rendering(tmp_path, site)
    here.pages(app={"lost": True})

    ended = here.run("crawl", "demo")
    row = next(row for url, row in here.project.rows().items() if url.endswith("/app"))
    here.pages(app=app("app"))
    counts = here.crawl()

    assert ended.returncode == 4
    assert "sources/demo.toml: render.mode: it cannot be started again" in ended.stderr
    assert (row["code"], row["attempts"], row["error"]) == (0, 0, None)
    assert counts["fetch_failures"] == 0
    assert "www.acme.test/app" in here.project.found("app")


@pytest.mark.extended
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


@pytest.mark.extended
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


@pytest.mark.extended
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


@pytest.mark.extended
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


@pytest.mark.extended
def test_c10_test_when_no_browser_can_start_then_exit_4_and_no_page_is_requested(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = rendering(tmp_path, site)
    (here.folder / "pages.json").write_text(json.dumps({"quits": True}))

    ended = here.run("test", site.url(HOST, "/begin.html"), "--source", "demo")

    assert (ended.returncode, site.requested()) == (4, [])
    assert "no browser here: install one" in ended.stderr
    assert "Traceback" not in ended.stderr
