"""Middlewares of users that refuse pages, or fail at them: what becomes of the page, and of the run (K4, X-S11)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

RAISING: Final = """
from scrapy.exceptions import IgnoreRequest

class Downloading:
    def process_request(self, request):
        if request.url.endswith("/ignored.html"):
            raise IgnoreRequest("not for us")
        if request.url.endswith("/broken.html"):
            raise RuntimeError("cannot cope")

    def process_response(self, request, response):
        if request.url.endswith("/late.html"):
            self.refuse(response.body.decode())
        return None if request.url.endswith("/nothing.html") else response

    def refuse(self, text):
        raise IgnoreRequest("with the word late" if "late" in text else "")

class Reading:
    def process_spider_input(self, response):
        if response.url.endswith("/unread.html"):
            raise IgnoreRequest

class Never:
    async def process_request(self, request):
        if request.url.endswith("0.html"):
            raise ValueError("never")
"""
NO_RESPONSE: Final = (
    "middleware mine.Downloading: _InvalidOutput: Middleware Downloading.process_response must return Response or Request, "
    "got <class 'NoneType'>"
)


def test_crawl_when_a_middleware_refuses_a_page_or_fails_at_it_then_it_is_named_and_the_page_is_not_tried_again(
    site: SiteProcess, tmp_path: Path
) -> None:
    host, names = "middlewares.acme.test", ("good", "ignored", "broken", "late", "nothing", "unread")
    pages(site, host, **{name: page(f"page {name}") for name in names})
    project = new_project(tmp_path, site, **source(site, host))
    project.crawl()
    keys = {"DOWNLOADER_MIDDLEWARES": {"mine.Downloading": 450}, "SPIDER_MIDDLEWARES": {"mine.Reading": 50}}
    (tmp_path / "mine.py").write_text(RAISING, "utf-8")
    project.edit(**source(site, host), settings=keys, lifecycle={"max_delete_percent": 100})
    site.clear_log()

    ended = project.crawl()

    rows = {name: project.rows()[f"{host}/{name}.html"] for name in names}
    assert ended.exit_code == 0
    assert {name: (row["code"], row["rule"], row["error"]) for name, row in rows.items()} == {
        "good": (200, None, None),
        "ignored": (952, "settings.DOWNLOADER_MIDDLEWARES: mine.Downloading: not for us", None),
        "broken": (903, None, "middleware mine.Downloading: RuntimeError: cannot cope"),
        "late": (952, "settings.DOWNLOADER_MIDDLEWARES: mine.Downloading: with the word late", None),
        "nothing": (903, None, NO_RESPONSE),
        "unread": (952, "settings.SPIDER_MIDDLEWARES: mine.Reading", None),
    }
    assert [entry["path"] for entry in site.log()].count("/nothing.html") == 1
    # Who is refused leaves the index, who failed stays.
    assert project.indexed() == [f"{host}/", *(f"{host}/{name}.html" for name in ("broken", "good", "nothing"))]
    assert "Traceback" not in project.log()
    explained = project.command("explain", site.url(host, "/ignored.html"), "--json").stdout
    assert '"file":"sources/demo.toml","key":"settings.DOWNLOADER_MIDDLEWARES"' in explained


def test_crawl_when_a_middleware_fails_at_more_pages_than_a_plugin_may_then_the_run_ends_with_3(
    site: SiteProcess, tmp_path: Path
) -> None:
    host, names = "never.acme.test", [f"n{number}" for number in range(100)]
    pages(site, host, **{name: page(f"page {name}") for name in names})
    settings = {"DOWNLOADER_MIDDLEWARES": {"mine.Never": 450}}
    project = new_project(tmp_path, site, **source(site, host), settings=settings)
    (tmp_path / "mine.py").write_text(RAISING, "utf-8")

    ended = project.crawl("-s", "SEARCHCRAWL_PLUGIN_ERRORS=4,5")
    resumed = project.crawl("-s", "SEARCHCRAWL_PLUGIN_ERRORS=20,50")

    assert (ended.exit_code, ended.status["run"]["end_reason"]) == (3, "plugin_errors")
    assert "the run ends: middleware mine.Never failed at 5 of " in project.log()
    assert resumed.exit_code == 0
