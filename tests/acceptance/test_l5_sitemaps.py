"""L5: sitemaps of every kind are found and read, what they list is crawled, their dates decide what is due."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import Run, Story, Tell, page, run
from tests.site.client import SiteProcess

HOST: Final = "maps.acme.test"
OTHER: Final = "other.acme.test"
#: Before the pages of the test are fetched, and after.
OLD, NEW = "2001-01-01T00:00:00Z", f"{datetime.now(UTC) + timedelta(hours=20):%Y-%m-%dT%H:%M:%SZ}"


def urlset(site: SiteProcess, paths: Mapping[str, str | None], *, host: str = HOST) -> str:
    """A sitemap of paths with their lastmods."""
    entries = (
        f"<url><loc>{site.url(host, path)}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>"
        for path, date in paths.items()
    )
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(entries)}</urlset>'


def index_of(site: SiteProcess, *paths: str, host: str = HOST) -> str:
    """A sitemap that names others."""
    entries = (f"<sitemap><loc>{site.url(host, path)}</loc></sitemap>" for path in paths)
    return f"<sitemapindex>{''.join(entries)}</sitemapindex>"


def put(site: SiteProcess, path: str, body: str | bytes, *, host: str = HOST, **fields: Any) -> None:
    """Sets what is no page of HTML."""
    site.set_page(host, path, body, **{"content_type": "application/xml", **fields})


def unlinked(site: SiteProcess, *names: str, host: str = HOST) -> None:
    """A start page without links, and pages that nothing leads to."""
    site.set_page(host, "/", page("start"))
    for name in names:
        site.set_page(host, f"/{name}.html", page(name))


def config(site: SiteProcess, **tables: Any) -> dict[str, Any]:
    """Overrides for a source of both hosts that starts at HOST."""
    return {
        "start": {"urls": [site.url(HOST)]},
        "scope": {"include_hosts": [HOST, OTHER]},
        "fetch": {"retries": 0},
        **tables,
    }


def short(*names: str, host: str = HOST) -> set[str]:
    """The rows of pages, as ``Run`` has them."""
    return {f"{host}/{name}.html" for name in names}


def asked_aside(done: Run) -> list[str]:
    """The requests for robots.txt and sitemaps."""
    return [
        f"{entry['host']}{entry['path']}" for entry in done.log if entry["path"].startswith(("/robots", "/sitemap"))
    ]


def _formats(project: CrawlProject) -> list[Run]:
    site = project.site
    names = ("urlset", "text", "rss", "atom", "packed", "guessed", "nested", "old")
    unlinked(site, *names)
    lines = (f"Sitemap: {site.url(HOST, path)}\n" for path in ("/sitemap-index.xml", "/sitemap-rss"))
    put(site, "/robots.txt", "".join(lines), content_type="text/plain")
    inside = ("/sitemap-a.xml", "/sitemap.txt", "/sitemap-atom", "/sitemap-gz", "/sitemap-index-2.xml", "/sitemap-gone")
    put(site, "/sitemap-index.xml", index_of(site, *inside, "/sitemap-index.xml"))
    put(site, "/sitemap-index-2.xml", index_of(site, "/sitemap-nested.xml", "/sitemap-index.xml"))
    put(site, "/sitemap-nested.xml", urlset(site, {"/nested.html": None}))
    outside = "<url><loc>http://elsewhere.test/x.html</loc></url><url><loc>/relative.html</loc></url>"
    put(
        site,
        "/sitemap-a.xml",
        urlset(site, {"/urlset.html": OLD, "/old.html": OLD}).replace("</urlset>", f"{outside}</urlset>"),
    )
    put(site, "/sitemap.txt", site.url(HOST, "/text.html"), content_type="text/plain")
    put(site, "/sitemap-rss", f"<rss><channel><item><link>{site.url(HOST, '/rss.html')}</link></item></channel></rss>")
    put(site, "/sitemap-atom", f"<feed><entry><link href='{site.url(HOST, '/atom.html')}'/></entry></feed>")
    put(site, "/sitemap-gz", gzip.compress(urlset(site, {"/packed.html": None}).encode()), content_type="text/html")
    put(site, "/sitemap.xml", urlset(site, {"/guessed.html": None}))
    project.edit(**config(site, scope={"include_hosts": [HOST], "depth": 1, "follow_links": False}))
    runs = [run(project)]
    # One page vanishes from the list, one is new; all else is as it was.
    unlinked(site, "new")
    put(site, "/sitemap-a.xml", urlset(site, {"/urlset.html": OLD, "/new.html": None}))
    return [*runs, run(project)]


def _off(project: CrawlProject) -> list[Run]:
    site = project.site
    unlinked(site, "listed")
    put(site, "/sitemap.xml", urlset(site, {"/listed.html": None}))
    project.edit(**config(site, start={"urls": [site.url(HOST)], "sitemaps": "off"}))
    return [run(project)]


def _list(project: CrawlProject) -> list[Run]:
    site = project.site
    unlinked(site, "listed", "guessed")
    put(site, "/sitemap.xml", urlset(site, {"/guessed.html": None}))
    put(site, "/sitemap-mine.xml", urlset(site, {"/listed.html": None}))
    named = [site.url(HOST, "/sitemap-mine.xml"), site.url(HOST, "/sitemap-missing.xml")]
    named.append(site.url("elsewhere.test", "/sitemap.xml"))
    project.edit(**config(site, start={"urls": [site.url(HOST)], "sitemaps": named}))
    return [run(project)]


def _forbidden(project: CrawlProject) -> list[Run]:
    site = project.site
    unlinked(site, "named", "guessed", "child", host=HOST)
    lines = f"User-agent: *\nDisallow: /sitemap\n\nSitemap: {site.url(HOST, '/sitemap-named.xml')}\n"
    put(site, "/robots.txt", lines, content_type="text/plain")
    put(site, "/sitemap-named.xml", urlset(site, {"/named.html": None}))
    put(site, "/sitemap.xml", urlset(site, {"/guessed.html": None}))
    project.edit(**config(site))
    runs = [run(project)]
    project.edit(**config(site, robots={"obey": False}))
    runs.append(run(project))
    site.set_behaviour(HOST, "/robots.txt", status=503)
    return [*runs, run(project)]


def _other_hosts(project: CrawlProject) -> list[Run]:
    site = project.site
    unlinked(site, "trusted")
    site.set_page(HOST, "/", page("start", site.url(OTHER)))
    unlinked(site, "unlinked", host=OTHER)
    lines = (site.url("elsewhere.test", "/sitemap.xml"), site.url(HOST, "/sitemap-away.xml"))
    put(site, "/robots.txt", "".join(f"Sitemap: {line}\n" for line in lines), content_type="text/plain")
    away = {"status": 302, "headers": {"Location": site.url("elsewhere.test", "/sitemap-2.xml")}}
    put(site, "/sitemap-away.xml", "", **away)
    put(site, "/sitemap.xml", "", status=301, headers={"Location": "/sitemap-moved.xml"})
    put(site, "/sitemap-moved.xml", urlset(site, {"/trusted.html": None}))
    put(site, "/sitemap.xml", urlset(site, {"/unlinked.html": None}, host=OTHER), host=OTHER)
    project.edit(**config(site))
    return [run(project)]


def _fails_once(project: CrawlProject) -> list[Run]:
    site = project.site
    unlinked(site, "listed")
    put(site, "/sitemap.xml", urlset(site, {"/listed.html": None}))
    site.set_behaviour(HOST, "/sitemap.xml", status=503, times=1)
    project.edit(**config(site, fetch={"retries": 2}))
    return [run(project)]


def _soft_404(project: CrawlProject) -> list[Run]:
    site = project.site
    unlinked(site)
    put(site, "/sitemap.xml", page("Nothing here", "/only-in-the-soft-404.html"), content_type="text/html")
    project.edit(**config(site))
    return [run(project)]


def _trust(project: CrawlProject) -> list[Run]:
    site, names = project.site, ("same", "changed", "undated", "dropped", "foreign", "failing")
    unlinked(site, *names)
    site.set_page(OTHER, "/far.html", page("far"))
    site.set_behaviour(HOST, "/failing.html", status=503)
    listed: dict[str, str | None] = {f"/{name}.html": OLD for name in names if name != "foreign"}
    put(site, "/sitemap.xml", urlset(site, {**listed, "/undated.html": None}))
    # Another host's word does not keep this one's pages from being visited.
    put(site, "/sitemap.xml", urlset(site, {"/foreign.html": OLD}), host=OTHER)
    start = {"urls": [site.url(HOST), site.url(OTHER, "/far.html")]}
    project.edit(**config(site, start=start, lifecycle={"trust_sitemap": True}))
    runs = [run(project), run(project)]
    kept = {path: date for path, date in listed.items() if path != "/dropped.html"}
    put(site, "/sitemap.xml", urlset(site, {**kept, "/undated.html": None, "/changed.html": NEW}))
    site.set_page(HOST, "/changed.html", page("changed", text="other words"))
    runs.append(run(project))
    site.delete_page(HOST, "/sitemap.xml")
    return [*runs, run(project)]


def _sooner(project: CrawlProject) -> list[Run]:
    site = project.site
    unlinked(site, "same", "changed")
    put(site, "/sitemap.xml", urlset(site, {"/same.html": OLD, "/changed.html": OLD}))
    project.edit(**config(site, lifecycle={"recrawl_every_hours": 1000}))
    runs = [run(project)]
    put(site, "/sitemap.xml", urlset(site, {"/same.html": OLD, "/changed.html": NEW}))
    return [*runs, run(project)]


STORIES: dict[str, Story] = {
    "formats": _formats,
    "off": _off,
    "list": _list,
    "forbidden": _forbidden,
    "other_hosts": _other_hosts,
    "fails_once": _fails_once,
    "soft_404": _soft_404,
    "trust": _trust,
    "sooner": _sooner,
}


def test_sitemaps_when_of_each_kind_then_what_they_list_is_crawled_at_depth_one(tell: Tell) -> None:
    first = tell("formats")[0]

    listed = short("urlset", "text", "rss", "atom", "packed", "guessed", "nested", "old")
    assert first.codes == {f"{HOST}/": 200, **dict.fromkeys(listed, 200)}
    assert first.ended.refused_links == {"elsewhere.test": "scope.include_hosts: no include matches"}
    assert first.in_index == {f"{HOST}/", *listed}
    # They are no pages of the run.
    assert first.ended.exit_code == 0
    assert (first.counts["fetched"], first.counts["fetch_failures"]) == (9, 0)
    assert first.counts["rejected"] == 0
    assert first.ended.status["warnings"] == []


def test_sitemaps_when_they_name_each_other_in_circles_then_each_is_read_once(tell: Tell) -> None:
    first = tell("formats")[0]

    asked = asked_aside(first)
    assert len(asked) == len(set(asked)) == 11


def test_sitemaps_when_not_modified_then_they_are_not_sent_again_and_news_are_found(tell: Tell) -> None:
    second = tell("formats")[1]

    whole = {entry["path"] for entry in second.log if entry["path"].startswith("/sitemap") and entry["status"] == 200}
    assert whole == {"/sitemap-a.xml"}
    assert second.counts["new"] == 1
    # Also what vanished from the list stays.
    assert short("new", "old") <= second.in_index


def test_sitemaps_when_off_then_none_is_asked_for(tell: Tell) -> None:
    (only,) = tell("off")

    assert asked_aside(only) == [f"{HOST}/robots.txt"]
    assert only.codes == {f"{HOST}/": 200}


def test_sitemaps_when_listed_then_these_alone_are_read_and_a_missing_one_is_a_warning(tell: Tell) -> None:
    (only,) = tell("list")

    assert sorted(asked_aside(only)) == [
        f"{HOST}/{name}" for name in ("robots.txt", "sitemap-mine.xml", "sitemap-missing.xml")
    ]
    assert only.codes == {f"{HOST}/": 200, f"{HOST}/listed.html": 200}
    assert only.ended.exit_code == 0
    (warning,) = only.ended.status["warnings"]
    assert warning["code"] == "sitemap"
    assert "/sitemap-missing.xml" in warning["message"]
    assert "404 Not Found" in warning["message"]


def test_sitemaps_when_robots_txt_forbids_them_then_only_those_that_it_names_are_read_if_it_is_obeyed(
    tell: Tell,
) -> None:
    obeying, ignoring, fails = tell("forbidden")

    assert sorted(asked_aside(obeying)) == [f"{HOST}/robots.txt", f"{HOST}/sitemap-named.xml"]
    assert obeying.codes == {f"{HOST}/": 200, f"{HOST}/named.html": 200}
    # Where it is not obeyed, all of them are.
    aside = [f"{HOST}/{name}" for name in ("robots.txt", "sitemap-named.xml", "sitemap.xml")]
    assert sorted(asked_aside(ignoring)) == aside
    assert short("named", "guessed") <= ignoring.in_index
    assert sorted(asked_aside(fails)) == [aside[0], aside[2]]
    assert fails.ended.exit_code == 0


def test_sitemaps_when_on_a_host_outside_or_redirected_there_then_no_request_is_sent_there(tell: Tell) -> None:
    (only,) = tell("other_hosts")

    assert {entry["host"] for entry in only.log} == {HOST, OTHER}
    # That of a host that is met later is read, too.
    assert {f"{HOST}/trusted.html", f"{OTHER}/unlinked.html"} <= only.in_index


def test_sitemap_when_it_fails_for_a_moment_then_it_is_asked_for_again(tell: Tell) -> None:
    (only,) = tell("fails_once")

    assert asked_aside(only).count(f"{HOST}/sitemap.xml") == 2
    assert f"{HOST}/listed.html" in only.in_index
    assert only.counts["fetch_failures"] == 0


def test_sitemap_when_it_is_a_page_of_html_then_nobody_hears_of_it(tell: Tell) -> None:
    (only,) = tell("soft_404")

    assert only.codes == {f"{HOST}/": 200}
    assert only.ended.status["warnings"] == []
    assert "WARNING" not in only.ended.errors


def test_trust_when_lastmod_is_not_after_the_last_visit_then_the_page_is_not_asked_for(tell: Tell) -> None:
    second = tell("trust")[1]

    assert set(second.requested) == {f"{HOST}/", f"{OTHER}/far.html", *short("undated", "foreign", "failing")}
    assert second.counts["fetched"] + second.counts["fetch_failures"] == 5
    assert short("same", "changed", "dropped") <= second.in_index


def test_trust_when_a_date_or_the_sitemap_is_new_or_gone_then_the_pages_are_asked_for(tell: Tell) -> None:
    third, fourth = tell("trust")[2:]

    assert {*short("changed", "dropped", "undated")} <= set(third.requested)
    assert not short("same") & set(third.requested)
    assert third.counts["changed"] == 1
    # Without the sitemap all of them are.
    assert short("same", "changed", "dropped", "undated", "foreign") <= set(fourth.requested)


def test_lastmod_when_after_the_last_visit_then_the_page_is_due_before_its_time(tell: Tell) -> None:
    second = tell("sooner")[1]

    assert second.requested == [f"{HOST}/changed.html"]
