"""L8, F5, L12: calendars, session ids, growing paths, facets and soft 404 end; all good pages among them are indexed."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.index.opening import open_index
from searchcrawl.sources.loading import load_project
from tests.acceptance.support_project import run_apart
from tests.crawl_forks import Forks
from tests.site.client import write_project
from tests.stored_rows import query, query_columns
from tests.trap_site import TrapSite, kinds_of

pytestmark = pytest.mark.extended

NAME: Final = "traps"
GOOD: Final = 120
#: The traps that only their text betrays, by the first segment of their paths; the others end by other rules, too.
TRAPS: Final = ("calendar", "month", "s", "shop")
AFTER: Final = 40
#: The paths that only have a session.
IN_SESSION: Final = re.compile(r"^/s/|[?&]sid=")
LIMIT_SECONDS: Final = 300
MAX_REQUESTS: Final = 10_000
MAX_MB: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """Two runs over a trap site: what it was asked for, and the status after the first."""

    folder: Path
    site: TrapSite
    codes: list[int]
    requested: list[str]
    again: list[str]
    status: dict[str, Any]


def list_indexed(folder: Path, site: TrapSite) -> set[str]:
    """The paths of all documents in the index."""
    with closing(open_index(load_project(folder))) as index:
        return {entry.url.removeprefix(site.url("")) for entry in index.scan(NAME)}


def write(folder: Path, site: TrapSite, **scope: Any) -> Path:
    return write_project(folder, site.port, NAME, **overrides(site, **scope))


def overrides(site: TrapSite, **scope: Any) -> dict[str, Any]:
    return {"start": {"urls": [site.url()]}, "scope": {"include_hosts": ["traps.acme.test"], **scope}}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Iterator[Crawled]:
    with TrapSite(GOOD) as site:
        folder = write(tmp_path_factory.mktemp("traps"), site, trap_after=AFTER)
        codes = [forks.run(folder, "crawl", NAME)]
        requested = site.requested()
        forks.run(folder, "status", NAME, "--json")
        status = json.loads((folder / "output.txt").read_text("utf-8").splitlines()[-1])
        codes.append(forks.run(folder, "crawl", NAME))
        again = site.requested()[len(requested) :]
        yield Crawled(folder=folder, site=site, codes=codes, requested=requested, again=again, status=status)


def test_crawl_when_a_site_is_full_of_traps_then_it_ends_with_all_good_pages(crawled: Crawled) -> None:
    good = set(crawled.site.pages.good_paths())

    assert crawled.codes == [0, 0]
    assert good - list_indexed(crawled.folder, crawled.site) == set()
    assert len(crawled.requested) < 20 * GOOD
    # The site answers any path: the first pages that are like that answer are judged once more, and no other.
    assert len(crawled.requested) - len(set(crawled.requested)) <= 10


def test_status_when_patterns_are_ended_then_traps_are_named_and_no_good_page(crawled: Crawled) -> None:
    messages = [warning["message"] for warning in crawled.status["warnings"] if warning["code"] == "trap"]
    patterns = [match[1] for message in messages if (match := re.search(r"test:\d+(/\S*) is ended", message))]
    log = (crawled.folder / "var" / "log" / f"{NAME}.log").read_text("utf-8")

    assert len(patterns) == len(messages) > 0
    assert kinds_of(patterns).keys() & set(TRAPS)
    assert set(patterns).isdisjoint({"/articles/{n}.html", "/product?id", "/posts/*", "/notes/*"})
    # F5: and the log said so once.
    assert [log.count(f"{crawled.site.url(pattern)} is ended") for pattern in patterns] == [1] * len(patterns)


def refused_paths(crawled: Crawled) -> dict[str, bool]:
    """The paths that were refused as those of traps, and whether they had been fetched before."""
    statement = "SELECT url, code, last_fetched_ms FROM urls WHERE rule LIKE 'scope.trap_after:%'"
    rows = query_columns(crawled.folder, statement)
    assert {row["code"] for row in rows} == {961}
    return {row["url"].removeprefix(crawled.site.url("")): row["last_fetched_ms"] is not None for row in rows}


def test_rows_when_their_pattern_is_ended_then_they_say_so_and_what_was_fetched_of_them_is_withheld(
    crawled: Crawled,
) -> None:
    refused = refused_paths(crawled)

    withheld = {path for path, was_fetched in refused.items() if was_fetched}
    assert len(refused) - len(withheld) > 500
    assert withheld <= set(crawled.requested)
    assert (refused.keys() - withheld).isdisjoint(crawled.requested)
    assert withheld.isdisjoint(list_indexed(crawled.folder, crawled.site))
    # The start page and the lists have no text of their own either.
    others = {
        path
        for path in list_indexed(crawled.folder, crawled.site) - set(crawled.site.pages.good_paths())
        if not path.startswith("/list/")
    }
    assert len(others) < 20
    assert query(crawled.folder, "SELECT COUNT(*) FROM urls WHERE fetch_state <> 2") == [(0,)]


def test_next_run_when_patterns_are_ended_then_known_pages_are_visited_and_nothing_else(crawled: Crawled) -> None:
    # Not those that a host is probed with.
    rows = {url.removeprefix(crawled.site.url("")) for (url,) in query(crawled.folder, "SELECT url FROM urls")}
    first, second = ({path for path in paths if path in rows} for paths in (crawled.requested, crawled.again))

    assert len(first) > GOOD
    assert second == first - refused_paths(crawled).keys()


@pytest.mark.parametrize("kind", ["session-path", "session-query"])
def test_crawl_when_each_page_has_a_new_session_then_few_more_pages_of_the_trap_are_visited_than_its_limit(
    tmp_path: Path, forks: Forks, kind: str
) -> None:
    with TrapSite(GOOD, module="tests.trap_kinds", arguments=[kind]) as site:
        folder = write(tmp_path, site)
        code = forks.run(folder, "crawl", NAME)
        requested, good = site.requested(), set(site.pages.good_paths())
        indexed = list_indexed(folder, site)

    assert code == 0
    assert good - indexed == set()
    assert not [path for path in indexed if IN_SESSION.search(path)]
    # Two patterns are ended, each after ``trap_after`` (200) pages; what came before that is less.
    assert len([path for path in requested if IN_SESSION.search(path)]) <= 800


def peak_mb(folder: Path) -> tuple[subprocess.CompletedProcess[str], float]:
    """A crawl in a process of its own, and the most memory that a child of ours took."""
    command = (sys.executable, "-m", "searchcrawl", "crawl", NAME, "--json")
    ended = run_apart(folder, *command, seconds=2 * LIMIT_SECONDS)
    return ended, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


@pytest.mark.soak
def test_crawl_when_a_million_urls_are_traps_then_it_ends_within_its_limits(tmp_path: Path) -> None:
    with TrapSite(500) as site:
        folder = write(tmp_path, site)
        begun = time.monotonic()

        ended, megabytes = peak_mb(folder)

        seconds = time.monotonic() - begun
        status, requested = json.loads(ended.stdout), site.requested()
        indexed = list_indexed(folder, site)
        good = set(site.pages.good_paths())

    named = " ".join(warning["message"] for warning in status["warnings"])
    print(f"{len(requested)} requests, {seconds:.0f} s, {megabytes:.0f} MB, {kinds_of(requested)}")
    assert (ended.returncode, status["run"]["end_reason"]) == (0, "finished")
    assert good - indexed == set()
    assert len(requested) <= MAX_REQUESTS
    assert seconds <= LIMIT_SECONDS
    assert megabytes <= MAX_MB
    # Those that had not been put off by themselves were ended with the whole host.
    assert [trap for trap in TRAPS if re.search(rf":\d+/{trap}[/?]", named)]
    assert re.search(r":\d+/\*\* is ended", named)


def test_trap_when_the_index_got_some_of_it_before_it_was_ended_then_status_names_what_takes_it_out(
    tmp_path: Path, forks: Forks
) -> None:
    with TrapSite(GOOD) as site:
        tables = overrides(site, trap_after=3 * AFTER)
        # So little is cached, of so many pages, that documents go out while the traps are visited.
        folder = write_project(tmp_path, site.port, NAME, project={"cache": {"threshold_mb": 1}}, **tables)
        assert forks.run(folder, "crawl", NAME) == 0
        good = set(site.pages.good_paths())
        before = list_indexed(folder, site)
        forks.run(folder, "status", NAME, "--json")
        status = json.loads((folder / "output.txt").read_text("utf-8").splitlines()[-1])
        messages = [warning["message"] for warning in status["warnings"] if warning["code"] == "trap_documents"]
        code = forks.run(folder, "forget", "--traps", NAME)
        after = list_indexed(folder, site)
        again = forks.run(folder, "forget", "--traps", NAME)
        said = (folder / "output.txt").read_text("utf-8")

    counted = sum(int(re.findall(r"has (\d+) document", message)[0]) for message in messages)
    assert all(message.endswith(f"searchcrawl forget --traps {NAME} takes them out") for message in messages)
    assert (code, again, len(before - after)) == (0, 0, counted)
    assert counted > 0
    assert "no documents of ended traps" in said
    assert good <= after
