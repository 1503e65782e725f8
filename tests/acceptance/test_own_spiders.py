"""A subclass of ``WebSpider`` as the spider of a source: what its methods change, and what becomes of their errors (X-S11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project, use_settings_module
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

NAMES: Final = ("a", "b", "c", "printed")
HAS: Final = "a source has list_start_urls, find_opening, choose_links, read_fields and find_refusal for that"
MINE: Final = """
from searchcrawl.spiders.web_spider import WebSpider


class Shop(WebSpider):
    def list_start_urls(self):
        return [self.source.start.urls[0] + "extra.html"]

    def choose_links(self, document):
        for link in document.links:
            if "printed" not in link:
                yield link
        yield "/hidden.html"
        yield "http://elsewhere.test/"

    def read_fields(self, document):
        prices = self.select(document).css("b::text").getall()
        return {"price": prices, "author": "the shop", **({"title": "Offer"} if prices else {})}

    def find_refusal(self, document):
        return "sold out" if "sold out" in document.text else None


class Links(WebSpider):
    def choose_links(self, document):
        return (1 / 0 for link in document.links) if document.url.endswith("/a.html") else document.links


class Many(WebSpider):
    def choose_links(self, document):
        return document.url if document.url.endswith("/a.html") else document.links


class Fields(WebSpider):
    def read_fields(self, document):
        return {"title": None} if document.url.endswith("/a.html") else {}


class Refusals(WebSpider):
    def find_refusal(self, document):
        return True if document.url.endswith("/a.html") else None


class Starts(WebSpider):
    def list_start_urls(self):
        return ["mailto:us@acme.test"]


class Broken(WebSpider):
    def list_start_urls(self):
        raise RuntimeError("no list")


class Cannot(WebSpider):
    def __init__(self, *args, **kwargs):
        raise SystemExit("no spider")


class Unmade(WebSpider):
    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        raise SystemExit("no crawler")


class Parsing(WebSpider):
    async def parse(self, response):
        yield {}


class Setting(WebSpider):
    @classmethod
    def update_settings(cls, settings):
        settings.set("DOWNLOAD_DELAY", 0)


class Tuned(WebSpider):
    custom_settings = {"DOWNLOAD_DELAY": 0}


class Plain:
    pass
"""


def prepared(site: SiteProcess, folder: Path, host: str, spider: str, **keys: Any) -> CrawlProject:
    pages(site, host, **{name: page(f"page {name}", "/b.html") for name in NAMES})
    (folder / "mine.py").write_text(MINE, "utf-8")
    return new_project(folder, site, **source(site, host), spider=spider, **keys)


def test_crawl_when_a_source_has_a_spider_of_ones_own_then_its_methods_choose_links_fields_and_pages(
    site: SiteProcess, tmp_path: Path
) -> None:
    host = "shop.acme.test"
    attributes = {"meta:price": "price", "types": {"price": "number"}}
    project = prepared(site, tmp_path, host, "mine:Shop", attributes=attributes)
    site.set_page(host, "/b.html", page("page b", text="It is sold out <b>3.5</b>"))
    site.set_page(host, "/c.html", page("page c", text="It costs <b>12.5</b>"))
    site.set_page(host, "/hidden.html", page("page hidden"))
    site.set_page(host, "/extra.html", page("page extra"))

    ended = project.crawl()

    rows = project.rows()
    assert ended.exit_code == 0
    assert {url.removeprefix(host): (row["code"], row["rule"]) for url, row in rows.items()} == {
        "/": (200, None),
        "/a.html": (200, None),
        "/b.html": (952, "spider: mine:Shop.find_refusal: sold out"),
        "/c.html": (200, None),
        "/hidden.html": (200, None),
        "/extra.html": (200, None),
    }
    assert rows[f"{host}/extra.html"]["depth"] == 0
    assert ended.refused_links == {"elsewhere.test": "scope.include_hosts: no include matches"}
    hits = project.ask("search", "author:shop")["hits"]
    found = {hit["title"]: hit["attributes"].get("price") for hit in hits}
    assert found == {"start": None, "page a": None, "Offer": 12.5, "page hidden": None, "page extra": None}

    # Without the class its start page is an orphan, and its links and fields are the page's own once more.
    project.edit(**source(site, host), attributes=attributes)
    reason = project.command("status", "demo", "--json").stdout
    plain = project.crawl()
    assert '"force_recrawl":"changed: spider"' in reason
    assert plain.exit_code == 0
    assert project.rows()[f"{host}/printed.html"]["code"] == 200
    assert project.rows()[f"{host}/b.html"]["code"] == 200


@pytest.mark.parametrize(
    ("spider", "error"),
    [
        ("Links", "spider mine:Links.choose_links: ZeroDivisionError: division by zero"),
        ("Many", "spider mine:Many.choose_links: TypeError: returned one text, not a list of URLs"),
        ("Fields", "spider mine:Fields.read_fields: TypeError: title must be a string (got NoneType)"),
        ("Refusals", "spider mine:Refusals.find_refusal: TypeError: returned a bool, not a text or None"),
    ],
)
def test_crawl_when_a_method_of_a_spider_fails_then_it_costs_that_page_alone(
    site: SiteProcess, tmp_path: Path, spider: str, error: str
) -> None:
    host = "failing-spider.acme.test"
    project = prepared(site, tmp_path, host, f"mine:{spider}")

    ended = project.crawl()

    rows = project.rows()
    failed = f"{host}/a.html"
    assert ended.exit_code == 0
    assert {url: row["code"] for url, row in rows.items()} == {url: 903 if url == failed else 200 for url in rows}
    assert rows[failed]["error"] == error
    assert f"{error} (http" in project.log()
    assert "Traceback" not in project.log()


@pytest.mark.parametrize(
    ("spider", "message"),
    [
        ("mine:Nope", "cannot be imported: AttributeError: module 'mine' has no attribute 'Nope' (got \"mine:Nope\")"),
        ("nowhere:Nope", "cannot be imported: ModuleNotFoundError: No module named 'nowhere' (got \"nowhere:Nope\")"),
        ("mine:Plain", 'is no subclass of searchcrawl.spiders.web_spider.WebSpider (got "mine:Plain")'),
        ("mine:WebSpider", 'is no subclass of searchcrawl.spiders.web_spider.WebSpider (got "mine:WebSpider")'),
        ("mine:Tuned", 'must have no custom_settings: use [settings] (got "mine:Tuned")'),
        ("mine:Unmade", "mine:Unmade cannot begin: SystemExit('no crawler')"),
        ("mine:Parsing", f'must not override parse: {HAS} (got "mine:Parsing")'),
        ("mine:Setting", 'must not override update_settings: use [settings] (got "mine:Setting")'),
        ("mine", 'must be "module:Class" (got "mine")'),
        ("mine:Starts", "mine:Starts.list_start_urls: not an http or https URL: 'mailto:us@acme.test'"),
        ("mine:Broken", "mine:Broken.list_start_urls failed: RuntimeError('no list')"),
        ("mine:Cannot", "mine:Cannot cannot begin: SystemExit('no spider')"),
    ],
)
def test_crawl_when_the_spider_of_a_source_cannot_be_had_then_exit_4_with_file_and_key_and_no_request(
    site: SiteProcess, tmp_path: Path, spider: str, message: str
) -> None:
    project = prepared(site, tmp_path, "no-spider.acme.test", spider)
    site.clear_log()

    ended = project.crawl()

    assert (ended.exit_code, ended.errors.splitlines()[-1]) == (4, f"sources/demo.toml: spider: {message}")
    assert site.log() == []


def test_crawl_when_a_web_spider_has_no_source_then_it_says_where_to_name_it(site: SiteProcess, tmp_path: Path) -> None:
    project = prepared(site, tmp_path, "sourceless.acme.test", "mine:Shop")
    (tmp_path / "own.py").write_text(
        "from searchcrawl.spiders.web_spider import WebSpider\n\n\nclass Own(WebSpider):\n    name = 'own'\n", "utf-8"
    )
    use_settings_module(tmp_path, "SPIDER_MODULES = ['own']\n")

    ended = project.command("crawl", "own")

    assert ended.returncode == 4
    assert ended.stderr == 'own:Own: is the spider of no source: name it in a source file, as spider = "own:Own"\n'
    assert project.command("list").stdout == "demo\n"
