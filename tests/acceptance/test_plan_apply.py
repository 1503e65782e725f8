"""``plan`` says what an edit will change, and ``apply`` does it from the cache alone (L2, D9, L11)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance import support_plans
from tests.acceptance.support_plans import HOST, NAMES, apply, edit, plan, status
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended


@pytest.fixture(autouse=True)
def filled(clean_site: SiteProcess) -> None:
    support_plans.fill(clean_site)


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return support_plans.crawled(tmp_path, site)


@pytest.mark.matrix
def test_apply_when_an_attribute_is_mapped_then_no_request_is_sent_and_only_what_differs_is(
    project: CrawlProject, site: SiteProcess
) -> None:
    edit(project, attributes={"meta:dc.creator": "writer"})
    made = plan(project)
    before = project.versions()

    done = apply(project, made)

    after = project.versions()
    assert (made["enter"], made["leave"], made["refetch"]) == (0, 0, 0)
    assert made["reprocess"] == len(after)
    assert done == {"source": "demo", "documents": 20, "removed": 0, "failed": 0, "to_fetch": 0, "undecided": 0}
    assert made["send"] == sum(after[url] != version for url, version in before.items()) == 20
    assert {hit.fields.get("writer_s") for hit in project.hits("number")} == {f"author {n}" for n in range(3)}
    assert site.requested() == []
    assert status(project)["force_recrawl"] is None


def listing(folder: Path) -> dict[str, int]:
    """The segments of the cache, and their sizes."""
    return {path.name: path.stat().st_size for path in (folder / "var" / "cache").rglob("*.gz")}


def test_apply_when_a_keep_rule_takes_few_out_then_these_leave_and_no_request_is_sent(
    project: CrawlProject, site: SiteProcess
) -> None:
    edit(project, keep={"exclude_urls": ["*/secret/*"]})
    shown = project.command("plan", project.name).stdout
    made = plan(project)

    done = apply(project, made)

    for line in (
        "demo: edited: keep.exclude_urls",
        "documents that leave the index",
        "keep.exclude_urls: */secret/*",
        "searchcrawl apply demo-",
    ):
        assert line in shown

    assert (made["enter"], made["leave"], made["send"], made["refetch"]) == (0, 2, 0, 0)
    reason = "952, fetched, and not to be indexed: keep.exclude_urls: */secret/*"
    assert made["reasons"] == [{"action": "leave", "reason": reason, "count": 2}]
    assert (done["documents"], done["removed"], done["to_fetch"]) == (0, 2, 0)
    assert not [url for url in project.indexed() if "secret" in url]
    assert site.requested() == []
    assert status(project)["force_recrawl"] is None


def test_apply_when_the_scope_is_narrowed_and_widened_again_then_only_what_the_cache_lacks_is_fetched(
    project: CrawlProject, site: SiteProcess
) -> None:
    whole = project.indexed()
    edit(project, scope={"include_hosts": [HOST], "exclude_urls": ["*/secret/*"]})
    assert apply(project, plan(project))["removed"] == 2
    edit(project)
    made = plan(project)

    done = apply(project, made)

    assert (made["enter"], made["leave"], made["refetch"]) == (2, 0, done["to_fetch"])
    assert site.requested() == []
    project.crawl()
    assert project.indexed() == whole
    assert status(project)["force_recrawl"] is None


def test_apply_when_new_urls_come_into_the_scope_then_the_next_run_fetches_these_alone(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = new_project(tmp_path, site)
    edit(project, scope={"include_hosts": [HOST], "exclude_urls": ["*/secret/*"]})
    project.crawl()
    edit(project)
    site.clear_log()
    made = plan(project)
    done = apply(project, made)
    sent = site.requested()

    ended = project.crawl()

    pages = [url for url in site.requested() if "robots" not in url and "sitemap" not in url]
    assert sent == []
    assert (made["enter"], done["to_fetch"]) == (1, 1), "a link that the cache has; pages that are gone are no matter"
    assert len(pages) <= 4, pages
    assert ended.exit_code == 0
    assert status(project)["force_recrawl"] is None
    assert len(project.indexed()) == 23


def test_apply_when_the_removals_pass_the_limits_then_the_plan_says_so_and_the_operator_has_the_last_word(
    project: CrawlProject, site: SiteProcess
) -> None:
    edit(project, attributes={"meta:dc.creator": "writer"}, keep={"exclude_urls": ["*/p/*"]})
    before = (project.rows(), project.versions(), status(project), listing(project.folder))

    made = plan(project, code=10)
    planned = (project.rows(), project.versions(), status(project), listing(project.folder))
    done = apply(project, made)

    # A plan changes nothing.
    assert planned == before
    last = json.loads(project.command("runs", "demo", "--json").stdout.splitlines()[0])
    assert (made["leave"], made["past_limits"]) == (20, True)
    assert done["removed"] == 20
    assert (last["end_reason"], last["exit_code"], last["counts"]["deleted"]) == ("finished", 0, 20)
    assert len(project.indexed()) == 3
    assert site.requested() == []


def test_apply_when_something_changed_since_then_it_is_refused_and_nothing_changes(project: CrawlProject) -> None:
    edit(project, attributes={"meta:dc.creator": "writer"})
    first = plan(project)
    edit(project, attributes={"meta:dc.creator": "maker"})
    before = project.rows()

    edited = project.command("apply", first["plan"])
    second = plan(project)
    known = project.log()
    project.crawl("-a", "limit=1")
    first_line = project.log()[len(known) :].splitlines()[0]
    crawled = project.command("apply", second["plan"])
    unknown = project.command("apply", "demo-none")

    assert (edited.returncode, "was edited since" in edited.stderr) == (2, True)
    assert (crawled.returncode, "was changed since" in crawled.stderr) == (2, True)
    assert (unknown.returncode, "there is no plan" in unknown.stderr) == (2, True)
    assert before.keys() == project.rows().keys()
    # What the crawl said plan and apply would have saved.
    for said in (
        "edited: attributes.meta:dc.creator: all 25 URLs are visited without validators; searchcrawl plan demo",
        "apply would process 23 of them again from the cache without a request",
    ):
        assert said in first_line


def test_apply_when_headers_are_edited_then_everything_is_left_to_a_run(
    project: CrawlProject, site: SiteProcess
) -> None:
    edit(project, fetch={"headers": {"X-Team": "search"}})
    made = plan(project)

    done = apply(project, made)

    assert (made["reprocess"], made["send"], done["to_fetch"]) == (0, 0, made["refetch"])
    assert made["refetch"] >= 23
    assert site.requested() == []
    assert status(project)["force_recrawl"] == "changed: fetch.headers"


def test_apply_when_pages_came_by_redirects_then_they_are_processed_as_if_they_came_just_now(
    site: SiteProcess, tmp_path: Path
) -> None:
    site.set_page(HOST, "/goes", status=302, headers={"Location": "/landing/here.html"})
    site.set_page(HOST, "/landing/here.html", page("landed", "deeper.html", text="where it went"))
    site.set_page(HOST, "/landing/deeper.html", page("deeper", text="below where it went"))
    project = new_project(tmp_path, site)
    edit(project)
    project.crawl()
    whole, rows = project.indexed(), project.codes()
    site.clear_log()
    edit(project, fetch={"default_language": "de"})

    made = plan(project)
    apply(project, made)

    assert any("deeper" in url for url in whole)
    assert (project.indexed(), project.codes()) == (whole, rows)
    assert made["refetch"] == 0
    assert site.requested() == []
    # The same where the URL that redirects is refused and allowed again: links are relative to the one that gave the page.
    for excluded in ("*/goes", "*/nothing/*"):
        edit(project, scope={"include_hosts": [HOST], "exclude_urls": [excluded]})
        apply(project, plan(project))
    assert (project.indexed(), project.codes().keys()) == (whole, rows.keys())
    assert json.loads(project.rows()[f"{HOST}/goes"]["redirects"])[0] == {"url": site.url(HOST, "/goes"), "code": 302}


def test_apply_when_records_are_damaged_then_only_these_pages_are_fetched(
    project: CrawlProject, site: SiteProcess
) -> None:
    edit(project, attributes={"meta:dc.creator": "writer"})
    (segment,) = (project.folder / "var" / "cache").rglob("*.gz")
    data = bytearray(segment.read_bytes())
    for place in (3, len(data) // 2):
        data[place] ^= 0xFF
    segment.write_bytes(data)

    done = apply(project, plan(project))

    # The one of the start page, and one of the others.
    assert (done["documents"], done["to_fetch"]) == (19, 2)
    assert site.requested() == []
    project.crawl()
    assert [url for url in site.requested() if ".html" in url and "/p/" in url] != []
    assert len(site.requested()) <= 4
    assert {hit.fields.get("writer_s") for hit in project.hits("number")} == {f"author {n}" for n in range(3)}
    assert status(project)["force_recrawl"] is None


def test_plan_when_a_source_never_ran_or_was_not_edited_then_says_so(site: SiteProcess, tmp_path: Path) -> None:
    project = new_project(tmp_path, site)
    edit(project)

    first = plan(project)
    done = apply(project, first)
    project.crawl()
    second = plan(project)

    assert (first["enter"], first["reprocess"], first["leave"]) == (1, 0, 0), "its start URL"
    assert done["to_fetch"] == 1
    assert len(project.indexed()) == 23
    names = ("enter", "leave", "reprocess", "refetch", "send", "edited", "reasons")
    assert [second[name] for name in names] == [0, 0, 0, 0, 0, [], []]


def test_apply_when_links_are_the_same_then_the_refused_ones_stay_counted(site: SiteProcess, tmp_path: Path) -> None:
    project = new_project(tmp_path, site)
    site.set_page(HOST, "/p/1.html", page("outside", "http://elsewhere.test/a", "http://elsewhere.test/b"))
    edit(project)
    project.crawl()
    before = status(project)["refused_links"]
    edit(project, keep={"max_bytes": 10_000_000})
    apply(project, plan(project))
    digests = status(project)["refused_links"]
    edit(project, scope={"include_hosts": [HOST], "max_path_segments": 9})

    apply(project, plan(project))

    assert [row["count"] for row in before] == [2]
    assert digests == before
    assert [row["count"] for row in status(project)["refused_links"]] == [2]


def test_apply_when_pages_are_to_be_visited_again_then_they_are_left_to_a_run(
    project: CrawlProject, site: SiteProcess
) -> None:
    edit(project, attributes={"meta:dc.creator": "writer"})
    project.command("recrawl", project.name, "--url", site.url(HOST, "/p/1.html"))
    made = plan(project)

    done = apply(project, made)

    assert (made["reprocess"], made["refetch"], done["to_fetch"]) == (22, 1, 1)
    assert site.requested() == []
    assert "asked for" in status(project)["force_recrawl"]
    project.crawl()
    assert status(project)["force_recrawl"] is None
    assert [url for url in site.requested() if url.endswith("/p/1.html")] != []
    assert {hit.fields.get("writer_s") for hit in project.hits("number")} == {f"author {n}" for n in range(3)}


def test_apply_when_an_excluded_page_failed_last_then_it_is_told_that_the_next_good_visit_decides(
    project: CrawlProject, site: SiteProcess
) -> None:
    for path in ("/p/1.html", "/p/2.html"):
        site.set_page(HOST, path, "", status=503)
    project.crawl()
    edit(project, keep={"exclude_urls": ["*/p/1.html"]})
    url = site.url(HOST, "/p/1.html")

    made = plan(project)
    shown = project.command("plan", project.name)
    done = apply(project, plan(project))
    explained = project.ask("explain", url)

    assert (made["leave"], made["undecided"], done["removed"], done["undecided"]) == (0, 2, 0, 2)
    said = "2 documents whose last visit failed are decided at the next visit that does not fail"
    assert said in " ".join(shown.stdout.split())
    assert status(project)["force_recrawl"] is None
    assert f"{HOST}/p/1.html" in project.indexed()
    assert "leaves at its next good visit by keep.exclude_urls: */p/1.html" in explained["verdict"]
    site.set_page(HOST, "/p/1.html", page("page 1", text="all of number 1"))
    project.crawl()
    assert f"{HOST}/p/1.html" not in project.indexed()


def test_apply_when_a_recrawl_was_asked_for_and_its_run_failed_then_it_is_still_asked_for(
    project: CrawlProject, site: SiteProcess
) -> None:
    project.command("recrawl", project.name, "--all")
    for path in ("/", *NAMES):
        site.set_page(HOST, path, "", status=503)
    assert project.crawl().exit_code == 8
    edit(project, attributes={"meta:dc.creator": "writer"})

    apply(project, plan(project))

    assert "asked for" in status(project)["force_recrawl"]


def test_apply_when_it_was_killed_and_a_crawl_follows_then_that_ends_what_was_begun(
    project: CrawlProject, site: SiteProcess
) -> None:
    edit(project, attributes={"meta:dc.creator": "writer"})
    made = plan(project)
    COMMANDS.run(project.folder, "apply", made["plan"], SEARCHCRAWL_FAILPOINT="links.committed:1")

    ended = project.crawl()
    late = project.command("apply", made["plan"])

    assert ended.exit_code == 0
    assert {hit.fields.get("writer_s") for hit in project.hits("number")} == {f"author {n}" for n in range(3)}
    assert status(project)["force_recrawl"] is None
    assert late.returncode == 2
