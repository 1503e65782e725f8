"""Pages that end the process while it parses them: found out, set aside, and all other pages are crawled (X-D12, X-R13)."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import COMMANDS, Forks
from tests.site.client import SiteProcess
from tests.stored_rows import query_columns

pytestmark = pytest.mark.extended

HOST: Final = "faults.acme.test"
NAMES: Final = ("bad", "worse", *(f"page{number}" for number in range(24)))
OPTIONS: Final = ("-s", 'ITEM_PIPELINES={"mine.Pipeline": 50}')
#: A fault of native code while certain pages are parsed, as long as the file with their words is there.
PARSER: Final = """
import os, time
from pathlib import Path
from searchcrawl.html import tree

parse = tree.LexborHTMLParser

def parse_badly(html, **options):
    text = html if isinstance(html, str) else html.decode("utf-8", "replace")
    words = Path("hostile").read_text().split(",") if Path("hostile").exists() else []
    if any(word in text for word in words):
        os.kill(os.getpid(), {signal})
    time.sleep({slowly})
    return parse(html, **options)

tree.LexborHTMLParser = parse_badly
# Workers begin with it, too.
os.environ["PYTHONPATH"] = os.path.dirname(__file__)

class Pipeline:
    def process_item(self, item):
        return item
"""


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, **{name: page(f"text of {name}.") for name in NAMES})
    return site


def make_project(
    folder: Path, site: SiteProcess, *, number: int = signal.SIGSEGV, slowly: float = 0.0, words: str = ""
) -> CrawlProject:
    project = new_project(folder, site, **source(site, HOST))
    break_parser(folder, number=number, slowly=slowly, words=words)
    return project


def break_parser(folder: Path, *, number: int = signal.SIGSEGV, slowly: float = 0.0, words: str = "") -> None:
    (folder / "mine.py").write_text(PARSER.format(signal=int(number), slowly=slowly), "utf-8")
    (folder / "sitecustomize.py").write_text("import mine", "utf-8")
    if words:
        (folder / "hostile").write_text(words, "utf-8")


def crawl(project: CrawlProject, *options: str) -> int:
    """The exit code of a run, negative: the signal that ended it."""
    return COMMANDS.run(project.folder, "crawl", "demo", *OPTIONS, *options).returncode


def others(*bad: str) -> list[str]:
    """All documents but those of bad pages."""
    return sorted({f"{HOST}/", *(f"{HOST}/{name}.html" for name in NAMES if name not in bad)})


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
@pytest.mark.few(1)
def test_page_when_parsing_it_ends_the_process_each_time_then_it_is_set_aside_and_all_others_are_there(
    site: SiteProcess, tmp_path: Path, number: int
) -> None:
    project = make_project(tmp_path, site, number=number, words="text of bad.")

    ended = [crawl(project) for _ in range(4)]

    bad = project.rows()[f"{HOST}/bad.html"]
    # From then on a worker reads it.
    assert ended == [-number, 0, 0, 0]
    assert (bad["code"], f"(exit -{int(number)})" in bad["error"]) == (966, True)
    assert project.indexed() == others("bad")
    assert f"the run before ended while it parsed {site.url(HOST, '/bad.html')}" in project.log()
    assert not list((tmp_path / "var" / "log").glob("*.parsing"))

    # An edit gives it one more chance.
    (tmp_path / "hostile").unlink()
    project.edit(**source(site, HOST), keep={"exclude_urls": ["*/none/*"]})
    assert (crawl(project), project.indexed()) == (0, others())


@pytest.mark.few(1)
def test_pages_when_parsing_two_of_them_ends_the_process_then_both_are_set_aside(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = make_project(tmp_path, site, words="text of bad.,text of worse.")

    ended = [crawl(project) for _ in range(4)]

    codes = project.codes()
    assert ended == [-signal.SIGSEGV] * 2 + [0, 0]
    assert (codes[f"{HOST}/bad.html"], codes[f"{HOST}/worse.html"]) == (966, 966)
    assert project.indexed() == others("bad", "worse")


@pytest.mark.few(1)
def test_seed_when_parsing_it_ends_the_process_then_it_is_set_aside(site: SiteProcess, tmp_path: Path) -> None:
    host = "seed.acme.test"
    pages(site, host, one=page("text of one."))
    project = new_project(tmp_path, site, **source(site, host))
    break_parser(tmp_path, words="one.html")

    ended = [crawl(project) for _ in range(4)]

    assert ended[0] == -signal.SIGSEGV
    assert min(ended[1:]) >= 0
    assert project.codes()[f"{host}/"] == 966


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
@pytest.mark.few(1)
def test_page_when_parsing_it_ends_each_process_of_a_run_then_the_others_are_there_and_it_is_set_aside(
    site: SiteProcess, tmp_path: Path, number: int
) -> None:
    project = make_project(tmp_path, site, number=number, words="text of bad.")

    ended = [crawl(project, "--processes", "2") for _ in range(3)]

    assert ended == [0, 0, 0]
    assert project.codes()[f"{HOST}/bad.html"] == 966
    assert project.indexed() == others("bad")


@pytest.mark.soak
def test_pages_when_the_process_is_killed_at_random_twenty_times_then_nothing_is_set_aside(
    site: SiteProcess, tmp_path: Path
) -> None:
    host = "killed.acme.test"
    pages(site, host, **{name: page(f"text of {name}") for name in NAMES})
    project = new_project(tmp_path, site, **source(site, host))
    break_parser(tmp_path, slowly=0.03)
    chance, killed, runs = random.Random(7), 0, 0

    with Forks(1) as forks:
        while killed < 20:
            # All of them are parsed again.
            pages(site, host, **{name: page(f"text of {name}, {runs}") for name in NAMES})
            running = forks.start(project.folder, "crawl", "demo", *OPTIONS)
            time.sleep(chance.uniform(0.3, 1.3))
            running.signal(signal.SIGKILL)
            killed += running.wait() == -signal.SIGKILL
            runs += 1
    ended = crawl(project)

    stops = [row["failures"] for row in query_columns(tmp_path, "SELECT failures FROM urls") if row["failures"]]
    assert (ended, set(project.codes().values())) == (0, {200})
    assert len(project.indexed()) == len(NAMES) + 1
    assert stops == []
