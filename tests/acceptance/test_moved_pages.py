"""Pages that moved for good: their documents leave once the end of the redirects is known, and not before (L3, C6).

Where a page is as before after a while, what it links to is found again (D6).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import is_verified
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess
from tests.stored_rows import query_columns

pytestmark = pytest.mark.extended

HOST, OUTSIDE = "moved.acme.test", "elsewhere.test"
#: How the last page of a chain answers, by what it is called; documents that lead there leave.
GONE: Final = ("fine", "missing", "retired", "forbidden", "outside", "noindex", "excluded")
#: The same; documents that lead there stay.
KEPT: Final = ("unauthorised", "denied", "broken", "slow", "blank", "deep", "loop", "many")
STATUSES: Final = {"missing": 404, "retired": 410, "unauthorised": 401, "denied": 403, "broken": 500}
HOPS: Final = (1, 2, 5)
DOCUMENTS: Final = ("a", "b")
#: The most parts of a path that are allowed; the end "deep" has more.
SEGMENTS: Final = 6


def path(kind: str, hops: int, name: str, place: int = 0) -> str:
    return f"/{kind}/{hops}/{name}-{place}.html"


def known(*kinds: str) -> list[str]:
    return [path(kind, hops, name) for kind in kinds for hops in HOPS for name in DOCUMENTS]


def move(site: SiteProcess, start: str, target: str, *, by_refresh: bool = False) -> None:
    """Moves a page for good, by a status or by a meta refresh."""
    if by_refresh:
        body = page("moved", head=f'<meta http-equiv="refresh" content="0;url={target}">')
        site.set_page(HOST, start, body, status=200, headers={})
    else:
        site.set_page(HOST, start, "", status=301, headers={"Location": target})


def find_end(site: SiteProcess, kind: str, hops: int, name: str) -> str:
    """Sets the last page of a chain; returns the target that leads to it."""
    end = path(kind, hops, name, hops)
    match kind:
        case "outside":
            return site.url(OUTSIDE, end)
        case "deep":
            return "/deep" + "".join(f"/{number}" for number in range(SEGMENTS)) + f"/{hops}{name}.html"
        case "loop":
            # Back to the page itself, whose row is older than all others of the chain.
            return path(kind, hops, name)
        case "many":
            for place in range(30):
                site.set_page(HOST, path(kind, hops, name, hops + place), page(f"other {hops} {name} {place}"))
    head = '<meta name="robots" content="noindex">' if kind == "noindex" else ""
    body = "" if kind == "blank" else page(f"end of {end}", text=f"all that {end} says", head=head)
    site.set_page(HOST, end, body)
    if kind in STATUSES:
        site.set_behaviour(HOST, end, status=STATUSES[kind])
    if kind == "slow":
        site.set_behaviour(HOST, end, mode="hang")
    return end


def move_all(site: SiteProcess, *kinds: str) -> None:
    """Moves each known document of these kinds, over as many rows as its path says."""
    for kind in kinds:
        for hops in HOPS:
            for name in DOCUMENTS:
                end = find_end(site, kind, hops, name)
                for place in range(hops):
                    target = end if place == hops - 1 else path(kind, hops, name, place + 1)
                    move(site, path(kind, hops, name, place), target, by_refresh=place % 2 == 1)


def edit(project: CrawlProject, **lifecycle: Any) -> None:
    ends = [f"*/excluded/{hops}/*-{hops}.html" for hops in HOPS]
    project.edit(
        start={"urls": [project.site.url(HOST)]},
        scope={"include_hosts": [HOST], "max_path_segments": SEGMENTS, "exclude_urls": ends},
        fetch={"retries": 0, "timeout_seconds": 1.0, "host_concurrency": 8},
        lifecycle={"max_delete_percent": 100, **lifecycle},
    )


def prepare(project: CrawlProject, *kinds: str) -> None:
    site = project.site
    site.set_page(HOST, "/", page("start", *known(*kinds)))
    ends = "".join(f"Disallow: /forbidden/{hops}/*-{hops}.html\n" for hops in HOPS)
    site.set_page(HOST, "/robots.txt", f"User-agent: *\n{ends}")
    for start in known(*kinds):
        site.set_page(HOST, start, page(start, text=f"what {start} says"))
    edit(project)


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return new_project(tmp_path, clean_site)


def in_index(project: CrawlProject) -> set[str]:
    return {url.removeprefix(HOST) for url in project.indexed()}


def leaving(project: CrawlProject) -> set[str]:
    """The documents of the index that have evidence against them."""
    rows = query_columns(
        project.folder,
        "SELECT urls.url FROM urls JOIN documents ON documents.url_id = urls.id"
        " WHERE documents.leaving > 0 AND documents.indexed_version IS NOT NULL",
    )
    return {row["url"].partition(HOST)[2].partition("/")[2] for row in rows}


def test_documents_when_their_redirects_end_at_a_page_that_is_fine_or_gone_or_refused_then_leave(
    project: CrawlProject,
) -> None:
    prepare(project, *GONE)
    first = run(project)
    move_all(project.site, *GONE)

    moved = run(project)
    again = run(project)

    assert {f"{HOST}{start}" for start in known(*GONE)} <= first.in_index
    assert moved.ended.exit_code == 0
    assert in_index(project) & set(known(*GONE)) == set()
    assert moved.counts["deleted"] == len(known(*GONE))
    assert again.counts["deleted"] == 0
    assert leaving(project) == set()
    assert {path("fine", hops, name, hops) for hops in HOPS for name in DOCUMENTS} <= in_index(project)


def test_documents_when_their_redirects_end_at_a_page_that_failed_or_was_never_asked_for_then_stay(
    project: CrawlProject,
) -> None:
    prepare(project, *KEPT)
    run(project)
    move_all(project.site, *KEPT)
    # A chain of more rows than any browser follows.
    for hops in HOPS:
        for name in DOCUMENTS:
            for place in range(hops, hops + 30):
                move(project.site, path("many", hops, name, place), path("many", hops, name, place + 1))

    moved = run(project)
    again = run(project)
    # Pages that moved, and fail now themselves.
    for start in known("denied"):
        project.site.set_behaviour(HOST, start, status=500)
    failed = run(project)

    assert set(known(*KEPT)) <= in_index(project)
    assert [each.counts["deleted"] for each in (moved, again, failed)] == [0, 0, 0]
    assert [each.ended.exit_code for each in (moved, again, failed)] == [0, 0, 0]


def test_documents_when_a_chain_appears_over_several_runs_then_leave_once_its_end_is_fine(
    project: CrawlProject,
) -> None:
    prepare(project, "broken")
    run(project)
    move_all(project.site, "broken")
    held = [run(project).counts["deleted"]]
    # What failed moves on, to a page that fails as well.
    project.site.clear_behaviours()
    for hops in HOPS:
        for name in DOCUMENTS:
            move(project.site, path("broken", hops, name, hops), path("later", hops, name))
            project.site.set_behaviour(HOST, path("later", hops, name), status=503)
    held.append(run(project).counts["deleted"])
    project.site.clear_behaviours()
    for hops in HOPS:
        for name in DOCUMENTS:
            project.site.set_page(HOST, path("later", hops, name), page(f"later {hops} {name}"))

    after = run(project)

    assert held == [0, 0]
    assert after.counts["deleted"] == len(known("broken"))
    assert in_index(project) & set(known("broken")) == set()
    assert leaving(project) == set()


def test_documents_when_all_moved_to_pages_that_are_gone_then_wait_beyond_the_limits(project: CrawlProject) -> None:
    kinds = ("missing", "forbidden", "noindex")
    prepare(project, *kinds)
    edit(project, max_delete_percent=10)
    run(project)
    move_all(project.site, *kinds)

    moved = run(project)
    listed = project.command("quarantine", "list", "demo", "--json").stdout.splitlines()
    approved = project.command("quarantine", "approve", "demo").returncode

    assert (moved.ended.exit_code, moved.counts["deleted"], approved) == (9, 0, 0)
    assert {json.loads(line)["url"].partition(f":{project.site.port}")[2] for line in listed} == set(known(*kinds))
    assert in_index(project) & set(known(*kinds)) == set()


BACK: Final = "back.acme.test"
CHILDREN: Final = ("alpha", "beta", "gamma")
HUB: Final = page("hub", *(f"/{name}.html" for name in CHILDREN))


@pytest.fixture
def linked(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    pages(clean_site, BACK, hub=HUB, other=page("other"))
    clean_site.set_pages(BACK, {f"/{name}.html": page(f"text of {name}") for name in CHILDREN})
    return new_project(tmp_path, clean_site, **source(clean_site, BACK), lifecycle={"orphans": "delete"})


def redirect_hub(site: SiteProcess, status: int) -> None:
    """Has the hub lead to the other page, for good; 200: by a meta refresh."""
    head = '<meta http-equiv="refresh" content="0;url=/other.html">'
    headers = {} if status == 200 else {"Location": "/other.html"}
    site.set_page(BACK, "/hub.html", page("moved", head=head), status=status, headers=headers)


def put_back(site: SiteProcess) -> None:
    site.set_page(BACK, "/hub.html", HUB, status=200, headers={})


@pytest.mark.few(2)
@pytest.mark.parametrize("failing", [False, True], ids=["at-once", "after-a-failure"])
@pytest.mark.parametrize("status", [200, 301, 308])
def test_links_when_their_page_redirected_for_a_run_then_they_lead_to_the_same_documents_again(
    linked: CrawlProject, status: int, failing: bool
) -> None:
    run(linked)
    before = linked.indexed()
    redirect_hub(linked.site, status)
    without = run(linked)
    put_back(linked.site)
    if failing:
        linked.site.set_behaviour(BACK, "/hub.html", status=503)
        run(linked)
        linked.site.clear_behaviours()

    run(linked)
    after = linked.indexed()
    linked.site.set_page(BACK, "/alpha.html", page("alpha says something new"))
    run(linked)

    assert {url.rpartition("/")[2] for url in without.in_index} == {"", "other.html"}
    assert after == before
    assert [url.rpartition("/")[2] for url in linked.found("something new")] == ["alpha.html"]
    assert is_verified(linked)


def test_links_when_the_start_page_redirected_in_a_run_cut_off_then_all_is_back_with_the_next_visit(
    linked: CrawlProject,
) -> None:
    run(linked)
    before = linked.indexed()
    linked.site.set_page(BACK, "/", "", status=301, headers={"Location": "/other.html"})
    linked.command("crawl", "demo", "-a", "limit=1")
    linked.site.set_page(BACK, "/", page("start", "/hub.html", "/other.html"), status=200, headers={})

    # It goes on with what the other left, and the start page was visited.
    run(linked)
    ended = run(linked)

    assert (linked.indexed(), ended.ended.exit_code) == (before, 0)
    assert is_verified(linked)


def test_page_when_it_is_back_then_it_is_read_once_and_asked_conditionally_after_that(
    linked: CrawlProject,
) -> None:
    run(linked)
    redirect_hub(linked.site, 301)
    run(linked)
    put_back(linked.site)
    run(linked)

    asked = run(linked).log

    assert [request["status"] for request in asked if request["path"] == "/hub.html"] == [304]
