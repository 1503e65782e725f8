"""Spiders that users write in Python live beside the sources, as in any project of Scrapy (X-D15)."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from searchcrawl import open_project
from searchcrawl.exceptions import ConfigurationError
from tests.acceptance.support_project import CrawlProject, new_project, use_settings_module
from tests.crawl_forks import COMMANDS
from tests.hostile_server import HostileServer, redirect, whole
from tests.site.client import SiteProcess

SPIDER: Final = """
import scrapy

class Own(scrapy.Spider):
    name = "own"

    def __init__(self, base, **arguments):
        super().__init__(**arguments)
        self.base = base

    async def start(self):
        for path in ("/ok", "/ok", "/forbidden/page", "/there", "/away"):
            yield scrapy.Request(self.base + path)
        yield scrapy.Request("file:///etc/hostname")

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
"""
ROBOTS: Final = b"User-agent: *\nDisallow: /forbidden/"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        server.answers["/robots.txt"] = whole(ROBOTS)
        server.answers["/there"] = redirect("302 Found", "/ok?again")
        server.answers["/ok?again"] = whole()
        server.answers["/away"] = whole(b"", "503 Service Unavailable")
        yield server


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    project = new_project(tmp_path, site)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text("", "utf-8")
    (tmp_path / "own" / "spider.py").write_text(SPIDER, "utf-8")
    use_settings_module(tmp_path, "SPIDER_MODULES = ['own']\nDOWNLOAD_DELAY = 0.01\n")
    return project


def asked(server: HostileServer) -> list[str]:
    return [request.split(" ", 2)[1] for request in server.requests]


def test_crawl_when_a_spider_is_in_python_then_it_runs_as_with_scrapy_alone(
    project: CrawlProject, server: HostileServer
) -> None:
    items = project.folder / "items.jsonl"

    ended = project.command("crawl", "own", "-a", f"base={server.url}", "-o", str(items), "-s", "RETRY_TIMES=1")

    assert ended.returncode == 0, ended.stderr
    # robots.txt, the duplicate filter, redirects, retries and the log are those of Scrapy.
    assert sorted(asked(server)) == ["/away", "/away", "/ok", "/ok?again", "/robots.txt", "/there"]
    assert sorted(json.loads(line)["url"] for line in items.read_text("utf-8").splitlines()) == [
        f"{server.url}/ok", f"{server.url}/ok?again",
    ]  # fmt: skip
    assert items.stat().st_mode & 0o777 == 0o644
    assert "Gave up retrying <GET" in ended.stderr
    assert "Unsupported URL scheme 'file'" in ended.stderr
    assert "'robotstxt/forbidden': 1" in ended.stderr
    assert "Telnet console" not in ended.stderr
    # No table, no log of a source: nothing of ours is needed.
    assert not (project.folder / "var").exists()


def test_crawl_when_all_requests_of_a_python_spider_fail_then_its_log_says_so_and_a_guard_that_it_did_it(
    project: CrawlProject, server: HostileServer
) -> None:
    spider = SPIDER.replace(
        'class Own(scrapy.Spider):\n    name = "own"', 'class Other(scrapy.Spider):\n    name = "other"'
    )
    (project.folder / "own" / "other.py").write_text(spider, "utf-8")

    gone = project.command("crawl", "other", "-a", "base=http://127.0.0.1:9", "-s", "RETRY_TIMES=0")
    guarded = project.command("crawl", "own", "-a", f"base={server.url}", "-s", "SEARCHCRAWL_GUARD=1")

    assert gone.stderr.count("Error downloading <GET http://127.0.0.1:9/") == 5
    assert "refused by the address guard of searchcrawl: SEARCHCRAWL_GUARD" in guarded.stderr
    assert server.requests == []


def test_commands_of_scrapy_when_there_are_sources_and_spiders_then_each_is_told_apart(project: CrawlProject) -> None:
    assert project.command("list").stdout == "demo\nown\n"
    # The project's own delay is no matter of its sources.
    assert project.crawl("-a", "limit=1").exit_code == 3
    assert "that are for its spiders in Python, not for sources: DOWNLOAD_DELAY\n" in project.log()
    twice = project.folder / "own" / "twice.py"
    twice.write_text("import scrapy\nclass Twice(scrapy.Spider):\n    name = 'demo'\n", "utf-8")

    listed, crawled, checked = (
        project.command(*words) for words in (["list"], ["crawl", "demo"], ["sources", "check"])
    )

    said = "sources/demo.toml: name: a spider in Python has it too: own.twice.Twice\n"
    assert (listed.stdout, listed.stderr) == ("own\n", f"warning: {said}")
    assert (crawled.returncode, crawled.stderr) == (4, said)
    assert (checked.returncode, checked.stderr) == (4, said)


@pytest.mark.parametrize("script", ["scrapy", "searchcrawl"])
def test_edit_when_named_a_source_then_its_file_is_opened_though_it_is_broken(
    project: CrawlProject, script: str
) -> None:
    (project.folder / "sources" / "demo.toml").write_text("type = ", "utf-8")

    opened = {
        name: COMMANDS.run_as(script, project.folder, "edit", name, EDITOR="echo --wait") for name in ("demo", "own")
    }

    files = {"demo": "sources/demo.toml", "own": "own/spider.py"}
    assert {name: (done.returncode, done.stdout) for name, done in opened.items()} == {
        name: (0, f"--wait {project.folder / file}\n") for name, file in files.items()
    }


def test_check_and_fetch_when_no_source_is_named_then_work_as_with_scrapy_alone(
    project: CrawlProject, server: HostileServer
) -> None:
    checked = project.command("check")
    fetched = project.command("fetch", "--nolog", f"{server.url}/ok")

    assert re.search(r"Ran 0 contracts in [\d.]+s\n\nOK\n$", checked.stderr)
    assert "<title>page</title>" in fetched.stdout


@pytest.mark.parametrize("script", ["scrapy", "searchcrawl"])
def test_genspider_when_a_project_is_new_then_its_spider_is_listed_checked_and_crawled(
    server: HostileServer, tmp_path: Path, script: str
) -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return COMMANDS.run_as("searchcrawl" if words[0] == "init" else script, folder, *words)

    folder = tmp_path
    call("init", "p")
    folder = tmp_path / "p" / "sources"

    made = call("genspider", "mine", server.url)
    listed = call("list")
    crawled = call("crawl", "mine", "-s", "RETRY_TIMES=0")
    taken = call("genspider", "example", "example.com")
    (tmp_path / "p" / "sources" / "mine.toml").write_text("type = 1\n", "utf-8")
    checked, broken = call("list"), call("genspider", "mine", "example.com")

    assert (made.returncode, made.stderr) == (0, "")
    assert "in module:\n  spiders.mine\n" in made.stdout
    assert (listed.stdout, listed.stderr) == ("example\nmine\n", "")
    assert crawled.returncode == 0, crawled.stderr
    assert "'finish_reason': 'finished'" in crawled.stderr
    assert "already exists" in taken.stdout
    assert not (tmp_path / "p" / "spiders" / "example.py").exists()
    clash = "sources/mine.toml: name: a spider in Python has it too: spiders.mine.MineSpider"
    assert clash in checked.stderr
    assert broken.stderr.splitlines()[-1].endswith(clash)
    assert "Traceback" not in broken.stderr


def test_genspider_when_the_settings_name_modules_or_there_is_no_project_then_it_is_made_there_or_here(
    project: CrawlProject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nowhere = tmp_path_factory.mktemp("nowhere")
    made = [COMMANDS.run(folder, "genspider", "more", "example.com") for folder in (project.folder, nowhere)]

    assert [each.returncode for each in made] == [0, 0]
    assert (project.folder / "own" / "more.py").is_file()
    assert project.command("list").stdout == "demo\nmore\nown\n"
    assert [path.name for path in nowhere.iterdir()] == ["more.py"]


BROKEN: Final = {
    "bad": ("def broken(:\n", "settings module: SPIDER_MODULES: spiders.bad cannot be loaded: SyntaxError: "),
    "worse": (
        "import no_such_module\n",
        (
            "settings module: SPIDER_MODULES: spiders.worse cannot be loaded: "
            "ModuleNotFoundError: No module named 'no_such_module'"
        ),
    ),
    "leaving": ("exit()\n", "settings module: SPIDER_MODULES: spiders.leaving cannot be loaded: SystemExit: "),
}


@pytest.fixture
def mixed(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    """A source, a good spider and broken ones, in a folder that nobody made a package of."""
    project = new_project(tmp_path, site)
    (tmp_path / "spiders").mkdir()
    (tmp_path / "spiders" / "own.py").write_text(SPIDER, "utf-8")
    for name, (text, _) in BROKEN.items():
        (tmp_path / "spiders" / f"{name}.py").write_text(text, "utf-8")
    return project


def test_commands_when_modules_of_spiders_are_broken_then_a_warning_and_all_else_runs(
    mixed: CrawlProject, server: HostileServer
) -> None:
    warnings = [f"warning: {said}" for _, said in BROKEN.values()]

    listed = mixed.command("list")
    crawled = mixed.command("crawl", "demo", "-a", "limit=1", "--json")
    in_python = mixed.command("crawl", "own", "-a", f"base={server.url}", "-s", "RETRY_TIMES=0")
    every = mixed.command("crawl", "--all", "-a", "limit=1")

    assert (listed.returncode, listed.stdout) == (0, "demo\nown\n")
    assert (crawled.returncode, json.loads(crawled.stdout)["counts"]["fetched"]) == (3, 1)
    assert in_python.returncode == 0, in_python.stderr
    assert every.returncode == 3, every.stderr
    for ended in (listed, crawled, in_python, every):
        assert [ended.stderr.count(warning) for warning in warnings] == [1, 1, 1]
        assert "no_such_module" not in ended.stderr.replace(warnings[1], "")


@pytest.mark.parametrize("script", ["scrapy", "searchcrawl"])
def test_crawl_when_a_broken_module_may_have_the_name_then_exit_4_and_what_is_wrong(
    mixed: CrawlProject, script: str
) -> None:
    ended = COMMANDS.run_as(script, mixed.folder, "crawl", "mine")
    checked = mixed.command("sources", "check")

    assert (ended.returncode, checked.returncode) == (4, 4)
    for said in (ended.stderr, checked.stderr):
        assert all(f"\n{begin}" in f"\n{said}" for _, begin in BROKEN.values())
    assert open_project(mixed.folder).crawl("demo", limit=1).exit_code == 3


def test_crawl_when_the_settings_module_is_broken_then_exit_4_and_what_is_wrong(project: CrawlProject) -> None:
    (project.folder / "house.py").write_text("from nowhere import *\n", "utf-8")

    for words in (["crawl", "demo"], ["list"], ["sources", "check"]):
        ended = project.command(*words)

        assert ended.returncode == 4
        assert (
            ended.stderr == "settings module: house cannot be loaded: ModuleNotFoundError: No module named 'nowhere'\n"
        )


WRONG: Final = {
    ("urls", "demo", "--code", "999"): "there is no such code (got 999): docs/reference/codes.md has all",
    ("crawl", "demo", "--processes", "0"): "error: --processes: must be a whole number of at least 1 (got 0)",
    ("crawl", "own", "-L", "LOUD"): "the log level must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL (got LOUD)",
    (
        "check",
        "demo",
    ): "demo is a source, which has no callbacks: use searchcrawl sources check, and searchcrawl test URL "
    "--source demo for one page",
}


def test_commands_when_they_are_used_wrongly_then_each_says_what_is_wrong(project: CrawlProject) -> None:
    for words, said in WRONG.items():
        ended = project.command(*words)
        assert (ended.returncode, ended.stderr.splitlines()[-1].endswith(said)) == (2, True), ended.stderr
    assert not (project.folder / "var").exists()

    asked_for_json = project.command("crawl", "own", "-a", "base=http://127.0.0.1:9", "-s", "RETRY_TIMES=0", "--json")
    helped = project.command("help")

    assert "searchcrawl: --json: own is a spider in Python, whose statistics are in its log" in asked_for_json.stderr
    assert helped.returncode == 0
    assert helped.stdout.startswith("Usage: searchcrawl COMMAND [options] [arguments]\n")
    with pytest.raises(ValueError, match="code: there is no such code"):
        open_project(project.folder).urls("demo", code="x")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"/nowhere/at-all: is no project: it has no searchcrawl\.toml"):
        open_project("/nowhere/at-all")
