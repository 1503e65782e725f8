"""``store.retention_days``: rows that are over are forgotten after a run; nothing that may still be needed is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.acceptance.support_stories import page
from tests.site.client import SiteProcess
from tests.stored_rows import execute, query

HOST: Final = "www.acme.test"
DAY_MS: Final = 86_400_000


pytestmark = pytest.mark.usefixtures("clean_site")


def project_of(folder: Path, site: SiteProcess, **store: Any) -> CrawlProject:
    project = new_project(folder, site, options=(), **_tables(site))
    if store:
        text = (folder / "searchcrawl.toml").read_text("utf-8")
        days = f"store.retention_days = {store['retention_days']}\n"
        (folder / "searchcrawl.toml").write_text(days + text, "utf-8")
    return project


def _tables(site: SiteProcess) -> dict[str, Any]:
    return {
        "start": {"urls": [site.url(HOST, "/index")], "sitemaps": "off"},
        "scope": {"include_hosts": [HOST], "exclude_urls": ["*.zip"]},
        "fetch": {"retries": 0},
    }


def fill(site: SiteProcess) -> None:
    """Pages that go in the second run: one is still linked, two others name each other and nothing names them."""
    site.set_page(HOST, "/index", page("start", "/stays", "/linked", "/gone", "/old.zip", "/new.zip"))
    site.set_page(HOST, "/stays", page("stays", "/linked"))
    site.set_page(HOST, "/gone", page("gone", "/child", "/child.zip"))
    site.set_page(HOST, "/child", page("child", "/gone"))
    site.set_page(HOST, "/linked", page("linked"))


def remove(site: SiteProcess) -> None:
    site.set_page(HOST, "/index", page("start anew", "/stays", "/linked", "/new.zip", "/latest.zip"))
    for name in ("/linked", "/gone", "/child"):
        site.delete_page(HOST, name)


def age(project: CrawlProject, *, days: int, **upto: int) -> None:
    """Makes rows and, up to one, runs and deliveries so many days older."""
    shift = days * DAY_MS
    execute(project.folder, f"UPDATE urls SET first_seen_ms = first_seen_ms - {shift}")
    last = upto.get("run", 1 << 30)
    execute(
        project.folder,
        f"UPDATE runs SET started_ms = started_ms - {shift}, ended_ms = ended_ms - {shift} WHERE id <= {last}",
    )
    execute(project.folder, f"UPDATE batches SET created_ms = created_ms - {shift} WHERE run_id <= {last}")


def paths(project: CrawlProject) -> set[str]:
    return {url.removeprefix(f"{HOST}/") for url in project.rows()}


def numbers(project: CrawlProject, table: str) -> list[int]:
    return [number for (number,) in query(project.folder, f"SELECT id FROM {table} ORDER BY id")]


def lived(project: CrawlProject) -> list[Ended]:
    """Three runs: all is found, three pages go, nothing changes."""
    fill(project.site)
    first = project.crawl()
    remove(project.site)
    return [first, project.crawl(), project.crawl()]


ALL: Final = {"index", "stays", "linked", "gone", "child", "old.zip", "new.zip", "child.zip", "latest.zip"}


@pytest.mark.matrix
def test_retention_when_rows_are_old_then_those_that_nothing_leads_to_are_forgotten(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = project_of(tmp_path, site)
    lived(project)
    young = paths(project)
    age(project, days=100)

    after = project.crawl()
    last = project.crawl()

    assert young == ALL
    # A page that is gone and linked is asked for in each run; what is refused and linked keeps its row.
    assert paths(project) == {"index", "stays", "linked", "new.zip", "latest.zip"}
    assert project.codes()[f"{HOST}/linked"] == 404
    assert project.indexed() == [f"{HOST}/index", f"{HOST}/stays"]
    assert len(numbers(project, "runs")) == 3
    assert {after.exit_code, last.exit_code} == {0}
    assert "URLs" in project.log()


def test_retention_when_all_came_back_then_the_index_has_it_again(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(tmp_path, site)
    lived(project)
    before = numbers(project, "urls")
    age(project, days=100)
    project.crawl()
    fill(project.site)

    ended = project.crawl()

    assert ended.exit_code == 0
    # Nothing leads to the last one any more.
    assert paths(project) == ALL - {"latest.zip"}
    assert project.indexed() == sorted(f"{HOST}/{name}" for name in ("index", "stays", "linked", "gone", "child"))
    assert max(numbers(project, "urls")) > max(before)


def test_retention_when_a_removal_can_be_taken_back_then_its_row_stays_until_its_run_is_over(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = project_of(tmp_path, site)
    lived(project)
    # The removals were made by the second run.
    age(project, days=100, run=1)

    project.crawl()
    kept = paths(project)
    fill(project.site)
    undone = project.command("undelete", "2")

    assert {"gone", "child", "linked"} <= kept
    assert {"old.zip", "child.zip"} & kept == {"child.zip"}
    assert undone.returncode == 0
    assert f"{HOST}/gone" in project.indexed()


@pytest.mark.parametrize("days", [0, 101])
def test_retention_when_it_is_longer_or_for_ever_then_all_rows_stay(
    site: SiteProcess, tmp_path: Path, days: int
) -> None:
    project = project_of(tmp_path, site, retention_days=days)
    lived(project)
    age(project, days=100)
    runs, batches = numbers(project, "runs"), numbers(project, "batches")

    project.crawl()

    assert paths(project) == ALL
    assert numbers(project, "runs")[: len(runs)] == runs
    assert numbers(project, "batches")[: len(batches)] == batches


def test_retention_when_removals_wait_or_were_rejected_then_their_rows_stay(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(tmp_path, site)
    names = [f"/leaf/{number}" for number in range(20)]
    site.set_page(HOST, "/index", page("start", *names))
    for name in names:
        site.set_page(HOST, name, page(name))
    project.crawl()
    site.set_page(HOST, "/index", page("start anew"))
    for name in names:
        site.delete_page(HOST, name)
    held = project.crawl()
    age(project, days=100)

    again = project.crawl()
    waiting = paths(project)
    project.command("quarantine", "reject", "demo", "--run", "2")
    age(project, days=100)
    project.crawl()

    assert (held.exit_code, again.exit_code) == (9, 9)
    assert waiting == paths(project) == {"index", *(name[1:] for name in names)}
    assert len(project.indexed()) == 21


@pytest.mark.matrix
def test_retention_when_two_sources_crawl_at_once_then_hosts_go_that_neither_uses(
    site: SiteProcess, tmp_path: Path
) -> None:
    late = [f"late{number}.acme.test" for number in range(12)]
    for number, host in enumerate(late):
        site.set_page(host, "/", page(host, "/leaf", site.url(late[(number + 1) % len(late)], "/")))
        site.set_page(host, "/leaf", page(f"leaf of {host}"))
    scope = {"include_hosts": ["acme.test"]}
    start = {"urls": [site.url(late[0], "/")], "sitemaps": "off"}
    sources = [new_project(tmp_path, site, name=name, start=start, scope=scope) for name in ("one", "two")]
    sources[0].crawl("-a", "limit=1")
    names = [f"{host}:{site.port}" for host in late]
    # They were in use long ago, and nothing names them any more.
    for name in ("unused.acme.test:80", *names[2:]):
        execute(tmp_path, f"INSERT INTO hosts (name) VALUES ('{name}')")
    execute(tmp_path, "UPDATE hosts SET used_ms = 1")

    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda project: project.crawl().exit_code, sources))
    again = [project.crawl().exit_code for project in sources]

    assert ended == again == [0, 0]
    found = query(tmp_path, "SELECT url, name FROM urls LEFT JOIN hosts ON hosts.id = urls.host_id")
    assert len(found) == 2 * 2 * len(late)
    assert all(url.startswith(f"http://{name}/") for url, name in found)
    assert {name for (name,) in query(tmp_path, "SELECT name FROM hosts")} == set(names)


def test_retention_when_links_were_refused_for_any_rule_of_the_boundary_then_their_rows_are_forgotten(
    site: SiteProcess, tmp_path: Path
) -> None:
    segments = "/".join("abcdefg")
    refused = {
        "/archive/x": "scope.host[0].exclude_paths",
        "/x.zip": "scope.exclude_urls",
        "/x?a=1&b=2&c=3": "scope.max_query_parameters",
        f"/{segments}": "scope.max_path_segments",
        "/r/r/r/r/x": "scope.max_repeated_segments",
        "/item/2": "scope.max_urls_per_pattern",
        f"/{'long' * 40}": "scope.max_url_length",
    }
    site.set_page(HOST, "/item/1", page("item", "/deep"))
    site.set_page(HOST, "/deep", page("deep", "/deeper"))
    site.set_page(HOST, "/index", page("start", "/item/1", *refused))
    limits = {"max_query_parameters": 2, "max_path_segments": 6, "max_url_length": 120, "max_urls_per_pattern": 1}
    blocks = [{"host": HOST, "exclude_paths": ["/archive"]}]
    tables = _tables(site)
    tables["scope"] |= {**limits, "max_repeated_segments": 3, "depth": 2, "host": blocks}
    project = new_project(tmp_path, site, **tables)
    project.crawl()
    young = project.rows()
    site.set_page(HOST, "/fresh", page("fresh"))
    site.set_page(HOST, "/index", page("start anew", "/item/1", "/fresh"))
    site.set_page(HOST, "/deep", page("deep anew"))
    project.crawl()
    age(project, days=100)

    project.crawl()

    rules = {url.removeprefix(HOST): (row["rule"] or "").partition(":")[0] for url, row in young.items()}
    assert {path: rules[path] for path in refused} == refused
    assert rules["/deeper"] == "scope.depth"
    assert paths(project) == {"index", "item/1", "deep", "fresh"}
