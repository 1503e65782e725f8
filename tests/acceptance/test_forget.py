"""``forget URL``: out of index, cache and table at once, and refused from then on, also after kill -9 at any step."""

from __future__ import annotations

import gzip
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_quarantine import is_verified
from tests.acceptance.support_stories import page, pages, run, source
from tests.crawl_forks import COMMANDS, Forks, started
from tests.site.client import SiteProcess, configure

HOST: Final = "people.acme.test"
NAMES: Final = ("alpha", "beta", "gamma", "delta", *(f"page{number}" for number in range(12)))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"text of {name}") for name in NAMES})
        yield new_project(tmp_path, site, **source(site, HOST))


def url_of(project: CrawlProject, name: str) -> str:
    return project.site.url(HOST, f"/{name}.html")


def forget(project: CrawlProject, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    return project.lines("forget", *arguments, code=code)


def cached(project: CrawlProject) -> str:
    """All that the segments hold on the disk."""
    segments = sorted((project.folder / "var" / "cache").rglob("*.warc.gz"))
    return "".join(gzip.decompress(segment.read_bytes()).decode("utf-8", "replace") for segment in segments)


def left(project: CrawlProject) -> set[str]:
    return {url.rpartition("/")[2].removesuffix(".html") for url in project.indexed()} - {""}


def receipt(documents: int, removed: int, **more: int) -> dict[str, Any]:
    return {"source": "demo", "documents": documents, "removed": removed, "failed": 0, "to_fetch": 0, **more}


@pytest.mark.matrix
def test_forget_when_a_document_is_named_then_it_is_nowhere_and_never_asked_for_again(project: CrawlProject) -> None:
    run(project)
    before = project.versions()
    url = url_of(project, "alpha")

    # As people type it.
    done = forget(project, url.removeprefix("http://"))
    row = project.rows()[f"{HOST}/alpha.html"]
    again = forget(project, url)
    resent = project.ask("resend", "demo")
    second = run(project)

    assert (done, again) == ([receipt(1, 1)], [receipt(0, 0)])
    assert left(project) == set(NAMES) - {"alpha"}
    assert (row["code"], row["rule"], row["document_state"]) == (955, f"forget: {url}", None)
    assert "text of alpha" not in cached(project)
    assert "/alpha.html\r\n" not in cached(project)
    # All other records are still there.
    assert resent == receipt(len(before) - 1, 0)
    assert f"{HOST}/alpha.html" not in second.requested
    assert (second.ended.exit_code, second.counts["deleted"]) == (0, 0)
    assert url in (project.folder / "forgotten.txt").read_text("utf-8").splitlines()
    assert is_verified(project)


def test_forget_when_explained_and_tested_then_the_list_is_named(project: CrawlProject) -> None:
    run(project)
    url = url_of(project, "alpha")
    forget(project, url)

    found = project.ask("explain", url)
    never_seen = url_of(project, "never")
    forget(project, never_seen)
    tried = project.ask("test", url, "--source", "demo")
    listed = project.lines("urls", "demo", "--rule", "forget")

    reason: dict[str, Any] = {"step": "boundary", "rule": url, "file": "forgotten.txt", "key": "forget"}
    reason["proposal"] = {"action": "remove", "file": "forgotten.txt", "key": "forget", "value": url}
    assert (found["in_index"], found["decided_by"]) == (False, reason)
    assert project.ask("explain", never_seen)["decided_by"]["file"] == "forgotten.txt"
    assert (tried["code"], tried["text"]) == (955, "")
    assert [row["state"] for row in listed] == ["rejected"]
    assert project.site.requested().count(f"{HOST}/alpha.html") == 1


def test_forget_when_other_pages_have_the_text_then_one_that_is_not_forgotten_takes_its_place(
    project: CrawlProject,
) -> None:
    for name in ("alpha", "beta", "gamma"):
        project.site.set_page(HOST, f"/{name}.html", page("one text"))
    first = run(project)

    forget(project, url_of(project, "alpha"), url_of(project, "beta"))
    taken = left(project)
    forget(project, url_of(project, "gamma"))

    [(survivor, copies)] = first.listed.items()
    assert {survivor, *copies} == {f"{HOST}/{name}.html" for name in ("alpha", "beta", "gamma")}
    assert taken == set(NAMES) - {"alpha", "beta"}
    assert left(project) == set(NAMES) - {"alpha", "beta", "gamma"}
    assert "one text" not in cached(project)
    assert is_verified(project)


def test_forget_when_a_copy_is_named_then_no_document_names_it_any_more(project: CrawlProject) -> None:
    for name in ("alpha", "beta"):
        project.site.set_page(HOST, f"/{name}.html", page("one text"))
    first = run(project)
    ((survivor, copies),) = first.listed.items()
    copy = copies[0].rpartition("/")[2].removesuffix(".html")

    forget(project, url_of(project, copy))

    assert survivor.rpartition("/")[2].removesuffix(".html") in left(project)
    assert all(not hit.fields.get("duplicates") for hit in project.hits("*"))
    assert is_verified(project)


def test_forget_when_an_earlier_version_lies_in_the_cache_then_it_goes_too(project: CrawlProject) -> None:
    run(project)
    project.site.set_page(HOST, "/alpha.html", page("second version"))
    run(project)
    assert "text of alpha" in cached(project)

    forget(project, url_of(project, "alpha"))

    assert "text of alpha" not in cached(project)
    assert "second version" not in cached(project)
    assert "text of beta" in cached(project)


def test_forget_when_a_redirect_brought_its_page_then_that_document_goes_too(project: CrawlProject) -> None:
    target = project.site.url(HOST, "/hidden.html")
    project.site.set_page(HOST, "/hidden.html", page("hidden words"))
    project.site.set_behaviour(HOST, "/alpha.html", status=302, headers={"Location": target})
    run(project)
    assert "hidden words" in cached(project)

    done = forget(project, target)
    row = project.rows()[f"{HOST}/alpha.html"]
    in_cache = cached(project)
    second = run(project)

    assert (done, left(project)) == ([receipt(1, 1)], set(NAMES) - {"alpha"})
    assert "hidden words" not in in_cache
    assert (row["code"], row["redirects"], row["document_state"]) == (0, None, None)
    assert (second.codes[f"{HOST}/alpha.html"], f"{HOST}/hidden.html" in second.requested) == (955, False)
    assert is_verified(project)


def test_forget_when_the_line_is_taken_out_then_the_page_comes_back(project: CrawlProject) -> None:
    run(project)
    forget(project, url_of(project, "alpha"))
    (project.folder / "forgotten.txt").write_text("# none\n", "utf-8")

    said = project.ask("explain", url_of(project, "alpha"))["verdict"]
    back = run(project)

    assert "as yet" in said
    assert f"{HOST}/alpha.html" in back.in_index
    assert not (NAMES and back.bodies > 1)


def test_forget_when_a_line_is_added_by_hand_then_the_next_run_removes_within_the_limits(project: CrawlProject) -> None:
    run(project)
    (project.folder / "forgotten.txt").write_text(url_of(project, "alpha") + "\n", "utf-8")

    second = run(project)

    assert (second.counts["deleted"], left(project)) == (1, set(NAMES) - {"alpha"})
    assert forget(project) == [receipt(1, 0)]
    assert "text of alpha" not in cached(project)


def test_forget_when_patterns_pass_the_limits_then_nothing_is_done_without_yes(project: CrawlProject) -> None:
    project.edit(**{**source(project.site, HOST), "lifecycle": {"max_delete_documents": 3}})
    run(project)
    pattern = "*/page*.html"

    refused = project.command("forget", "--pattern", pattern, "--json")
    untouched = left(project)
    done = forget(project, "--pattern", pattern, "--yes")
    later = run(project)

    assert (refused.returncode, refused.stdout, untouched) == (10, "", set(NAMES))
    assert "12 of 17 documents of demo" in refused.stderr
    assert done == [receipt(12, 12)]
    assert left(project) == {"alpha", "beta", "gamma", "delta"}
    assert (later.ended.exit_code, is_verified(project)) == (0, True)


def test_forget_when_a_file_names_urls_then_no_limit_holds_and_lines_are_kept_once(project: CrawlProject) -> None:
    project.edit(**{**source(project.site, HOST), "lifecycle": {"max_delete_documents": 0}})
    run(project)
    named = project.folder / "asked.txt"
    named.write_text("# asked for today\n" + "".join(url_of(project, name) + "#x\n" for name in ("alpha", "beta")))

    done = forget(project, "--file", str(named))
    forget(project, url_of(project, "beta"))
    lines = (project.folder / "forgotten.txt").read_text("utf-8").splitlines()

    assert done == [receipt(2, 2)]
    assert [line for line in lines if not line.startswith("#")] == [url_of(project, name) for name in ("alpha", "beta")]
    assert run(project).ended.exit_code == 0


@pytest.mark.parametrize("text", ["ftp://x.test/", "not a url", "pattern: re:(", "pattern:"])
def test_forget_when_a_line_is_not_understood_then_nothing_is_crawled(project: CrawlProject, text: str) -> None:
    (project.folder / "forgotten.txt").write_text(f"# first\n{text}\n", "utf-8")

    checked = project.command("sources", "check")
    ended = project.command("crawl", "demo")

    assert (checked.returncode, ended.returncode) == (4, 4)
    assert checked.stderr.startswith("forgotten.txt: line 2: ")
    assert project.site.requested() == []


def test_forget_when_redirects_starts_and_sitemaps_lead_there_then_it_is_not_asked_for(project: CrawlProject) -> None:
    target = url_of(project, "alpha")
    project.site.set_behaviour(HOST, "/beta.html", status=302, headers={"Location": target})
    project.site.set_behaviour(HOST, "/gamma.html", status=301, headers={"Location": target})
    urls = {"urls": [project.site.url(HOST, "/"), target]}
    project.edit(**{**source(project.site, HOST), "start": urls})

    forget(project, target)
    first = run(project)

    assert f"{HOST}/alpha.html" not in first.requested
    assert (first.codes[f"{HOST}/alpha.html"], first.codes[f"{HOST}/beta.html"]) == (955, 955)
    assert left(project) == set(NAMES) - {"alpha", "beta", "gamma"}


@pytest.mark.few(1)
@pytest.mark.parametrize("step", ["forget.listed", "forget.emptied", "delete.sent", "segment.moved"])
def test_forget_when_killed_then_the_next_run_removes_the_document_too(project: CrawlProject, step: str) -> None:
    run(project)

    killed = COMMANDS.run(project.folder, "forget", url_of(project, "alpha"), SEARCHCRAWL_FAILPOINT=step)
    later = run(project)

    assert (killed.returncode, later.ended.exit_code) == (-signal.SIGKILL, 0)
    assert left(project) == set(NAMES) - {"alpha"}
    assert f"{HOST}/alpha.html" not in later.requested
    assert is_verified(project)


@pytest.mark.parametrize("completed_by", ["forget", "flush", "crawl"])
def test_forget_when_the_index_is_away_then_exit_6_and_it_is_completed_later(
    project: CrawlProject, completed_by: str
) -> None:
    run(project)
    url = url_of(project, "alpha")
    away = absent_index()
    configure(project.folder, index=away)

    waits = forget(project, url, "-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=1", code=6)
    configure(project.folder)
    kept = left(project)
    arguments = {"forget": (url,), "flush": ("demo",), "crawl": ("demo",)}[completed_by]
    done = project.command(completed_by, *arguments)

    assert (waits, kept) == ([receipt(1, 0)], set(NAMES))
    assert "text of alpha" not in cached(project)
    assert (done.returncode, left(project), is_verified(project)) == (0, set(NAMES) - {"alpha"}, True)


def test_forget_when_the_source_is_crawled_then_exit_5_and_the_next_run_refuses_it(project: CrawlProject) -> None:
    run(project)
    url = url_of(project, "alpha")
    with project.busy():
        busy = project.command("forget", url)
    later = run(project)

    assert (busy.returncode, "another process" in busy.stderr) == (5, True)
    assert (later.ended.exit_code, left(project)) == (0, set(NAMES) - {"alpha"})
    assert forget(project, url) == [receipt(1, 0)]
    assert "text of alpha" not in cached(project)


def test_forget_when_the_source_file_is_gone_then_its_documents_are_forgotten(project: CrawlProject) -> None:
    run(project)
    (project.folder / "sources" / "demo.toml").rename(project.folder / "demo.aside")

    assert forget(project, url_of(project, "alpha")) == [receipt(1, 1)]
    assert left(project) == set(NAMES) - {"alpha"}


def test_forget_when_a_line_is_added_by_hand_then_plan_tells_what_leaves_and_is_gone_with_the_urls_it_names(
    project: CrawlProject,
) -> None:
    run(project)
    before = project.ask("plan", "demo")["plan"]
    forget(project, url_of(project, "beta"))
    assert not list((project.folder / "var").rglob(f"{before}*"))
    assert project.command("apply", before).returncode == 2
    with (project.folder / "forgotten.txt").open("a", encoding="utf-8") as file:
        file.write(f"{url_of(project, 'alpha')}\n")

    plan = project.ask("plan", "demo")
    applied = project.command("apply", plan["plan"])

    assert (plan["leave"], plan["reprocess"], plan["refetch"]) == (1, 0, 0)
    assert (applied.returncode, left(project)) == (0, set(NAMES) - {"alpha", "beta"})


@pytest.mark.extended
@pytest.mark.parametrize("processes", [1, 3])
def test_forget_when_a_crawl_is_under_way_then_it_is_asked_for_no_more(tmp_path: Path, processes: int) -> None:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"text of {name}") for name in NAMES})
        for name in ("alpha", "beta"):
            site.set_page(HOST, f"/to-{name}.html", "", status=302, headers={"Location": f"/{name}.html"})
        fetch = {"processes": processes, "delay_seconds": 0.5, "host_concurrency": 1}
        scope = {"include_hosts": [HOST], "exclude_urls": ["*/alpha.html"]}
        starts = [site.url(HOST, path) for path in ("/", "/gamma.html", "/to-beta.html")]
        project = new_project(tmp_path, site, start={"urls": starts, "sitemaps": "off"}, scope=scope, fetch=fetch)
        with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
            running.until(lambda: bool(site.log(host=HOST, robots=False)))
            busy = project.command("forget", url_of(project, "page11"), url_of(project, "beta"))
            running.wait()
        asked = {each["path"] for each in site.log(host=HOST)}
        rules = {url.rpartition("/")[2]: row["rule"] for url, row in project.rows().items()}

    # 0: no row of the source names them yet.
    assert busy.returncode in {0, 5}, busy.stderr
    assert "/page10.html" in asked
    assert not asked & {"/page11.html", "/beta.html"}
    assert rules["page11.html"].startswith("forget: ")
    assert left(project) == set(NAMES) - {"alpha", "beta", "page11"}


@pytest.mark.extended
def test_forget_when_the_list_cannot_be_read_during_a_crawl_then_it_says_so_once_and_goes_on(tmp_path: Path) -> None:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"text of {name}") for name in NAMES})
        project = new_project(
            tmp_path, site, **{**source(site, HOST), "fetch": {"delay_seconds": 0.3, "host_concurrency": 1}}
        )
        with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
            running.until(lambda: bool(site.log(host=HOST, robots=False)))
            (project.folder / "forgotten.txt").write_text("pattern: re:(\n", "utf-8")
            code = running.wait()
        (project.folder / "forgotten.txt").unlink()

    assert code == 0
    assert left(project) == set(NAMES)
    assert project.log().count("what it said before holds") == 1
