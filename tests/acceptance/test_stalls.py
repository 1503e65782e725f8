"""Pages that stop the process: found out without blaming others, set aside, and all other pages are crawled (X-D12, X-R13)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from searchcrawl.store.states import FetchState
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess
from tests.site.pdf import make_pdf_of_forms
from tests.stored_rows import query_columns

pytestmark = pytest.mark.extended

HOST: Final = "stalls.acme.test"
BAD: Final = f"{HOST}/bad.html"
NAMES: Final = ("bad", *(f"page{number}" for number in range(24)))
#: Ways to hold the reactor for good; the second one keeps the lock of the interpreter as well.
HANGS: Final = {
    "it waits": "time.sleep(3600)",
    "it searches": "re.fullmatch('(a|a)*', 'a' * 64 + 'b')",
    "it computes": "any(iter(int, 1))",
}
#: What happens to the process at the bad page, while the file is there.
PIPELINE: Final = """
import os, re, signal, time
from pathlib import Path

class Pipeline:
    def process_item(self, item):
        if item.url.endswith("/bad.html") and Path("hostile").exists():
            {what}
        return item
"""
#: Sending one of the pages holds the lock of the interpreter for good; the page beside it takes its time.
DELIVERY: Final = """
import asyncio, re, time
from pathlib import Path
from searchcrawl.delivery import documents

build = documents.build_indexed_document

def build_slowly(row, *args, **values):
    if row.url.endswith("/heavy.html") and Path("poison").exists():
        time.sleep(0.5)
        re.fullmatch("(a|a)*", "a" * 64 + "b")
    return build(row, *args, **values)

documents.build_indexed_document = build_slowly

class Pipeline:
    async def process_item(self, item):
        if item.url.endswith("/bad.html") and Path("hostile").exists():
            time.sleep(3600)
        elif item.url.endswith("/innocent.html"):
            await asyncio.sleep(2)
        return item
"""
OPTIONS: Final = ("-s", 'ITEM_PIPELINES={"mine.Pipeline": 50}', "-s", "SEARCHCRAWL_STALL_SECONDS=3")
KILLED: Final = -9


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, **{name: page(f"text of {name}") for name in NAMES})
    return site


def make_project(folder: Path, site: SiteProcess, what: str) -> CrawlProject:
    project = new_project(folder, site, **source(site, HOST))
    set_hostile(project, what)
    return project


def set_hostile(project: CrawlProject, what: str) -> None:
    (project.folder / "mine.py").write_text(PIPELINE.format(what=what), "utf-8")
    (project.folder / "hostile").touch()


def crawl(project: CrawlProject) -> int:
    """The exit code of a run."""
    return COMMANDS.run(project.folder, "crawl", "demo", *OPTIONS).returncode


def others() -> list[str]:
    """All documents but that of the bad page."""
    return sorted({f"{HOST}/", *(f"{HOST}/{name}.html" for name in NAMES)} - {BAD})


@pytest.mark.parametrize("what", HANGS.values(), ids=HANGS)
@pytest.mark.few(1)
def test_page_when_it_stops_the_reactor_each_time_then_it_is_set_aside_and_all_others_are_there(
    site: SiteProcess, tmp_path: Path, what: str
) -> None:
    project = make_project(tmp_path, site, what)
    stacks = tmp_path / "var" / "log" / "demo.stacks"

    assert crawl(project) == 1
    assert "mine.py" in project.log()
    assert stacks.stat().st_size > 0
    assert [crawl(project), crawl(project)] == [1, 1]
    assert project.codes() == {**dict.fromkeys(others(), 200), BAD: 0}
    assert crawl(project) == 1
    site.clear_log()
    ended = crawl(project)

    status = project.ask("status", "demo")
    warnings, counts = status["warnings"], status["counts"]
    explained = project.ask("explain", site.url(HOST, "/bad.html"))
    assert (ended, project.codes()[BAD], project.indexed()) == (0, 966, others())
    assert (counts["fetched"], counts["fetch_failures"]) == (len(others()), 1)
    assert not [each for each in site.log() if each["path"] == "/bad.html"]
    assert not stacks.exists()
    assert [each["code"] for each in warnings] == ["set_aside"]
    assert "/bad.html" in warnings[0]["message"]
    assert "966" in explained["verdict"]

    # An edit gives it one more chance.
    project.edit(**source(site, HOST), keep={"exclude_urls": ["*/nothing/*"]})
    assert [crawl(project), crawl(project), project.codes()[BAD]] == [1, 0, 966]
    (tmp_path / "hostile").unlink()
    project.edit(**source(site, HOST), keep={"exclude_urls": ["*/none/*"]})
    assert (crawl(project), project.indexed()) == (0, sorted([*others(), BAD]))


@pytest.mark.parametrize("suspected", [True, False])
@pytest.mark.few(1)
def test_page_when_the_process_is_killed_twenty_times_then_nothing_is_set_aside(
    site: SiteProcess, tmp_path: Path, suspected: bool
) -> None:
    project = make_project(tmp_path, site, HANGS["it waits"])
    if suspected:
        assert [crawl(project), crawl(project)] == [1, 1]
    set_hostile(project, "os.kill(os.getpid(), signal.SIGKILL)")

    killed = [crawl(project) for _ in range(20)]
    (tmp_path / "hostile").unlink()
    ended = crawl(project)

    assert killed == [KILLED] * 20
    assert (ended, project.indexed()) == (0, sorted([*others(), BAD]))
    assert set(project.codes().values()) == {200}


@pytest.mark.soak
def test_process_when_it_is_stopped_then_suspects_are_still_visited_alone(site: SiteProcess, tmp_path: Path) -> None:
    project = make_project(tmp_path, site, HANGS["it waits"])
    assert crawl(project) == 1
    # The limit ends it while suspects wait.
    stopped = COMMANDS.run(project.folder, "crawl", "demo", *OPTIONS, "-a", "limit=5").returncode
    ended = [crawl(project), crawl(project)]

    assert stopped in {1, 3}
    assert (ended, project.codes()) == ([1, 1], {**dict.fromkeys(others(), 200), BAD: 0})


@pytest.mark.soak
def test_document_when_its_worker_is_ended_three_times_then_it_is_set_aside(site: SiteProcess, tmp_path: Path) -> None:
    host = "worker.acme.test"
    site.set_page(host, "/", page("start", "/endless.pdf"))
    # Reading it takes a century: its forms show each other.
    site.set_page(host, "/endless.pdf", make_pdf_of_forms(12), content_type="application/pdf")
    project = new_project(tmp_path, site, **source(site, host))

    codes = []
    for _ in range(4):
        assert project.crawl().exit_code == 0
        codes.append(project.codes()[f"{host}/endless.pdf"])

    assert codes == [904, 904, 966, 966]
    assert len([each for each in site.log() if each["path"] == "/endless.pdf"]) == 3


@pytest.mark.few(1)
def test_documents_when_a_page_stops_the_process_again_and_again_then_they_are_in_the_index_before_it_is_visited(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = make_project(tmp_path, site, HANGS["it waits"])

    assert crawl(project) == 1
    under_way = {url for url, row in project.rows().items() if row["fetch_state"] == FetchState.FETCHING}
    ended = crawl(project)

    # The bad page comes first of the suspects, so that the others are still to be visited.
    assert (ended, project.codes()[BAD]) == (1, 0)
    assert set(project.indexed()) >= set(others()) - under_way
    assert crawl(project) == 1
    assert project.indexed() == others()


@pytest.mark.few(1)
def test_page_when_the_delivery_stops_the_process_again_and_again_then_no_page_is_blamed(
    site: SiteProcess, tmp_path: Path
) -> None:
    host = "delivery.acme.test"
    names = ("bad", "heavy", "innocent")
    pages(site, host, **{name: page(f"text of {name}") for name in names})
    project = new_project(tmp_path, site, **source(site, host), project={"cache": {"threshold_mb": 0.0001}})
    (tmp_path / "mine.py").write_text(DELIVERY, "utf-8")
    (tmp_path / "hostile").touch()
    assert crawl(project) == 1
    (tmp_path / "hostile").unlink()
    (tmp_path / "poison").touch()

    stopped = [crawl(project) for _ in range(4)]
    stops = [row["failures"] for row in query_columns(tmp_path, "SELECT failures FROM urls") if row["failures"]]
    (tmp_path / "poison").unlink()
    ended = crawl(project)

    assert stopped == [1, 1, 1, 1]
    assert stops == []
    assert (ended, set(project.codes().values())) == (0, {200})
    assert project.indexed() == sorted([f"{host}/", *(f"{host}/{name}.html" for name in names)])


@pytest.mark.parametrize("command", [("test", "--source", "demo"), ("explain", "--live")], ids=["test", "explain"])
@pytest.mark.few(1)
def test_dry_run_when_its_page_keeps_the_lock_of_the_interpreter_then_it_ends_with_its_stacks(
    site: SiteProcess, tmp_path: Path, command: tuple[str, ...]
) -> None:
    project = make_project(tmp_path, site, HANGS["it searches"])

    ended = project.command(*command, site.url(HOST, "/bad.html"), *OPTIONS)

    assert ended.returncode == 1
    assert "mine.py" in ended.stderr
