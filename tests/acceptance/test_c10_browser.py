"""C10: a shop that needs JavaScript, with a real browser: parts that fail, a trace, routes in the fragment, and the how-to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.page_wall import need_browser
from tests.site.client import SiteProcess
from tests.test_docs_commands import EXCUSES, work_through

pytestmark = pytest.mark.extended

HOST: Final = "www.acme.test"
TEXTS: Final = {
    "": "begin of the shop",
    "lamps": "a lamp of brass and green glass",
    "chairs": "chairs of beech without arms",
    "chairs/9": "the ninth chair has a broken leg",
}
#: A router of its own, a shell without text, data by fetch: what frameworks make, without one.
_ROUTER: Final = """
const routes = %s;
const show = async () => {
  const name = location.pathname.replace('/shop/', '');
  const data = await (await fetch('/data/' + (name || 'begin').replace('/', '-'))).json();
  document.title = data.title;
  const links = Object.keys(routes).map(path => `<a href="/shop/${path}">${path || 'begin'}</a>`).join(' ');
  document.getElementById('root').innerHTML = `<nav>${links}</nav><main><p>${data.text}</p></main>`;
};
addEventListener('popstate', show); show();
"""
#: What an application shows by its fragment, and one that changes it itself.
ROUTES: Final = {
    "/": "begin of the shop",
    "/lamps": "a lamp of brass",
    "/lamps/7": "glass and copper",
    "!chairs": "chairs of beech",
}
_BY_FRAGMENT: Final = """
const texts = %s; let been = 0;
const show = () => {
  const name = location.hash.slice(1) || '/';
  const links = ['/', '/lamps', '!chairs'].map(each => `<a href="#${each}">${each}</a>`).join(' ');
  document.title = name;
  document.getElementById('root').innerHTML = `<nav>${links} <a href="#top">top</a></nav><main><p>${texts[name]}</p></main>`;
  // No link leads there.
  if (name === '/lamps' && !been++) setTimeout(() => { location.hash = '#/lamps/7'; setTimeout(() => { location.hash = name; }, 50); }, 50);
};
addEventListener('hashchange', show);
if (!location.hash) location.hash = '#/';
show();
"""
_ARTICLE: Final = "document.getElementById('root').innerHTML = `<main><article><p>${'a lamp of brass '.repeat(30)}</p></article></main>`"


def shell(head: str = "") -> str:
    return (
        f"<!DOCTYPE html><html><head><title>Shop</title>{head}</head><body><div id=root></div>"
        "<script src=/app.js></script></body></html>"
    )


def set_shop(site: SiteProcess) -> None:
    site.set_pages(HOST, {f"/shop/{name}": shell() for name in TEXTS})
    script = _ROUTER % json.dumps(dict.fromkeys(TEXTS, 1))
    site.set_page(HOST, "/app.js", body=script, content_type="text/javascript")
    for name, text in TEXTS.items():
        data = json.dumps({"title": f"Shop {name}", "text": text})
        site.set_page(HOST, f"/data/{(name or 'begin').replace('/', '-')}", body=data, content_type="application/json")


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    need_browser()
    with SiteProcess() as running:
        yield running


def shop(folder: Path, site: SiteProcess, **overrides: Any) -> CrawlProject:
    values = {
        "start": {"urls": [site.url(HOST, "/shop/")], "sitemaps": "off"},
        "scope": {"include_hosts": [f"={HOST}"], "include_urls": ["*"]},
        "render": {"mode": "auto", "quiet_ms": 150},
        "fetch": {"delay_seconds": 0, "retries": 0},
        **overrides,
    }
    return new_project(folder, site, **values)


@pytest.mark.parametrize("part", ["/app.js", "/data/"])
def test_c10_application_when_its_script_or_its_data_fail_for_a_while_then_its_pages_stay_and_come_back(
    tmp_path: Path, site: SiteProcess, part: str
) -> None:
    set_shop(site)
    project = shop(tmp_path, site)
    first = project.crawl()
    before = project.found("*")

    site.set_behaviour(HOST, prefix=part, status=503)
    project.crawl()
    during, kept = project.codes(), project.found("*")
    site.clear_behaviours()
    after = project.crawl()

    assert (first.counts["new"], first.counts["rendered"]) == (len(TEXTS), len(TEXTS))
    assert (set(during.values()), sorted(kept)) == ({958}, sorted(before))
    assert (after.exit_code, after.counts["changed"], after.counts["deleted"]) == (0, 0, 0)
    assert set(project.codes().values()) == {200}
    assert sorted(project.found("*")) == sorted(before)


def test_c10_test_when_a_page_is_rendered_then_the_text_before_and_after_is_shown_and_a_trace_written(
    tmp_path: Path, site: SiteProcess
) -> None:
    set_shop(site)
    project = shop(tmp_path, site, render={"mode": "never"})
    trace = tmp_path / "trace.zip"

    shown = project.command(
        "test", site.url(HOST, "/shop/lamps"), "--source", "demo", "--render", "--trace", str(trace)
    )

    assert shown.returncode == 0, shown.stderr
    assert "brass and green glass" in shown.stdout
    assert trace.stat().st_size > 1000


def test_c10_routes_when_a_real_browser_shows_them_then_each_is_found_by_its_text(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/shop/", shell("<link rel=canonical href=/shop/>"))
    site.set_page(HOST, "/app.js", body=_BY_FRAGMENT % json.dumps(ROUTES), content_type="text/javascript")
    project = shop(tmp_path, site, scope={"include_hosts": [f"={HOST}"], "hash_routes": True}, render={"mode": "auto"})

    first, again = project.crawl(), project.crawl()

    assert (first.exit_code, again.exit_code) == (0, 0), first.errors + again.errors
    for route, text in ROUTES.items():
        found = project.found(f'"{text}"')
        assert f"{HOST}/shop/#{route}" in found or (route == "/" and found == [f"{HOST}/shop/"]), (route, found)
    assert (again.counts["new"], again.counts["changed"], again.counts["indexed"]) == (0, 0, 0)
    asked = [entry["path"] for entry in site.log(host=HOST)]
    assert not [path for path in asked if "lamps" in path or "%23" in path]


def test_c10_how_to_when_worked_through_then_the_pages_of_an_application_are_rendered(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/", shell())
    site.set_page(HOST, "/app.js", body=_ARTICLE, content_type="text/javascript")
    # That of the tutorial, as far as this page needs it.
    tutorial = new_project(
        tmp_path / "my-search",
        site,
        name="acme",
        start={"urls": [site.url(HOST, "/")], "sitemaps": "off"},
        scope={"include_hosts": [f"={HOST}"]},
    )

    folder = work_through("how-to/javascript.md", tutorial.folder, site, excuses=EXCUSES - {"a browser"})

    project = CrawlProject(folder=folder, site=site, name="acme")
    tried = project.ask("test", site.url(HOST, "/"), "--source", "acme", "--render")
    assert (tried["text_before"].strip(), "lamp of brass" in tried["text"]) == ("", True)
    assert project.crawl().counts["rendered"] >= 1
    assert project.ask("search", '"lamp of brass"')["total"] == 1
