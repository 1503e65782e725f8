"""What the code of users prints is no part of what a command answers (L1, K4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project, use_settings_module
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess

HOST: Final = "prints.acme.test"
MINE: Final = """
from searchcrawl.plugins import Converted

print("said at import")

class Notes:
    def convert(self, body, *, url, mimetype):
        print("said by a converter")
        return Converted(text=body.decode())

class Service:
    def process(self, document):
        print("said by a service")
        return document

class Pipeline:
    def process_item(self, item):
        print("said by a pipeline")
        return item
"""
SPIDER: Final = """
import scrapy

class Talking(scrapy.Spider):
    name = "talking"

    async def start(self):
        print("said by a spider in Python")
        yield {"word": "juniper"}
"""
SAID: Final = ("at import", "by a converter", "by a service", "by a pipeline")


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    site.set_page(HOST, "/", page("start", "/read.note"))
    site.set_page(HOST, "/read.note", "juniper", content_type="application/x-note")
    return site


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    settings = {"ITEM_PIPELINES": {"prints_of_site.Pipeline": 100}}
    tables = source(site, HOST) | {"document_service": "prints_of_site:Service", "settings": settings}
    made = new_project(tmp_path, site, **tables)
    (tmp_path / "prints_of_site.py").write_text(MINE, "utf-8")
    (tmp_path / "spiders_of_site").mkdir()
    (tmp_path / "spiders_of_site" / "__init__.py").write_text("", "utf-8")
    (tmp_path / "spiders_of_site" / "talking.py").write_text(SPIDER, "utf-8")
    use_settings_module(tmp_path, "SPIDER_MODULES = ['spiders_of_site']\n")
    config = tmp_path / "searchcrawl.toml"
    converters = '[converters]\n"application/x-note" = "prints_of_site:Notes"\n'
    config.write_text(f"{config.read_text('utf-8')}\n{converters}", "utf-8")
    return made


@pytest.mark.parametrize("processes", ["1", "2"])
def test_l1_crawl_when_own_code_prints_then_the_answer_is_json_alone(project: CrawlProject, processes: str) -> None:
    crawled = project.crawl("--processes", processes)

    assert crawled.exit_code == 0
    assert len(project.indexed()) == 2
    assert [each for each in SAID if f"said {each}" not in crawled.errors] == []


@pytest.mark.parametrize("command", [("sources", "check", "--json"), ("status", "demo", "--json")])
def test_l1_command_when_own_modules_print_then_the_answer_is_json_alone(
    project: CrawlProject, command: tuple[str, ...]
) -> None:
    done = project.command(*command)

    assert isinstance(json.loads(done.stdout), dict)
    assert "said at import" in done.stderr


def test_l1_spider_in_python_when_it_prints_then_that_is_its_answer(project: CrawlProject) -> None:
    done = project.command("crawl", "talking", "-o=-:jsonlines")

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["said by a spider in Python", '{"word": "juniper"}']
