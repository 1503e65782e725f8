"""Documents that no page, sitemap or start list names any more: they are checked, kept or removed (D6, L3).

One of the copies for which they stood is indexed in their place (F2).
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import HOST, decide, is_verified, left, listed
from tests.acceptance.support_stories import list_in_sitemap, page, pages, run, source
from tests.crawl_forks import CLOCK, COMMANDS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

#: Linked by the start page, which the hub's pages are not.
HUB: Final = ("alpha", "beta", "gamma")
MANY: Final = 30


def settings(site: SiteProcess, orphans: str, **more: Any) -> dict[str, Any]:
    return {**source(site, HOST), "lifecycle": {"orphans": orphans, **more}}


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    # Each page links to itself and to the start page, as menus do.
    bodies = {f"/{name}.html": page(f"text of {name}", "/", f"/{name}.html") for name in (*HUB, "other")}
    clean_site.set_pages(HOST, {"/": page("start", "/hub.html", "/other.html"), **bodies})
    link(clean_site, *HUB)
    return new_project(tmp_path, clean_site, **settings(clean_site, "delete"))


def link(site: SiteProcess, *names: str) -> None:
    """What the hub links to."""
    site.set_page(HOST, "/hub.html", page(f"hub of {len(names)}", *(f"/{name}.html" for name in names)))


def requested(project: CrawlProject) -> set[str]:
    return {url.rpartition("/")[2].removesuffix(".html") for url in project.site.requested()} - {""}


def test_orphans_when_deleted_then_they_leave_after_the_run_and_stay_away_until_they_are_named_again(
    project: CrawlProject,
) -> None:
    run(project)
    unchanged = run(project)
    link(project.site, "alpha")
    removed = run(project)
    gone, later = left(project), run(project)
    visited = requested(project)
    link(project.site, "alpha", "beta")
    run(project)

    assert (unchanged.counts["deleted"], removed.counts["deleted"], later.counts["deleted"]) == (0, 2, 0)
    assert gone == {"hub", "other", "alpha"}
    assert visited == {"hub", "other", "alpha"}
    assert left(project) == {"hub", "other", "alpha", "beta"}
    assert is_verified(project)


def test_orphans_when_the_page_that_names_them_leads_to_an_excluded_login_then_they_stay(project: CrawlProject) -> None:
    site = project.site
    tables = settings(site, "delete")
    tables["scope"] = {**tables.get("scope", {}), "exclude_urls": ["*/login*"]}
    project.edit(**tables)
    noindex = '<meta name="robots" content="noindex">'
    site.set_page(HOST, "/hub.html", page("hub", *(f"/{name}.html" for name in HUB), head=noindex))
    run(project)
    before = left(project)

    site.set_page(HOST, "/hub.html", "", status=302, headers={"Location": "/login?back=hub"})
    after = run(project)

    assert before == left(project) == {"other", *HUB}
    assert after.codes[f"{HOST}/hub.html"] == 955


def test_orphans_when_kept_then_they_stay_and_are_visited_only_once_they_are_named_again(project: CrawlProject) -> None:
    project.edit(**settings(project.site, "keep"))
    run(project)
    link(project.site, "alpha")
    run(project)
    project.site.set_page(HOST, "/beta.html", page("newer text of beta"))
    run(project)
    visited, kept = requested(project), project.found('"newer text of beta"')
    link(project.site, "alpha", "beta")
    run(project)

    assert visited == {"hub", "other", "alpha"}
    assert kept == []
    assert left(project) == {"hub", "other", *HUB}
    assert len(project.found('"newer text of beta"')) == 1
    assert is_verified(project)


@pytest.mark.parametrize("policy", ["check", "keep", "delete"])
def test_orphans_when_the_source_file_has_them_checked_or_checked_again_then_all_stay_and_are_visited(
    project: CrawlProject, policy: str
) -> None:
    project.edit(**settings(project.site, policy))
    run(project)
    link(project.site, "alpha")
    run(project)
    project.edit(**settings(project.site, "check"))

    after = run(project)

    assert after.ended.exit_code == 0
    assert {"beta", "gamma"} <= requested(project)
    assert left(project) == {"hub", "other", *HUB}
    assert is_verified(project)


def in_a_sitemap(project: CrawlProject) -> None:
    list_in_sitemap(project.site, HOST, *(f"/{name}.html" for name in HUB))
    link(project.site)


def in_the_start_list(project: CrawlProject) -> None:
    urls = [project.site.url(HOST, path) for path in ("/", *(f"/{name}.html" for name in HUB))]
    project.edit(**{**settings(project.site, "delete"), "start": {"urls": urls}})
    link(project.site)


def behind_redirects(project: CrawlProject) -> None:
    for name in HUB:
        location = {"Location": project.site.url(HOST, f"/{name}.html")}
        project.site.set_behaviour(HOST, f"/old-{name}.html", status=301, headers=location)
    link(project.site, *(f"old-{name}" for name in HUB))


def named_as_canonical(project: CrawlProject) -> None:
    for name in HUB:
        head = f'<link rel="canonical" href="/{name}.html">'
        project.site.set_page(HOST, f"/print-{name}.html", page(f"print {name}", head=head))
    link(project.site, *(f"print-{name}" for name in HUB))


def by_a_page_that_is_not_indexed(project: CrawlProject) -> None:
    head = '<meta name="robots" content="noindex">'
    links = [f"/{name}.html" for name in HUB]
    project.site.set_page(HOST, "/list.html", page("list", *links, head=head))
    link(project.site, "list")


def hub_fails(project: CrawlProject) -> None:
    project.site.set_behaviour(HOST, "/hub.html", status=503)


def hub_is_empty(project: CrawlProject) -> None:
    project.site.set_page(HOST, "/hub.html", "<html><head><title></title></head><body></body></html>")


def all_fails(project: CrawlProject) -> None:
    project.site.set_behaviour(HOST, status=500)


NAMED: Final = (
    in_a_sitemap,
    in_the_start_list,
    behind_redirects,
    named_as_canonical,
    by_a_page_that_is_not_indexed,
    hub_is_empty,
    all_fails,
    hub_fails,
)


@pytest.mark.few(2)
@pytest.mark.parametrize("happen", NAMED)
def test_orphans_when_something_still_names_the_pages_or_their_hub_only_failed_then_they_stay(
    project: CrawlProject, happen: Callable[[CrawlProject], None]
) -> None:
    run(project)
    happen(project)

    ended = [run(project).ended for _ in range(2)]

    assert left(project) >= set(HUB)
    assert all(not each.counts["deleted"] for each in ended)
    assert listed(project) == []


def test_orphans_when_the_run_ended_early_then_none_leaves(project: CrawlProject) -> None:
    run(project)
    link(project.site)
    slow = {**source(project.site, HOST, concurrency=1, delay_seconds=0.5), "lifecycle": {"orphans": "delete"}}
    project.edit(**slow)

    # Pages that have not changed do not count: the hub is the first that does.
    cut = run(project, "-a", "limit=1")
    before = left(project)
    run(project)

    assert cut.ended.exit_code == 3
    assert before == {"hub", "other", *HUB}
    assert left(project) == {"hub", "other"}


@pytest.fixture
def many(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    names = [f"page{number:02}" for number in range(MANY)]
    pages(clean_site, HOST, **{name: page(f"text of {name}", "/") for name in names})
    return new_project(tmp_path, clean_site, **settings(clean_site, "delete"))


def list_first(project: CrawlProject, number: int) -> None:
    """Sets a sitemap of so many pages."""
    list_in_sitemap(project.site, HOST, *(f"/page{each:02}.html" for each in range(number)))


def start_page_without_links(project: CrawlProject) -> None:
    project.site.set_page(HOST, "/", page("start"))


def sitemap_empty(project: CrawlProject) -> None:
    list_first(project, 0)


def sitemap_with_a_third(project: CrawlProject) -> None:
    list_first(project, MANY // 3)


def sitemap_cut(project: CrawlProject) -> None:
    location = project.site.url(HOST, "/page00.html")
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{location}</loc></url><url><lo'
    project.site.set_page(HOST, "/sitemap.xml", body, content_type="application/xml")


@pytest.mark.few(1)
@pytest.mark.matrix
@pytest.mark.parametrize("happen", [start_page_without_links, sitemap_empty, sitemap_with_a_third, sitemap_cut])
def test_orphans_when_links_or_sitemaps_are_lost_then_all_wait_and_are_dropped_once_they_are_back(
    many: CrawlProject, happen: Callable[[CrawlProject], None]
) -> None:
    by_links = happen is start_page_without_links
    start = page("start", *(f"/page{number:02}.html" for number in range(MANY)))
    if not by_links:
        start_page_without_links(many)
        list_first(many, MANY)
    run(many)

    happen(many)
    lost = [run(many).ended for _ in range(3)]
    waiting, kept = listed(many), len(left(many))
    if by_links:
        many.site.set_page(HOST, "/", start)
    else:
        list_first(many, MANY)
    back = run(many)

    held = {sitemap_with_a_third: MANY - MANY // 3, sitemap_cut: 0}.get(happen, MANY)
    assert kept == MANY
    assert {each.exit_code for each in lost} == {9 if held else 0}
    assert (len(waiting), {row["reason"] for row in waiting}) == (held, {"orphan"} if held else set())
    # A later run does not take them for its own: what was listed first can be approved.
    assert len({row["run"] for row in waiting}) == (1 if held else 0)
    assert (back.ended.exit_code, listed(many)) == (0, [])
    assert len(left(many)) == MANY
    assert is_verified(many)


@pytest.mark.parametrize("action", ["approve", "reject", "restore"])
def test_orphans_when_decided_then_they_leave_or_stay_and_nothing_waits_again(many: CrawlProject, action: str) -> None:
    run(many)
    start_page_without_links(many)
    held = run(many).ended.status["run"]["id"]
    listed(many)
    if action == "restore":
        decide(many, "reject")

    done = decide(many, action)
    many.site.set_page(HOST, "/page00.html", page("newer text", "/"))
    after = [run(many, **{CLOCK: str(days * 86_400)}).ended for days in (0, 2)]

    assert done["documents"] == MANY
    assert [each.exit_code for each in after] == [0, 0]
    assert listed(many) == []
    assert len(left(many)) == (MANY if action == "reject" else 0)
    assert len(listed(many, "--rejected")) == (MANY if action == "reject" else 0)
    assert is_verified(many)

    many.command("undelete", str(held))
    last = run(many, **{CLOCK: str(2 * 86_400)}).ended

    assert (last.exit_code, len(left(many))) == (0, MANY)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("point", "number"),
    [
        ("delete.selected", MANY),
        ("delete.selected", 5),
        ("delete.sent", 5),
        ("delete.marked", 5),
        ("commit.sent", 5),
    ],
)
def test_orphans_when_killed_in_the_middle_then_the_next_run_ends_the_same(
    many: CrawlProject, point: str, number: int
) -> None:
    run(many)
    names, waits = range(number), number == MANY
    rest = [f"/page{each:02}.html" for each in range(MANY) if each not in names]
    many.site.set_page(HOST, "/", page("start", *rest))

    killed = many.crawl(SEARCHCRAWL_FAILPOINT=point).exit_code
    after = run(many)

    assert killed == -signal.SIGKILL
    assert (after.ended.exit_code, len(listed(many))) == ((9, MANY) if waits else (0, 0))
    assert len(left(many)) == (MANY if waits else MANY - number)
    assert is_verified(many)


TWINS = ("alpha", "beta", "gamma")


@pytest.fixture
def copied(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    link_from_start(clean_site, *TWINS)
    clean_site.set_page(HOST, "/gamma.html", page("text of gamma", "/"))
    for name in ("alpha", "beta"):
        clean_site.set_page(HOST, f"/{name}.html", page("one text for both", "/"))
    return new_project(tmp_path, clean_site, **source(clean_site, HOST), lifecycle={"orphans": "delete"})


def link_from_start(site: SiteProcess, *names: str) -> None:
    """What the start page links to."""
    site.set_page(HOST, "/", page(f"start of {len(names)}", *(f"/{name}.html" for name in names)))


def twins(copied: CrawlProject) -> tuple[str, str]:
    """The page that stands for the other one of the same text, and that one."""
    (survivor,) = left(copied) & {"alpha", "beta"}
    (copy,) = {"alpha", "beta"} - {survivor}
    return survivor, copy


@pytest.mark.parametrize("known_first", [True, False])
def test_orphans_when_they_stood_for_copies_then_one_of_these_is_indexed_in_the_same_run(
    copied: CrawlProject, known_first: bool
) -> None:
    if known_first:
        link_from_start(copied.site, "alpha", "gamma")
        run(copied)
        link_from_start(copied.site, *TWINS)
    run(copied)
    survivor, copy = twins(copied)
    link_from_start(copied.site, copy, "gamma")

    run(copied)
    alone = left(copied)
    link_from_start(copied.site, *TWINS)
    run(copied)

    assert alone == {"gamma", copy}
    # Named again it stands for the other one as before.
    assert left(copied) == {"gamma", survivor}
    assert is_verified(copied)


@pytest.mark.parametrize("is_named_again", [True, False])
@pytest.mark.parametrize("point", ["batch.sealed", "batch.marked", "delete.selected", "delete.marked"])
@pytest.mark.few(1)
def test_orphans_when_they_stood_for_copies_and_the_run_is_killed_then_one_of_both_is_left(
    copied: CrawlProject, point: str, is_named_again: bool
) -> None:
    run(copied)
    survivor, copy = twins(copied)
    link_from_start(copied.site, copy, "gamma")
    number = 2 if point.startswith("batch") else 1
    killed = COMMANDS.run(copied.folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT=f"{point}:{number}").returncode
    if is_named_again:
        link_from_start(copied.site, *TWINS)

    run(copied)
    run(copied)

    assert killed == -signal.SIGKILL
    assert left(copied) == {"gamma", survivor if is_named_again else copy}
    assert is_verified(copied)


@pytest.mark.parametrize("way", ["reject", "undelete"])
def test_orphan_when_its_removal_is_taken_back_then_it_and_its_copy_are_not_both_in_the_index(
    copied: CrawlProject, way: str
) -> None:
    run(copied)
    survivor, copy = twins(copied)
    link_from_start(copied.site, copy, "gamma")
    held = {"orphans": "delete", "max_delete_documents": 0 if way == "reject" else 100}
    copied.edit(**source(copied.site, HOST), lifecycle=held)
    copied.crawl()
    removed = copied.last_run()
    both = left(copied) >= {survivor, copy}

    done = decide(copied, "reject") if way == "reject" else copied.ask("undelete", removed)
    copied.edit(**source(copied.site, HOST), lifecycle={"orphans": "delete"})
    copied.crawl()

    assert both is (way == "reject")
    assert done["failed"] == 0
    assert len(left(copied) & {survivor, copy}) == 1
    assert left(copied) == {"gamma", survivor}
    assert is_verified(copied)
    # The survivor lists the other one, as for every copy.
    (hit,) = copied.hits("text both")
    assert [url.rpartition("/")[2] for url in hit.fields["duplicates"]] == [f"{copy}.html"]


NAMED_HOST: Final = "named.acme.test"
LONG: Final = f"/{'kelp' * 15}.html"


def limited(site: SiteProcess, **scope: Any) -> dict[str, Any]:
    wanted = source(site, NAMED_HOST)
    return {**wanted, "scope": {**wanted["scope"], **scope}, "lifecycle": {"orphans": "delete"}}


def test_orphan_when_named_while_an_edit_has_it_visited_then_it_is_back_at_the_end_of_the_run(
    site: SiteProcess, tmp_path: Path
) -> None:
    site.set_page(NAMED_HOST, "/", page("start", "/hub.html", LONG))
    site.set_page(NAMED_HOST, "/hub.html", page("hub", "/other.html"))
    site.set_page(NAMED_HOST, "/other.html", page("other"))
    site.set_page(NAMED_HOST, LONG, page("long"))
    project = new_project(tmp_path, site, **limited(site))
    run(project)
    # It is refused, and kept by an operator: then nothing names it any more.
    project.edit(**limited(site, max_url_length=60))
    refused = run(project)
    project.ask("undelete", project.last_run())
    site.set_page(NAMED_HOST, "/", page("start", "/hub.html"))
    orphaned = run(project)
    site.set_page(NAMED_HOST, "/", page("start", "/hub.html", LONG))
    project.edit(**limited(site))
    named = run(project)
    quiet = run(project)

    assert (refused.codes[NAMED_HOST + LONG], NAMED_HOST + LONG in refused.in_index) == (1004, False)
    assert NAMED_HOST + LONG not in orphaned.in_index
    assert (named.codes[NAMED_HOST + LONG], NAMED_HOST + LONG in named.in_index) == (200, True)
    assert quiet.versions == named.versions
