"""B6, D9: rules that are edited, also while a site is down: what is outside then leaves, what is inside again comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, page, pages, run, source
from tests.site.client import SiteProcess

HOST, OTHER, MANY = "edited.acme.test", "b.acme.test", "many.acme.test"
SESSIONS, MOVING = "sessions.acme.test", "moving.acme.test"
OUTAGE: Final = "outage.acme.test"
NAMES: Final = ("one", "two", "three")
ONE: Final = f"{OUTAGE}/one.html"
#: A removal of so many passes the limits on deleting.
_MANY: Final = 14


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    site.set_page(HOST, "/", page("start", "/a.html", "/deep/copy.html", site.url(OTHER), site.url(MANY)))
    site.set_page(HOST, "/a.html", page("alpha", "/deep/1.html"))
    site.set_page(HOST, "/deep/1.html", page("first below", "/deep/2.html"))
    site.set_page(HOST, "/deep/2.html", page("second below"))
    site.set_page(OTHER, "/", page("start of the other", "/x", "/moved"))
    # Of the two the shorter URL stands for both.
    site.set_page(OTHER, "/x", page("the same words"))
    site.set_page(HOST, "/deep/copy.html", page("the same words"))
    site.set_page(OTHER, "/moved", "", status=302, headers={"Location": site.url(HOST, "/a.html")})
    site.set_page(MANY, "/", page("many", *(f"/{number}" for number in range(_MANY))))
    for number in range(_MANY):
        site.set_page(MANY, f"/{number}", page(f"one of many, the {number}th"))
    site.set_page(SESSIONS, "/", page("start", "/p?sid=1", "/p?sid=2&x=1", "/q;sid=3", "/plain"))
    for path in ("/p", "/q", "/plain"):
        site.set_page(SESSIONS, path, page(f"page {path}"))
    site.set_page(MOVING, "/", page("start", "/old/a", "/old/b", "/new/b"))
    site.set_page(SESSIONS, "/q;sid=3", page("page /q"))
    for path in ("/old/a", "/old/b", "/new/a", "/new/b", "/new/other/a"):
        site.set_page(MOVING, path, page(f"text of {path}"))
    return site


def edit(project: CrawlProject, *hosts: str, scope: dict[str, Any] | None = None, **overrides: Any) -> None:
    """Writes the rules for these hosts."""
    project.edit(**source(project.site, hosts[0], scope={"include_hosts": list(hosts), **(scope or {})}), **overrides)


def edited(project: CrawlProject, *hosts: str, **overrides: Any) -> Run:
    """A run after such an edit."""
    edit(project, *hosts, **overrides)
    return run(project)


def of_host(run: Run, host: str) -> list[str]:
    return sorted(url for url in run.in_index if url.startswith(f"{host}/"))


def refused(project: CrawlProject, host: str) -> dict[str, tuple[int, str]]:
    """Code and rule of the rows of a host that have a rule, by path."""
    rows = project.rows().items()
    return {url.removeprefix(host): (row["code"], row["rule"]) for url, row in rows if host in url and row["rule"]}


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return new_project(tmp_path, site)


@pytest.mark.matrix
def test_boundary_when_a_host_is_taken_out_and_put_back_then_its_documents_leave_and_come_back(
    project: CrawlProject,
) -> None:
    first = edited(project, HOST, OTHER)
    # Were its rows visited to find out, they would take their turns: ten seconds each.
    without = edited(project, HOST, OTHER, scope={"exclude_hosts": [OTHER]})
    rows = refused(project, OTHER)
    again = edited(project, HOST, OTHER)
    settled = run(project)

    assert of_host(first, OTHER) == [f"{OTHER}/", f"{OTHER}/x"]
    # The page that it leads to answers itself.
    assert first.codes[f"{OTHER}/moved"] == 909
    assert first.codes[f"{HOST}/deep/copy.html"] == 909
    assert without.ended.exit_code == 0
    assert [entry for entry in without.log if entry["host"] == OTHER] == []
    assert set(rows.values()) == {(955, f"scope.exclude_hosts: {OTHER}")}
    assert {"/", "/x", "/moved"} == set(rows)
    assert of_host(without, OTHER) == []
    assert not [url for url in without.versions if url.startswith(OTHER)]
    assert without.counts["deleted"] == 2
    # Its copy inside stands for itself in the same run.
    assert without.codes[f"{HOST}/deep/copy.html"] == 200
    assert f"{HOST}/deep/copy.html" in without.versions
    assert without.ended.status["force_recrawl"] is None
    assert (again.in_index, again.codes) == (first.in_index, first.codes)
    assert set(again.versions) == set(first.versions)
    assert (settled.counts["indexed"], settled.counts["deleted"]) == (0, 0)


def test_boundary_when_a_page_limit_is_edited_then_the_rule_is_named_and_only_evidence_removes(
    project: CrawlProject,
) -> None:
    first = edited(project, HOST)
    nearer = edited(project, HOST, scope={"depth": 1, "max_path_segments": 1})
    rows = refused(project, HOST)
    back = edited(project, HOST)

    assert of_host(first, HOST) == sorted(
        f"{HOST}{path}" for path in ("/", "/a.html", "/deep/1.html", "/deep/2.html", "/deep/copy.html")
    )
    # A trap limit keeps what is known, and visits it; depth is a limit of the boundary.
    assert rows == {f"/deep/{number}.html": (955, "scope.depth: depth = 1") for number in (1, 2)}
    assert nearer.in_index == first.in_index - {f"{HOST}/deep/{number}.html" for number in (1, 2)}
    assert f"{HOST}/deep/copy.html" in nearer.requested
    assert (back.codes, back.in_index) == (first.codes, first.in_index)


def test_boundary_when_more_would_leave_than_the_limits_allow_then_all_wait_for_an_approval(
    project: CrawlProject,
) -> None:
    first = edited(project, HOST, MANY)
    held = edited(project, HOST)
    waiting = project.command("quarantine", "list", "demo", "--json").stdout.splitlines()
    approved = project.command("quarantine", "approve", "demo")

    assert len(of_host(first, MANY)) == _MANY + 1
    assert (held.ended.exit_code, len(waiting)) == (9, _MANY + 1)
    assert of_host(held, MANY) == of_host(first, MANY)
    assert approved.returncode == 0
    assert not [url for url in project.indexed() if url.startswith(MANY)]
    assert set(refused(project, MANY).values()) == {(955, "scope.include_hosts: no include matches")}


def test_strip_parameters_when_edited_then_urls_that_are_others_leave_and_their_new_identity_comes(
    project: CrawlProject,
) -> None:
    first = edited(project, SESSIONS)
    stripped = edited(project, SESSIONS, scope={"strip_parameters": ["sid"]})
    rows = refused(project, SESSIONS)
    back = edited(project, SESSIONS)

    found = {"/p?sid=1", "/p?sid=2&x=1", "/q;sid=3"}
    assert {url.removeprefix(SESSIONS) for url in first.codes} == {"/", "/plain", *found}
    assert rows == dict.fromkeys(found, (955, "scope.strip_parameters: sid"))
    assert of_host(stripped, SESSIONS) == sorted(f"{SESSIONS}{path}" for path in ("/", "/plain", "/p", "/q"))
    assert stripped.codes[f"{SESSIONS}/p?x=1"] == 909
    assert not [url for url in stripped.requested if "sid" in url]
    assert {f"{SESSIONS}{path}" for path in found} <= back.codes.keys()
    assert {back.codes[f"{SESSIONS}{path}"] for path in found} <= {200, 909}


def test_rewrite_when_edited_then_rows_follow_their_links_and_one_that_is_linked_as_it_is_stays(
    project: CrawlProject,
) -> None:
    # Not idempotent: what was rewritten must not be rewritten again.
    first_rule, second_rule = {"match": "/old/", "replace": "/new/"}, {"match": "/old/", "replace": "/new/other/"}

    first = edited(project, MOVING, rewrite=[first_rule])
    second = edited(project, MOVING, rewrite=[second_rule])
    rows = refused(project, MOVING)
    without = edited(project, MOVING)
    same = edited(project, MOVING)

    assert of_host(first, MOVING) == [f"{MOVING}/", f"{MOVING}/new/a", f"{MOVING}/new/b"]
    assert of_host(second, MOVING) == [f"{MOVING}/", f"{MOVING}/new/b", f"{MOVING}/new/other/a"]
    assert rows == {"/new/a": (955, "rewrite: rewritten otherwise")}
    assert second.codes[f"{MOVING}/new/other/b"] == 404
    assert of_host(without, MOVING) == [f"{MOVING}/", f"{MOVING}/new/b", f"{MOVING}/old/a", f"{MOVING}/old/b"]
    assert (same.counts["indexed"], same.codes) == (0, without.codes)


def test_boundary_when_the_process_is_killed_while_edited_rules_are_applied_then_the_next_run_ends_the_same(
    site: SiteProcess, tmp_path: Path
) -> None:
    killed, undisturbed = (new_project(tmp_path / name, site) for name in ("killed", "undisturbed"))
    rule = {"match": "/old/", "replace": "/new/"}
    for project in (killed, undisturbed):
        edited(project, MOVING, HOST, OTHER, rewrite=[rule])
        other = [{**rule, "replace": "/new/other/"}]
        edit(project, MOVING, HOST, scope={"strip_parameters": ["x"]}, rewrite=other)

    # In the transaction that writes what leaves; after it; and when pages are read again.
    ends = [killed.crawl(SEARCHCRAWL_FAILPOINT=f"links.mid:{number}").exit_code for number in (1, 2, 3)]
    whole, last = run(undisturbed), run(killed)

    assert ends == [-9, -9, -9]
    assert (last.codes, last.in_index) == (whole.codes, whole.in_index)
    assert set(last.versions) == set(whole.versions) == whole.in_index
    assert refused(killed, MOVING) == refused(undisturbed, MOVING) == {"/new/a": (955, "rewrite: rewritten otherwise")}


def test_boundary_when_an_edit_is_taken_back_after_a_run_that_was_cut_short_then_all_is_as_before(
    project: CrawlProject,
) -> None:
    first = edited(project, HOST, OTHER)

    edit(project, HOST)
    cut_short = run(project, "-a", "limit=1")
    back = edited(project, HOST, OTHER)

    assert cut_short.ended.exit_code == 3
    assert set(refused(project, OTHER)) == set()
    assert (back.codes, back.in_index) == (first.codes, first.in_index)
    assert set(back.versions) == set(first.versions)
    assert back.ended.status["force_recrawl"] is None


@pytest.mark.few(2)
@pytest.mark.parametrize("killed_at", [None, "lease.taken", "row.updated", "links.committed"])
def test_edit_when_pages_are_due_much_later_then_the_next_run_looks_at_all_of_them_all_the_same(
    project: CrawlProject, killed_at: str | None
) -> None:
    lifecycle = {"recrawl_every_hours": 1000}

    first = edited(project, HOST, lifecycle=lifecycle)
    unedited = edited(project, HOST, lifecycle=lifecycle)
    keys = {"keep": {"exclude_urls": ["*/deep/*"]}, "lifecycle": lifecycle}
    edit(project, HOST, **keys)
    if killed_at is not None:
        assert run(project, SEARCHCRAWL_FAILPOINT=killed_at).ended.exit_code == -9
    without = edited(project, HOST, **keys)
    again = edited(project, HOST, **keys)
    back = edited(project, HOST, lifecycle=lifecycle)

    assert unedited.requested == again.requested == []
    assert of_host(without, HOST) == [f"{HOST}/", f"{HOST}/a.html"] == sorted(without.versions)
    assert without.ended.status["force_recrawl"] is None
    assert (back.in_index, set(back.versions)) == (first.in_index, first.in_index)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        pages(
            site, OUTAGE, **{name: page(f"page {name}", text=f"Text of {name}. " * (9 * len(name))) for name in NAMES}
        )
        yield new_project(tmp_path, site, **source(site, OUTAGE))


@pytest.mark.extended
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "keep", [{"exclude_urls": ["*/one.html"]}, {"min_bytes": 600}, {"exclude_names": ["one.html"]}], ids=str
)
@pytest.mark.parametrize("fault", ["down", "503", "reset", "limit"])
def test_page_when_it_failed_in_the_run_after_an_edit_then_the_edit_counts_at_its_next_visit(
    small: CrawlProject, keep: dict[str, Any], fault: str
) -> None:
    site = small.site
    run(small)
    small.edit(**source(site, OUTAGE), keep=keep)
    if fault == "down":
        site.down()
    elif fault == "503":
        site.set_behaviour(OUTAGE, path="/one.html", status=503)
    elif fault == "reset":
        site.set_behaviour(OUTAGE, path="/one.html", mode="reset")
    options = ("-a", "limit=1") if fault == "limit" else ()
    failed = run(small, *options)
    site.up()
    site.clear_behaviours()
    after = run(small)

    assert ONE in failed.versions
    assert (after.codes[ONE], ONE in after.versions) == (952, False)


@pytest.mark.extended
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "edit",
    [
        {"keep": {"exclude_urls": ["*/one.html", "*/two.html"]}},
        {"keep": {"exclude_mime_types": ["text/html"]}},
        {"scope": {"include_hosts": [OUTAGE], "exclude_urls": ["*/one.html", "*/two.html"]}},
    ],
    ids=str,
)
def test_pages_when_an_edit_was_cut_off_and_taken_back_then_are_visited_before_they_leave(
    small: CrawlProject, edit: dict[str, Any]
) -> None:
    site = small.site
    before = run(small)
    small.edit(**source(site, OUTAGE) | edit)
    # All pages were visited, and nothing was removed yet.
    small.crawl(SEARCHCRAWL_FAILPOINT="shutdown.drain")
    small.edit(**source(site, OUTAGE))
    cut = run(small, "-a", "limit=1")
    after = run(small)

    assert [set(each.versions) for each in (cut, after)] == [set(before.versions)] * 2
    assert after.ended.exit_code == 0
