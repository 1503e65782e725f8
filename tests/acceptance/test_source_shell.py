"""``shell``, ``parse`` and ``fetch`` of a source: a page as its crawl gets it, in the commands of a Scrapy developer."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess

#: A name that only ``fetch.resolve`` knows.
HOST: Final = "shell.acme.test"
SECRET: Final = "s3cret-of-shell"


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, a=page("a kettle", "/b.html", "/out/c.html", text="boils <i>water</i>"), b=page("b"))
    return site


@pytest.fixture(scope="module")
def project(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    more: dict[str, Any] = source(site, HOST, headers={"X-Key": {"env": "SHELL_KEY"}})
    more["scope"]["exclude_urls"] = ["*/out/*"]
    return new_project(tmp_path_factory.mktemp("shell") / "p", site, **more)


def call(project: CrawlProject, *words: str, module: str = "scrapy") -> subprocess.CompletedProcess[str]:
    return COMMANDS.run_as(module, project.folder, *words, SHELL_KEY=SECRET)


@pytest.mark.parametrize("module", ["scrapy", "searchcrawl"])
def test_shell_when_named_a_source_then_a_page_is_there_as_its_crawl_gets_it(
    project: CrawlProject, site: SiteProcess, module: str
) -> None:
    site.clear_log()
    code = (
        "(response.css('i::text').get(), document.title, stored['fields']['title'],"
        " [link['allowed'] for link in stored['links']], spider.name,"
        " fetch('/nowhere:') or response is None or response.url)"
    )

    done = call(project, "shell", site.url(HOST, "/a.html"), "--spider", "demo", "-c", code, module=module)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("('water', 'a kettle', 'a kettle', [True, False], 'demo'")
    [asked] = [entry for entry in site.log() if entry["path"] == "/a.html"]
    sent = {name.lower(): value for name, value in asked["headers"].items()}
    assert sent["x-key"] == SECRET
    assert SECRET not in done.stdout + done.stderr
    assert not list((project.folder / "var").glob("cache/**/*.warc*"))


def test_shell_when_pages_are_fetched_one_after_the_other_then_each_is_shown_and_the_rules_hold(
    project: CrawlProject, site: SiteProcess
) -> None:
    shown = "fetch({!r}) or (response and response.css('title::text').get())"
    paths = ("/b.html", "/out/c.html", "/gone.html", "/")
    code = ", ".join(shown.format(site.url(HOST, path)) for path in paths)

    done = call(project, "shell", "--spider", "demo", "-c", f"[{code}]")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['b', None, None, 'start']"
    assert "scope.exclude_urls" in done.stderr
    assert "404" in done.stderr


def test_shell_when_a_page_is_in_the_cache_then_it_is_read_without_a_request(site: SiteProcess, tmp_path: Path) -> None:
    crawled = new_project(tmp_path / "p", site, **source(site, HOST))
    crawled.crawl()
    site.clear_log()

    url = site.url(HOST, "/a.html")
    code = f"(cached({url!r}), response.css('i::text').get(), cached({url + '?x'!r}), response.url)"
    done = call(crawled, "shell", "--spider", "demo", "-c", code)

    assert done.stdout.splitlines()[-1] == f"(None, 'water', None, '{url}')", done.stderr
    assert "the cache does not have it" in done.stderr
    assert site.log() == []


def test_parse_when_named_a_source_then_its_document_and_links_are_shown(
    project: CrawlProject, site: SiteProcess
) -> None:
    done = call(project, "parse", site.url(HOST, "/a.html"), "--spider", "demo", "--nocolour")

    assert done.returncode == 0, done.stderr
    assert "'title': 'a kettle'" in done.stdout
    assert f"<GET {site.url(HOST, '/b.html')}>" in done.stdout
    assert "/out/" not in done.stdout.split("# Requests")[1]


def test_fetch_when_named_a_source_then_its_body_is_printed_or_why_there_is_none(
    project: CrawlProject, site: SiteProcess
) -> None:
    good = call(project, "fetch", "--nolog", site.url(HOST, "/a.html"), "--spider", "demo")
    refused = call(project, "fetch", "--nolog", site.url(HOST, "/out/c.html"), "--spider", "demo")
    nothing = site.url(HOST, "/nothing.html")
    gone = call(project, "fetch", "--nolog", nothing, "--spider", "demo")
    unusable = call(project, "parse", site.url(HOST, "/"), "--spider", "demo", "-c", "parse_item")

    assert (good.returncode, "<title>a kettle</title>" in good.stdout) == (0, True)
    assert refused.returncode == 1
    assert "scope.exclude_urls" in refused.stderr.splitlines()[-1]
    assert (gone.returncode, gone.stderr) == (1, f"searchcrawl: {nothing}: 404 Not Found: {nothing}\n")
    assert unusable.returncode == 2
    assert "--callback: demo is a source, which has no callbacks" in unusable.stderr
