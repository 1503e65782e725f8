"""What forbids an archive takes its files: ``forget``, edited excludes, ``plan`` and the limits on deleting (C8, B6, L2, L3)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_plans import plan
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import is_verified
from tests.acceptance.support_stories import page, run, source
from tests.office_files import make_zip
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "files.acme.test"
#: More files than may be removed at once.
FILES: Final = 30
BIG: Final = f"{HOST}/big.zip"
IN_BIG: Final = frozenset(f"{BIG}!/f{number}.txt" for number in range(FILES))
NESTED: Final = f"{HOST}/n.zip"
IN_NESTED: Final = f"{NESTED}!/in.zip!/a.txt"
#: Its URL does not say that it is an archive.
PLAIN: Final = f"{HOST}/download/5"
#: A host that no rule includes.
OTHER: Final = "other.acme.test"
START: Final = f"{HOST}/"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        archives = {
            "/big.zip": {f"f{number}.txt": b"secret number%d" % number for number in range(FILES)},
            "/n.zip": {"in.zip": make_zip({"a.txt": b"innerword"}), "top.txt": b"topword"},
            "/download/5": {"u.txt": b"sumac"},
        }
        site.set_page(HOST, "/", page("start", *archives))
        for path, files in archives.items():
            site.set_page(HOST, path, make_zip(files), content_type="application/zip")
        made = new_project(tmp_path, site, **source(site, HOST))
        run(made)
        yield made


def url_of(project: CrawlProject, short_url: str) -> str:
    return project.site.url(HOST, short_url.removeprefix(HOST))


def exclude(project: CrawlProject, *rules: str, **lifecycle: Any) -> None:
    project.edit(**source(project.site, HOST, scope={"exclude_urls": list(rules)}), lifecycle=lifecycle)


def cached(project: CrawlProject) -> str:
    segments = sorted((project.folder / "var" / "cache").rglob("*.warc.gz"))
    return "".join(gzip.decompress(segment.read_bytes()).decode("utf-8", "replace") for segment in segments)


def test_forget_when_an_archive_is_named_then_its_files_are_nowhere_and_explain_says_why(project: CrawlProject) -> None:
    url = url_of(project, BIG)

    done = project.ask("forget", url, "--yes")
    row = project.rows()[f"{BIG}!/f7.txt"]
    in_cache = cached(project)
    said = project.ask("explain", f"{url}!/f7.txt")
    later = run(project)

    assert (done["removed"], done["failed"]) == (FILES, 0)
    assert not IN_BIG & set(project.indexed())
    assert "secret number" not in in_cache
    assert (row["code"], row["rule"], row["document_state"]) == (955, f"forget: {url}", None)
    assert (said["decided_by"]["rule"], said["decided_by"]["proposal"]["value"]) == (url, url)
    assert (later.counts["deleted"], later.ended.exit_code, is_verified(project)) == (0, 0, True)
    assert BIG not in later.requested
    assert project.found("innerword") == [IN_NESTED]


def test_forget_when_an_inner_archive_or_one_without_a_name_is_named_then_its_files_go(project: CrawlProject) -> None:
    done = project.ask("forget", url_of(project, f"{NESTED}!/in.zip"), url_of(project, PLAIN))
    in_cache = cached(project)
    later = run(project)

    assert done["removed"] == 2
    assert (project.found("innerword"), project.found("sumac")) == ([], [])
    assert "innerword" not in in_cache
    assert "sumac" not in in_cache
    assert project.found("topword") == [f"{NESTED}!/top.txt"]
    assert (later.ended.exit_code, is_verified(project)) == (0, True)


def test_b6_inner_archive_when_it_is_excluded_then_its_files_go_and_the_others_stay(project: CrawlProject) -> None:
    exclude(project, url_of(project, f"{NESTED}!/in.zip"))

    made = plan(project)
    second = run(project)

    assert (made["leave"], second.counts["deleted"]) == (1, 1)
    assert project.rows()[IN_NESTED]["rule"] == f"scope.exclude_urls: {url_of(project, f'{NESTED}!/in.zip')}"
    assert project.found("innerword") == []
    assert project.found("topword") == [f"{NESTED}!/top.txt"]


def test_l2_plan_when_an_archive_is_excluded_then_it_counts_what_the_run_removes(project: CrawlProject) -> None:
    exclude(project, url_of(project, BIG), url_of(project, PLAIN))

    made = plan(project, code=10)
    second = run(project)

    said = project.ask("explain", f"{url_of(project, PLAIN)}!/u.txt")

    assert (made["leave"], made["past_limits"]) == (FILES + 1, True)
    assert (said["decided_by"]["key"], said["decided_by"]["rule"]) == ("scope.exclude_urls", url_of(project, PLAIN))
    assert said["decided_by"]["proposal"]["action"] == "remove"
    assert (second.counts["deleted"], second.ended.exit_code) == (0, 9)
    # More than 10 files of one archive are no less a disaster than of many pages: all wait.
    assert set(project.indexed()) >= IN_BIG | {f"{PLAIN}!/u.txt"}
    assert project.ask("status", "demo")["quarantined"] == FILES + 1


def test_b6_archive_when_it_is_excluded_within_the_limits_then_its_files_go_without_a_request(
    project: CrawlProject,
) -> None:
    exclude(project, url_of(project, BIG), max_delete_percent=100)

    second = run(project)

    assert (second.counts["deleted"], second.ended.exit_code) == (FILES, 0)
    assert not IN_BIG & set(project.indexed())
    assert BIG not in second.requested


def redirect(project: CrawlProject, **targets: str) -> None:
    """Has each ``/NAME.zip`` lead to another URL for a while, and crawls it after the first run."""
    for name, target in targets.items():
        project.site.set_behaviour(HOST, f"/{name}.zip", status=302, headers={"Location": target})
    project.site.set_page(HOST, "/", page("start", "/n.zip", "/big.zip", *(f"/{name}.zip" for name in targets)))
    assert run(project).ended.exit_code == 0


def test_forget_when_redirects_lead_to_an_archive_then_its_files_by_the_other_urls_go_too(
    project: CrawlProject,
) -> None:
    redirect(project, to="/n.zip", over="/to.zip")

    project.ask("forget", url_of(project, NESTED))
    found, in_cache = [*project.found("innerword"), *project.found("topword")], cached(project)
    runs = [run(project) for _ in range(2)]

    assert found == []
    assert "innerword" not in in_cache
    assert [*project.found("innerword"), *project.found("topword")] == []
    assert [each.ended.exit_code for each in runs] == [0, 0]
    assert not any(NESTED in each.requested for each in runs)
    assert project.rows()[f"{HOST}/to.zip!/top.txt"]["document_state"] is None
    assert is_verified(project)


def test_forget_when_the_archive_is_on_a_host_outside_then_its_files_by_the_other_url_go_too(
    project: CrawlProject,
) -> None:
    project.site.set_page(OTHER, "/far.zip", make_zip({"e.txt": b"epazote"}), content_type="application/zip")
    redirect(project, by=project.site.url(OTHER, "/far.zip"))
    found = project.found("epazote")

    done = project.ask("forget", project.site.url(OTHER, "/far.zip"))

    assert (found, done["removed"]) == ([f"{HOST}/by.zip!/e.txt"], 1)
    assert (project.found("epazote"), "epazote" in cached(project)) == ([], False)


@pytest.mark.parametrize("by", ["forgotten.txt", "exclude_urls"])
def test_crawl_when_a_redirect_leads_to_an_archive_that_a_new_rule_names_then_the_limits_hold(
    project: CrawlProject, by: str
) -> None:
    redirect(project, alias="/big.zip", to="/n.zip")
    urls = [url_of(project, BIG), url_of(project, NESTED)]
    if by == "forgotten.txt":
        (project.folder / by).write_text("".join(f"{url}\n" for url in urls), "utf-8")
    else:
        exclude(project, *urls)

    second = run(project)
    kept = set(project.indexed())
    approved = project.command("quarantine", "approve", "demo")
    third = run(project)

    assert (second.counts["deleted"], second.ended.exit_code) == (0, 9)
    assert kept >= IN_BIG
    assert (approved.returncode, third.ended.exit_code) == (0, 0)
    assert set(project.indexed()) == {START, f"{PLAIN}!/u.txt"}
