"""scope.hash_routes with a real browser: an application that leads by its fragment, and one that changes it itself (C10)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.support_project import new_project
from tests.page_wall import need_browser
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST = "www.acme.test"
TEXTS = {
    "/": "begin of the shop",
    "/lamps": "a lamp of brass",
    "/lamps/7": "glass and copper",
    "!chairs": "chairs of beech",
}
_APP = """
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
SHELL = (
    "<!DOCTYPE html><html><head><title>Shop</title><link rel=canonical href=/shop/></head><body><div id=root></div>"
    "<script src=/app.js></script></body></html>"
)


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    need_browser()
    with SiteProcess() as running:
        running.set_page(HOST, "/shop/", SHELL)
        running.set_page(HOST, "/app.js", body=_APP % json.dumps(TEXTS), content_type="text/javascript")
        yield running


def test_c10_routes_when_a_real_browser_shows_them_then_each_is_found_by_its_text(
    tmp_path: Path, site: SiteProcess
) -> None:
    project = new_project(
        tmp_path,
        site,
        start={"urls": [site.url(HOST, "/shop/")], "sitemaps": "off"},
        scope={"include_hosts": [f"={HOST}"], "hash_routes": True},
        render={"mode": "auto"},
    )

    first, again = project.crawl(), project.crawl()

    assert (first.exit_code, again.exit_code) == (0, 0), first.errors + again.errors
    for route, text in TEXTS.items():
        found = project.found(f'"{text}"')
        assert f"{HOST}/shop/#{route}" in found or (route == "/" and found == [f"{HOST}/shop/"]), (route, found)
    assert (again.counts["new"], again.counts["changed"], again.counts["indexed"]) == (0, 0, 0)
    asked = [entry["path"] for entry in site.log(host=HOST)]
    assert not [path for path in asked if "lamps" in path or "%23" in path]
