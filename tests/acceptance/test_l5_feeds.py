"""L5: feeds that pages name (rel=alternate) are read for links, and are no hits unless pages link to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import Run, page, run, source
from tests.site.client import SiteProcess

pytestmark = pytest.mark.usefixtures("clean_site")

HOST: Final = "feeds.acme.test"
RSS: Final = "application/rss+xml"


def rss(site: SiteProcess, *names: str) -> str:
    items = "".join(
        f"<item><title>{name}</title><link>{site.url(HOST, f'/{name}.html')}</link></item>" for name in names
    )
    return f"<rss><channel><title>All news</title>{items}</channel></rss>"


def put_feed(site: SiteProcess, path: str, *names: str) -> None:
    site.set_page(HOST, path, rss(site, *names), content_type=RSS)
    for name in names:
        site.set_page(HOST, f"/{name}.html", page(name))


def name_feed(path: str, *, rel: str = "alternate", kind: str = RSS) -> str:
    return f'<link rel="{rel}" type="{kind}" title="Feed" href="{path}">'


def names(each: Run) -> set[str]:
    return {url.partition("/")[2] for url in each.codes}


def asked(each: Run) -> set[str]:
    return {entry["path"][1:] for entry in each.log}


def build(site: SiteProcess) -> None:
    """A feed of the start page, one that two pages name, and those of a single one."""
    site.set_page(HOST, "/", page("start", "/a.html", "/b.html", head=name_feed("/news.rss")))
    for one in "ab":
        head = name_feed("/both.atom", kind="application/atom+xml; charset=utf-8") + name_feed(f"/comments-{one}.rss")
        site.set_page(HOST, f"/{one}.html", page(one, head=head))
        put_feed(site, f"/comments-{one}.rss", f"comment-{one}")
    put_feed(site, "/news.rss", "news1")
    link = site.url(HOST, "/atom1.html")
    site.set_page(
        HOST, "/both.atom", f'<feed><entry><link href="{link}"/></entry></feed>', content_type="application/atom+xml"
    )
    site.set_page(HOST, "/atom1.html", page("atom1"))


def test_feeds_when_pages_name_them_then_their_links_are_followed_and_they_are_no_hits(
    site: SiteProcess, tmp_path: Path
) -> None:
    build(site)
    rules = source(site, HOST)
    project = new_project(tmp_path, site, **{**rules, "scope": {**rules["scope"], "exclude_urls": ["*secret*"]}})
    first = run(project)
    put_feed(site, "/news.rss", "news2", "news1", "secret")
    second, third = run(project), run(project)
    linking = page("start", "/a.html", "/b.html", "/news.rss", head=name_feed("/news.rss"))
    site.set_page(HOST, "/", linking)
    linked = run(project)

    pages = {"", "a.html", "b.html", "news1.html", "atom1.html"}
    assert names(first) == pages
    assert {"news.rss", "both.atom"} <= asked(first)
    # A feed of a single page tells what the page does.
    assert not {"comments-a.rss", "comments-b.rss"} & asked(first)
    assert first.in_index == {f"{HOST}/{each}" for each in pages}
    # No page changed: the feed alone tells of the new one.
    assert names(second) == pages | {"news2.html", "secret.html"}
    # Its links are judged as any.
    assert (second.codes[f"{HOST}/secret.html"], f"{HOST}/secret.html" in second.in_index) == (955, False)
    assert [entry["status"] for entry in third.log if entry["path"] == "/news.rss"] == [304]
    assert {f"{HOST}/news.rss", f"{HOST}/news2.html"} <= linked.in_index


def test_feeds_when_rules_are_against_them_then_are_not_requested(site: SiteProcess, tmp_path: Path) -> None:
    rules: dict[str, dict[str, Any]] = {
        "excluded": {"scope": {"exclude_urls": ["*.rss"]}},
        "no links": {"scope": {"follow_links": False}},
        "no sitemaps": {"start": {"sitemaps": "off"}},
    }
    site.set_page(
        HOST, "/", page("start", head=name_feed("/news.rss") + name_feed("/not.rss", rel="alternate nofollow"))
    )
    put_feed(site, "/news.rss", "news1")
    put_feed(site, "/not.rss", "not1")
    told: dict[str, Run] = {}
    for number, (name, tables) in enumerate(rules.items()):
        overrides = source(site, HOST)
        merged = {**overrides, **{table: {**overrides.get(table, {}), **keys} for table, keys in tables.items()}}
        told[name] = run(new_project(tmp_path / str(number), site, **merged))
    site.set_page(HOST, "/robots.txt", "User-agent: *\nDisallow: /news", content_type="text/plain")
    told["robots.txt"] = run(new_project(tmp_path / "robots", site, **source(site, HOST)))
    site.delete_page(HOST, "/robots.txt")
    told["nothing"] = run(new_project(tmp_path / "nothing", site, **source(site, HOST)))
    nofollow = '<meta name="robots" content="nofollow">' + name_feed("/news.rss")
    site.set_page(HOST, "/", page("start", head=nofollow))
    told["nofollow"] = run(new_project(tmp_path / "nofollow", site, **source(site, HOST)))

    assert {name for name, each in told.items() if "news.rss" in asked(each)} == {"nothing"}
    assert names(told["nothing"]) == {"", "news1.html"}
    assert not any("not.rss" in asked(each) for each in told.values())
