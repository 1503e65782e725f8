"""Sites that need JavaScript, crawled with a real browser: every page is found, none rendered without need (C10, C11)."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.crawl_forks import Forks, started
from tests.live_browsers import list_browsers
from tests.page_wall import need_browser
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST = "www.acme.test"
TEXTS = {
    "": "begin of the shop",
    "lamps": "a lamp of brass and green glass",
    "chairs": "chairs of beech without arms",
    "chairs/9": "the ninth chair has a broken leg",
}
#: A router of its own, a shell without text, data by fetch: what frameworks make, without one.
_ROUTER = """
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
SHELL = "<!DOCTYPE html><html><head><title>Shop</title></head><body><div id=root></div><script src=/app.js></script></body></html>"


def set_shop(site: SiteProcess) -> None:
    site.set_pages(HOST, {f"/shop/{name}": SHELL for name in TEXTS})
    script = _ROUTER % json.dumps(dict.fromkeys(TEXTS, 1))
    site.set_page(HOST, "/app.js", body=script, content_type="text/javascript")
    for name, text in TEXTS.items():
        set_data(site, name, text)


def set_data(site: SiteProcess, name: str, text: str) -> None:
    data = json.dumps({"title": f"Shop {name}", "text": text})
    path = f"/data/{(name or 'begin').replace('/', '-')}"
    site.set_page(HOST, path, body=data, content_type="application/json")


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    need_browser()
    with SiteProcess() as running:
        yield running


def shop(folder: Path, site: SiteProcess, *starts: str, **overrides: Any) -> CrawlProject:
    values = {
        "start": {"urls": [site.url(HOST, path) for path in starts or ("/shop/",)], "sitemaps": "off"},
        "scope": {"include_hosts": [f"={HOST}"], "include_urls": ["*"]},
        "render": {"mode": "auto", "quiet_ms": 150},
        "fetch": {"delay_seconds": 0},
        **overrides,
    }
    return new_project(folder, site, **values)


def counts(project: CrawlProject) -> dict[str, int]:
    ended = project.command("crawl", "demo", "--json")
    assert ended.returncode == 0, ended.stderr
    found: dict[str, int] = json.loads(ended.stdout)["counts"]
    return found


def test_c10_application_when_it_is_crawled_again_then_unchanged_pages_send_nothing_and_a_changed_one_is_sent(
    tmp_path: Path, site: SiteProcess
) -> None:
    set_shop(site)
    project = shop(tmp_path, site)

    first = counts(project)
    second = counts(project)
    set_data(site, "lamps", "a lamp of steel and blue glass")
    third = counts(project)

    assert (first["new"], first["rendered"]) == (len(TEXTS), len(TEXTS))
    assert (second["new"], second["changed"], second["indexed"]) == (0, 0, 0)
    assert (third["changed"], third["indexed"]) == (1, 1)
    assert [hit["url"] for hit in json.loads(project.command("search", "broken leg", "--json").stdout)["hits"]] == [
        site.url(HOST, "/shop/chairs/9")
    ]
    assert "blue" in project.command("search", "steel").stdout
    explained = project.command("explain", site.url(HOST, "/shop/lamps")).stdout
    assert "rendered" in explained


@pytest.mark.parametrize("part", ["/app.js", "/data/"])
def test_c10_application_when_its_script_or_its_data_fail_for_a_while_then_its_pages_stay_and_come_back(
    tmp_path: Path, site: SiteProcess, part: str
) -> None:
    set_shop(site)
    project = shop(tmp_path, site, fetch={"delay_seconds": 0, "retries": 0})
    counts(project)
    before = project.found("*")

    site.set_behaviour(HOST, prefix=part, status=503)
    project.command("crawl", "demo")
    during, kept = project.codes(), project.found("*")
    site.clear_behaviours()
    after = counts(project)

    assert (set(during.values()), sorted(kept)) == ({958}, sorted(before))
    assert (after["changed"], after["deleted"]) == (0, 0)
    assert set(project.codes().values()) == {200}
    assert sorted(project.found("*")) == sorted(before)


def test_c10_plain_site_when_it_may_be_rendered_then_no_page_is(tmp_path: Path, site: SiteProcess) -> None:
    words = "much text that is there without any script " * 20
    pages = {f"/p{n}": f"<title>{n}</title><p>{n} {words}</p><script src=/x.js></script>" for n in range(10)}
    links = "".join(f"<a href={path}>{path}</a>" for path in pages)
    site.set_pages(HOST, pages | {"/begin": f"<title>b</title><p>{words}</p>{links}<script src=/x.js></script>"})

    found = counts(shop(tmp_path, site, "/begin"))

    assert found["new"] == 11
    assert found["rendered"] <= 4
    assert not [entry for entry in site.log() if entry["path"] == "/x.js" and found["rendered"] == 0]


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


def test_c10_crawl_when_it_is_killed_then_no_browser_is_left_and_the_next_one_ends_as_if_nothing_was(
    tmp_path: Path, site: SiteProcess
) -> None:
    set_shop(site)
    project = shop(tmp_path, site)
    with Forks(1) as forks, started(forks.start(tmp_path, "crawl", "demo")) as running:
        running.until(lambda: bool(list_browsers(running.pid)))
        mine = list_browsers(running.pid)
        running.signal(signal.SIGKILL)
        running.wait()
    deadline = time.monotonic() + 20
    while mine & list_browsers() and time.monotonic() < deadline:
        time.sleep(0.1)
    left = mine & list_browsers()

    found = counts(project)

    assert not left
    assert found["discovered"] == len(TEXTS)
    assert project.indexed() == sorted(f"{HOST}/shop/{name}" for name in TEXTS)
