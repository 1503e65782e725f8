"""scope.hash_routes: the routes of an application in the fragment are pages of their own, with a browser of the tests (C10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support_rendering import HOST, SHELL, Rendering, app, plain, rendering
from tests.site.client import SiteProcess

SCOPE: dict[str, Any] = {"include_hosts": [f"={HOST}"], "trap_after": 0}
ON = {**SCOPE, "hash_routes": True}
#: The pages of the application at /app, by their routes.
ROUTES = {
    "app": app("home", "#/lamps", "/app#!chairs", "#top"),
    "app#/lamps": app("lamps", "#/lamps/1", "#details", "#/lamps#top"),
    "app#!chairs": app("chairs", "#/lamps"),
    "app#/lamps/1": app("brass"),
}


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as running:
        running.set_page(HOST, "/app", SHELL)
        yield running


def crawled(tmp_path: Path, site: SiteProcess, **overrides: Any) -> Rendering:
    here = rendering(tmp_path, site, "/app", **{"scope": ON, **overrides})
    here.pages(**ROUTES)
    here.crawl()
    return here


def requested(site: SiteProcess) -> list[str]:
    return [entry["path"] for entry in site.log(host=HOST) if entry["path"] != "/robots.txt"]


def path(url: str) -> str:
    return url.partition(HOST)[2].partition("/")[2]


def test_c10_routes_when_an_application_leads_by_its_fragment_then_each_is_a_page_of_the_index_and_sent_once(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = crawled(tmp_path, site)
    first, asked = sorted(here.asked()), requested(site)
    counts = here.crawl()

    assert first == sorted([*(f"/{name}" for name in ROUTES), "/app#/lamps#top"])
    assert [path(url) for url in here.project.found("brass")] == ["app#/lamps/1"]
    assert {path(url) for url in here.project.indexed()} >= set(ROUTES)
    # The server never sees a route, nor has it to send their frame for each.
    assert asked.count("/app") == 1
    assert not [each for each in asked if "#" in each or "%23" in each]
    # They are rendered again, and nothing of them is new.
    assert sorted(here.asked()) == first
    assert (counts["new"], counts["changed"], counts["indexed"], counts["deleted"]) == (0, 0, 0, 0)


def test_c10_routes_when_the_frame_names_a_canonical_url_then_each_stays_a_page(
    tmp_path: Path, site: SiteProcess
) -> None:
    link = "<link rel=canonical href=/app>"
    here = rendering(tmp_path, site, "/app", scope=ON)
    named = {name: page.replace("<head>", f"<head>{link}") for name, page in ROUTES.items()}
    named["app#!chairs"] = ROUTES["app#!chairs"].replace("<head>", "<head><link rel=canonical href='#/lamps'>")
    here.pages(**named)

    here.crawl()

    indexed = {path(url) for url in here.project.indexed()}
    assert {"app", "app#/lamps", "app#/lamps/1"} <= indexed
    assert "app#!chairs" not in indexed


def test_c10_routes_when_their_path_moved_their_script_leads_elsewhere_or_a_file_answers_then_each_is_there_once(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/old", status=301, headers={"Location": "/app"})
    site.set_page(HOST, "/plain", plain("plain"))
    site.set_page(HOST, "/notes.txt", body="quartz and amber", content_type="text/plain")
    here = rendering(tmp_path, site, "/old#/lamps", "/app#/leave", "/notes.txt#/a", "/notes.txt#/b", scope=ON)
    leave = {"redirects": [["/app", 302]], "url": "/plain"}
    here.pages(**{"app#/lamps": app("lamps"), "app#/leave": leave, "plain": plain("plain")})

    here.crawl()

    # The route goes with the path that moved, and stays behind where its script leads elsewhere.
    assert {path(url) for url in here.project.indexed()} == {"app#/lamps", "app#/leave", "notes.txt"}
    assert [path(url) for url in here.project.found("plain")] == ["app#/leave"]


def test_c10_rules_when_urls_have_routes_then_url_rules_see_them_and_robots_does_not(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/robots.txt", body="User-agent: *\nDisallow: /*1$\n", content_type="text/plain")
    here = crawled(tmp_path, site, scope={**ON, "exclude_urls": ["*/app#!*"]})

    indexed = {path(url) for url in here.project.indexed()}
    assert "app#/lamps/1" in indexed
    assert "app#!chairs" not in indexed


def test_c10_routes_when_the_key_is_turned_off_then_their_pages_leave(tmp_path: Path, site: SiteProcess) -> None:
    here = crawled(tmp_path, site)
    here.project.edit(
        start={"urls": [site.url(HOST, "/app")], "sitemaps": "off"}, render={"mode": "auto"}, scope=SCOPE,
        lifecycle={"max_delete_percent": 100, "max_delete_documents": 100},
    )  # fmt: skip

    here.crawl()

    assert [path(url) for url in here.project.indexed()] == ["app"]


def test_c10_route_when_commands_are_asked_about_it_then_they_know_it(tmp_path: Path, site: SiteProcess) -> None:
    here = crawled(tmp_path, site)
    url = site.url(HOST, "/app#/lamps/1")

    explained, tried = here.ask("explain", url), here.ask("test", url, "--source", "demo")
    found = here.ask("search", "brass")
    verified = here.run("verify", "demo", "--json")

    assert (explained["url"], explained["verdict"]) == (url, "in the index"), explained
    assert (tried["url"], tried["rendered"]) == (url, "a route of its own: scope.hash_routes")
    assert url in {row["url"] for row in here.project.lines("urls", "demo")}
    assert [hit["url"] for hit in found["hits"]] == [url]
    assert verified.returncode == 0, verified.stdout


def test_c10_route_when_it_is_submitted_or_asked_for_anew_then_it_alone_is_meant(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = crawled(tmp_path, site)
    known, fresh = site.url(HOST, "/app#/lamps/1"), site.url(HOST, "/app#/fresh")
    here.pages(**ROUTES, **{"app#/fresh": app("fresh")})

    anew = here.ask("recrawl", "demo", "--url", known)
    results = [here.ask("submit", url, "--source", "demo")["result"] for url in (known, fresh)]
    here.crawl()

    assert anew["to_fetch"] == 1
    assert results == ["duplicate", "ok"]
    assert [path(url) for url in here.project.found("fresh")] == ["app#/fresh"]


def test_c10_routes_when_a_rule_of_texts_is_edited_then_plan_and_apply_know_them(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = crawled(tmp_path, site)
    here.project.edit(
        start={"urls": [site.url(HOST, "/app")], "sitemaps": "off"}, render={"mode": "auto"}, scope=ON,
        keep={"exclude_urls": ["*#/lamps/1"]}, lifecycle={"max_delete_percent": 100},
    )  # fmt: skip

    here.ask("apply", here.ask("plan", "demo")["plan"])

    indexed = {path(url) for url in here.project.indexed()}
    assert "app#/lamps/1" not in indexed
    assert {"app", "app#/lamps", "app#!chairs"} <= indexed


def test_c10_routes_when_a_sitemap_and_start_urls_name_them_then_they_are_pages(
    tmp_path: Path, site: SiteProcess
) -> None:
    listing = f"<urlset><url><loc>{site.url(HOST, '/app#/lamps')}</loc></url></urlset>"
    site.set_page(HOST, "/map.xml", body=listing, content_type="application/xml")
    start = {"urls": [site.url(HOST, "/app#!chairs")], "sitemaps": [site.url(HOST, "/map.xml")]}
    here = rendering(tmp_path, site, scope=ON, start=start)
    here.pages(**{"app#/lamps": app("lamps"), "app#!chairs": app("chairs")})

    here.crawl()

    assert {path(url) for url in here.project.indexed()} == {"app#/lamps", "app#!chairs"}


def test_c10_routes_when_no_page_is_rendered_then_the_check_names_file_key_and_value(
    tmp_path: Path, site: SiteProcess
) -> None:
    here = rendering(tmp_path, site, "/app", scope=ON, render={})

    ended = here.run("sources", "check")

    assert ended.returncode == 4
    assert 'sources/demo.toml: scope.hash_routes: needs render.mode = "auto" or "always"' in ended.stderr + ended.stdout
    assert "(got true)" in ended.stderr + ended.stdout
