"""Copies of documents of other sources: one of a collection is indexed, in whatever order the sources are crawled (F4, F3)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.sources.loading import load_project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import lease, run_table
from tests.acceptance.support_plans import apply, plan, status
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, run, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess
from tests.site.expected import short

pytestmark = pytest.mark.extended

HOSTS = {name: f"{name}.acme.test" for name in ("a", "b", "c")}
#: Where each source has its page: the one of a is the best, that of c the worst.
PATHS = {"a": "/t.html", "b": "/x/t.html", "c": "/x/y/t.html"}
#: More than may always leave.
MANY = 12
#: Where a run of one source may die while it has others take over.
FAILPOINTS = ("shared.resolved", "batch.sealed:2", "index.acked:2", "batch.marked:2", "commit.sent:2", "shared.listed")


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        yield site


def set_pages(site: SiteProcess, name: str, **bodies: str) -> None:
    """Sets the start page of a source, and pages by the names of their files, in the folder of the source."""
    folder = PATHS[name].rpartition("/")[0]
    paths = {f"{folder}/{each}.html": body for each, body in bodies.items()}
    site.set_page(HOSTS[name], "/", page(f"start of {name}", *paths))
    site.set_pages(HOSTS[name], paths)


def add_source(folder: Path, site: SiteProcess, name: str, **overrides: Any) -> CrawlProject:
    project = new_project(folder, site, name=name)
    edit(project, **overrides)
    return project


def add_three(folder: Path, site: SiteProcess) -> list[CrawlProject]:
    """Sources a, b and c with a page of the same text."""
    for name in HOSTS:
        set_pages(site, name, t=page("Kettle", text="boil some water"), own=page(f"own of {name}"))
    return [add_source(folder, site, name) for name in HOSTS]


def edit(project: CrawlProject, **overrides: Any) -> None:
    made = source(project.site, HOSTS[project.name])
    project.edit(**made, **{"copies": {"scope": "collection"}, **overrides})


def at(name: str, file: str = "t") -> str:
    return f"{HOSTS[name]}{PATHS[name].rpartition('/')[0]}/{file}.html"


def found(project: CrawlProject, words: str) -> dict[str, list[str]]:
    """The hits of a search of all sources, with the duplicates that each names."""
    with closing(open_index(load_project(project.folder))) as index:
        hits = index.search(SearchQuery(words=words, rows=1000)).hits
    return {short(hit.fields["url"]): sorted(map(short, hit.fields.get("duplicates", []))) for hit in hits}


def explained(project: CrawlProject, name: str) -> dict[str, Any]:
    """What decided about the page of a source."""
    decided: dict[str, Any] = project.ask("explain", project.site.url(HOSTS[name], PATHS[name]))["decided_by"]
    return decided


@contextmanager
def busy(project: CrawlProject) -> Iterator[None]:
    """This process has the lease of a source meanwhile."""
    loaded = load_project(project.folder)
    with closing(Database(loaded.database_url, loaded.root)) as database:
        source_id = database.read(lambda transaction: run_table.find_source(transaction, project.name)) or 0
        held = database.write(lambda transaction: lease.take(transaction, source_id, name=project.name))
        yield
        database.write(lambda transaction: lease.release(transaction, held))


@pytest.mark.matrix
def test_documents_when_sources_share_copies_then_one_is_indexed_and_another_source_takes_over_when_it_changes(
    site: SiteProcess, tmp_path: Path
) -> None:
    a, b, c = add_three(tmp_path, site)
    first = run(b)
    assert found(a, "boil") == {at("b"): []}
    # One that nobody had before is withheld at once, and listed by the time the command ends.
    withheld = run(c)
    assert found(a, "boil") == {at("b"): [at("c")]}
    assert (withheld.counts["indexed"], withheld.counts["deleted"], withheld.codes[at("c")]) == (2, 0, 909)

    # A better one comes: the one of b stays until b is crawled.
    run(a)
    assert found(a, "boil").keys() == {at("a"), at("b")}
    gone = run(b)
    assert found(a, "boil") == {at("a"): [at("b"), at("c")]}
    assert (gone.counts["deleted"], gone.ended.exit_code) == (1, 0)
    assert first.counts["indexed"] == 3
    again = [run(each).counts for each in (a, b, c)]
    assert [(each["indexed"], each["deleted"]) for each in again] == [(0, 0)] * 3
    assert found(a, "boil") == {at("a"): [at("b"), at("c")]}

    # It changes: the best that is left takes over before the run of a ends.
    set_pages(site, "a", t=page("Kettle", text="roast some beans"), own=page("own of a"))
    changed = run(a)
    assert found(a, "boil") == {at("b"): [at("c")]}
    assert found(a, "roast") == {at("a"): []}
    assert changed.counts["deleted"] == 0

    # And back, and away.
    set_pages(site, "a", t=page("Kettle", text="boil some water"), own=page("own of a"))
    run(a), run(b)
    assert found(a, "boil") == {at("a"): [at("b"), at("c")]}
    site.set_page(HOSTS["a"], "/t.html", page("gone"), status=404)
    run(a)
    assert found(a, "boil") == {at("b"): [at("c")]}

    # A source that is deleted.
    assert a.command("delete", "b", "--yes").returncode == 0
    assert found(a, "boil") == {at("c"): []}


def test_many_documents_when_another_source_has_better_ones_then_they_wait_and_an_edit_brings_them_back(
    site: SiteProcess, tmp_path: Path
) -> None:
    many = {f"p{number:02}": page(f"Kettle {number}", text=f"boil liquid{number}") for number in range(MANY)}
    for name in ("a", "b"):
        set_pages(site, name, **many)
    a, b = (add_source(tmp_path, site, name) for name in ("a", "b"))
    edit(b, copies={"scope": "source"})
    both = {at(name, each) for name in ("a", "b") for each in many}
    run(a), run(b)
    assert found(a, "boil").keys() == both

    edit(b)
    made = plan(b, code=10)
    assert (made["leave"], made["enter"]) == (MANY, 0)
    held = run(b)
    assert (held.ended.exit_code, held.ended.status["quarantined"], held.counts["deleted"]) == (9, MANY, 0)
    assert found(a, "boil").keys() == both
    assert b.command("quarantine", "approve", "b").returncode == 0
    run(a)
    assert found(a, "boil") == {at("a", each): [at("b", each)] for each in many}
    assert [a.command("verify", name).returncode for name in ("a", "b")] == [0, 0]

    # A source that does not share them any more, as it says so or as it delivers nothing, takes its own back.
    edit(a, test=True)
    run(a)
    run(b)
    assert found(a, "boil").keys() == both
    edit(a)
    edit(b, copies={"scope": "source"})
    run(b), run(a)
    assert found(a, "boil") == {url: [] for url in both}


def test_edit_when_it_is_planned_and_applied_then_copies_of_other_sources_leave_as_it_said(
    site: SiteProcess, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        set_pages(site, name, t=page("Kettle", text="boil some water"), own=page(f"own of {name}"))
    a, b = (add_source(tmp_path, site, name) for name in ("a", "b"))
    edit(b, copies={"scope": "source"})
    run(a), run(b)
    edit(b)
    made = plan(b)
    assert (made["leave"], made["enter"], made["samples"]["leave"][0]["url"]) == (
        1,
        0,
        site.url(HOSTS["b"], PATHS["b"]),
    )
    apply(b, made)
    assert found(a, "boil") == {at("a"): [at("b")]}
    assert explained(b, "b")["rule"] == f"a copy of {site.url(HOSTS['a'], PATHS['a'])} (a)"

    # A plan of something else says nothing of them.
    edit(b, groups=["kettles"])
    made = plan(b)
    assert (made["leave"], made["enter"]) == (0, 1)


def test_urls_when_they_are_forgotten_then_lists_in_other_sources_and_copies_there_follow_at_once(
    site: SiteProcess, tmp_path: Path
) -> None:
    a, b, c = add_three(tmp_path, site)
    for each in (a, b, c):
        run(each)
    assert found(a, "boil") == {at("a"): [at("b"), at("c")]}

    assert a.command("forget", site.url(HOSTS["b"], PATHS["b"])).returncode == 0
    assert found(a, "boil") == {at("a"): [at("c")]}
    assert a.command("forget", site.url(HOSTS["a"], PATHS["a"])).returncode == 0
    assert found(a, "boil") == {at("c"): []}
    # The texts of links to it come with the next run of its source.
    run(c)
    for each in (a, b, c):
        assert run(each).counts["indexed"] == 0
    assert found(a, "boil") == {at("c"): []}


def test_copies_when_their_source_is_busy_or_its_file_is_gone_then_it_takes_over_as_soon_as_it_can(
    site: SiteProcess, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        set_pages(site, name, t=page("Kettle", text="boil some water"), own=page(f"own of {name}"))
    a, b = (
        add_source(tmp_path, site, name, display=[{"from": site.url(HOSTS[name]), "to": f"https://{name}.shown.test/"}])
        for name in ("a", "b")
    )
    run(a), run(b)
    with closing(open_index(load_project(a.folder))) as index:
        (hit,) = index.search(SearchQuery(words="boil")).hits
    assert hit.fields["duplicates"] == ["https://b.shown.test/x/t.html"]

    site.set_page(HOSTS["a"], "/t.html", page("gone"), status=404)
    with busy(b):
        run(a)
    assert found(a, "boil") == {}
    assert "copies of other sources in b are decided about by its next run" in a.log()
    assert [warning["code"] for warning in status(b)["warnings"]] == ["shared_copies"]
    assert explained(b, "b")["rule"].endswith("(a), which has changed or gone since: the next run decides")
    file = b.folder / "sources" / "b.toml"
    file.rename(b.folder / "b.aside")
    assert run(a).ended.exit_code == 0
    assert found(a, "boil") == {}
    (b.folder / "b.aside").rename(file)
    run(b)
    assert len(found(a, "boil")) == 1


@pytest.mark.few(2)
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_sources_when_a_process_dies_while_others_take_over_then_the_next_run_ends_it(
    site: SiteProcess, tmp_path: Path, failpoint: str
) -> None:
    a, b, c = add_three(tmp_path, site)
    for each in (c, b, a, c, b):
        run(each)
    assert found(a, "boil") == {at("a"): [at("b"), at("c")]}

    set_pages(site, "a", t=page("Kettle", text="roast some beans"), own=page("own of a"))
    killed = COMMANDS.run(a.folder, "crawl", "a", SEARCHCRAWL_FAILPOINT=failpoint)
    ended = run(a).ended

    assert (killed.returncode, ended.exit_code) == (-9, 0)
    assert found(a, "boil") == {at("b"): [at("c")]}
    assert found(a, "roast") == {at("a"): []}
    assert [a.command("verify", name).returncode for name in HOSTS] == [0, 0, 0]
    run(b)
    for each in (a, b, c):
        assert run(each).counts["indexed"] == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(20))
def test_sources_when_crawled_in_any_order_then_the_index_is_the_same_once_all_ran_again(
    site: SiteProcess, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    having = {"p0": "abc", "p1": "bc", "p2": "ac", "p3": "c"}
    for name in HOSTS:
        bodies = {each: page(f"Kettle {each}", text=f"boil liquid {each}") for each in having if name in having[each]}
        set_pages(site, name, **bodies)
    projects = [add_source(tmp_path, site, name) for name in HOSTS]
    if seed % 2:
        with ThreadPoolExecutor() as at_once:
            assert {ended.exit_code for ended in at_once.map(CrawlProject.crawl, projects)} == {0}
    for _ in range(2):
        for each in chance.sample(projects, len(projects)):
            last = run(each)

    assert found(projects[0], "boil") == {
        at(names[0], each): [at(name, each) for name in names[1:]] for each, names in having.items()
    }
    assert (last.counts["changed"], last.ended.exit_code) == (0, 0)


def test_deletion_when_it_is_killed_then_the_next_call_has_others_take_over(site: SiteProcess, tmp_path: Path) -> None:
    a, b, c = add_three(tmp_path, site)
    for each in (a, b, c):
        run(each)
    for failpoint in ("source.sealed", "delete.sent", "source.uncached", "source.rows"):
        killed = COMMANDS.run(a.folder, "delete", "a", "--yes", SEARCHCRAWL_FAILPOINT=failpoint)
        assert killed.returncode == -9
    ended = a.command("delete", "a", "--yes")

    assert ended.returncode == 0, ended.stderr
    assert found(b, "boil") == {at("b"): [at("c")]}
    run(b)
    assert [b.command("verify", name).returncode for name in ("b", "c")] == [0, 0]
    assert [run(each).counts["indexed"] for each in (b, c)] == [0, 0]
