"""K1: rewriters see every link and start URL before the boundary; a failing one costs that link only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.acceptance.support_stories import page
from tests.site.client import SiteProcess

PUBLIC, INNER, OUTSIDE = "public.acme.test", "inner.acme.test", "elsewhere.test"
SHOWN: Final = "https://www.example.com"
PLUGIN: Final = '''
from searchcrawl.plugins import Rewritten


class Shows:
    """Shows pages of the inner host as those of the public one; writes down what it hears."""

    def open(self, source):
        self.heard = open("heard.txt", "a", encoding="utf-8")
        self.say("open", source)

    def say(self, *words):
        print(*words, file=self.heard, flush=True)

    def rewrite(self, url, *, referrer):
        self.say("rewrite", url, referrer)
        scheme, _, rest = url.partition("://")
        host, _, path = rest.partition("/")
        if path.startswith("secret/"):
            return None
        if path == "explode.html":
            raise LookupError("no such page")
        if path == "leave.html":
            return Rewritten(url.replace("inner.acme", "elsewhere"), url)
        if path == "odd.html":
            return Rewritten(url, "no URL")
        if path.startswith("plain"):
            return Rewritten(url)
        return Rewritten(url, f"SHOWN/{'same' if path.startswith('same') else path}")

    def close(self):
        self.say("close")
        self.heard.close()


class Elsewhere(Shows):
    """Shows all as pages of another host, though nothing is edited between two runs."""

    def rewrite(self, url, *, referrer):
        with open("shown.txt", encoding="utf-8") as file:
            return Rewritten(url, file.read() + url.partition("://")[2].partition("/")[2])


class Unopened(Shows):
    def open(self, source):
        raise OSError("no licence")
'''.replace("SHOWN", SHOWN)


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    paths = ("/b.html", "/secret/x.html", "/explode.html", "/leave.html", "/odd.html", "/plain.html", "/moved.html")
    links = (site.url(PUBLIC, "/a.html"), *paths, "/same-1.html", "/same/2.html", "/refresh.html", "/named.html")
    site.set_page(INNER, "/", page("start", *links, "/s.html;jsessionid=1?x=2", "/s.html;JSESSIONID=2?x=2"))
    for name in ("a", "b", "odd", "plain", "new", "refreshed", "same-1", "best", "listed", "explode"):
        site.set_page(INNER, f"/{name}.html", page(name))
    site.set_page(INNER, "/same/2.html", page("the same URL is shown"))
    site.set_page(INNER, "/secret/x.html", page("secret"))
    site.set_page(INNER, "/s.html", page("session"))
    site.set_page(INNER, "/moved.html", "", status=301, headers={"Location": site.url(PUBLIC, "/new.html")})
    refresh = f'<meta http-equiv="refresh" content="0; url={site.url(PUBLIC, "/refreshed.html")}">'
    site.set_page(INNER, "/refresh.html", page("refresh", head=refresh))
    canonical = f'<link rel="canonical" href="{site.url(PUBLIC, "/best.html")}">'
    site.set_page(INNER, "/named.html", page("named", head=canonical))
    listed = f"<urlset><url><loc>{site.url(PUBLIC, '/listed.html?utm_source=x')}</loc></url></urlset>"
    site.set_page(INNER, "/sitemap.xml", listed, content_type="application/xml")
    for host in (PUBLIC, OUTSIDE):
        site.set_page(host, "/", page("never asked for"))
    return site


def rewrites(site: SiteProcess) -> list[dict[str, str]]:
    port = rf":{site.port}"
    pattern = rf"^http://public\.acme\.test{port}/(.*)$"
    return [{"match": pattern, "replace": rf"http://{INNER}{port}/\1"}, {"plugin": "rewriters:Shows"}]


def project_of(folder: Path, site: SiteProcess, **overrides: Any) -> CrawlProject:
    (folder / "rewriters.py").write_text(PLUGIN, "utf-8")
    given = {
        "start": {"urls": [site.url(PUBLIC), site.url(INNER, "/secret/start.html")]},
        "scope": {"include_hosts": [INNER]},
        "fetch": {"retries": 0},
        "rewrite": rewrites(site),
    }
    return new_project(folder, site, **{**given, **overrides})


@pytest.fixture(scope="module")
def crawled(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> tuple[CrawlProject, Ended, list[str]]:
    project = project_of(tmp_path_factory.mktemp("rewritten"), site)
    site.clear_log()
    ended = project.crawl()
    return project, ended, site.requested()


Crawled = tuple[CrawlProject, Ended, list[str]]


def listed(project: CrawlProject) -> dict[str, dict[str, Any]]:
    """The rows as ``urls`` shows them, by path and host of the access URL."""
    rows = project.lines("urls", "demo")
    return {row["access_url"].split("/", 2)[2].replace(f":{project.site.port}", ""): row for row in rows}


def test_rewriters_when_crawled_then_only_what_they_made_is_asked_for_and_shown_as_they_say(crawled: Crawled) -> None:
    project, ended, requested = crawled

    shown = {
        hit.fields["access_url"].partition(str(project.site.port))[2]: hit.fields["url"] for hit in project.hits("*")
    }
    assert ended.exit_code == 0
    assert {url.partition("/")[0] for url in requested} == {INNER}
    assert len(requested) == len(set(requested))
    plain = project.site.url(INNER, "/plain.html")
    assert shown == {
        "/": f"{SHOWN}/",
        "/a.html": f"{SHOWN}/a.html",
        "/b.html": f"{SHOWN}/b.html",
        "/plain.html": plain,
        "/new.html": f"{SHOWN}/new.html",
        "/refreshed.html": f"{SHOWN}/refreshed.html",
        "/best.html": f"{SHOWN}/best.html",
        "/listed.html": f"{SHOWN}/listed.html?utm_source=x",
        # The session is no part of what is fetched; what is shown, the plugin alone decides.
        "/s.html?x=2": f"{SHOWN}/s.html;jsessionid=1?x=2",
        "/same-1.html": f"{SHOWN}/same",
    }


def test_rewriters_when_a_link_is_discarded_or_led_outside_then_its_row_or_its_count_says_by_what(
    crawled: Crawled,
) -> None:
    rows = listed(crawled[0])

    said = {path: (row["code"], row["state"], row["rule"]) for path, row in rows.items() if not row["in_index"]}
    plugin = "plugin rewriters:Shows"
    assert said.pop(f"{INNER}/secret/x.html") == (955, "rejected", f"rewrite[1].plugin: discarded by {plugin}")
    assert said.pop(f"{INNER}/secret/start.html") == (955, "rejected", f"rewrite[1].plugin: discarded by {plugin}")
    assert said.pop(f"{INNER}/explode.html") == (955, "rejected", f"rewrite[1].plugin: error in {plugin}")
    assert "LookupError('no such page')" in rows[f"{INNER}/explode.html"]["error"]
    assert f"{OUTSIDE}/leave.html" not in rows
    assert crawled[1].refused_links[OUTSIDE] == "scope.include_hosts: no include matches"
    assert {path: (code, state) for path, (code, state, _) in said.items()} == {
        f"{INNER}/odd.html": (1010, "excluded"),
        f"{INNER}/same/2.html": (956, "excluded"),
        f"{INNER}/moved.html": (954, "excluded"),
        f"{INNER}/refresh.html": (953, "excluded"),
        f"{INNER}/named.html": (964, "duplicate"),
    }


def test_rewriters_when_a_run_is_over_then_the_plugin_heard_of_it_its_links_and_their_pages(crawled: Crawled) -> None:
    project, _, _ = crawled
    start = project.site.url(INNER)

    heard = (project.folder / "heard.txt").read_text("utf-8").splitlines()

    assert (heard[0], heard[-1]) == ("open demo", "close")
    assert f"rewrite {project.site.url(INNER)} None" in heard
    assert f"rewrite {project.site.url(INNER, '/a.html')} {start}" in heard
    assert f"rewrite {project.site.url(INNER, '/b.html')} {start}" in heard
    assert f"rewrite {project.site.url(INNER, '/new.html')} {project.site.url(INNER, '/moved.html')}" in heard
    assert f"rewrite {project.site.url(INNER, '/listed.html?utm_source=x')} None" in heard
    failures = [line for line in project.log().splitlines() if "plugin rewriters:Shows failed, " in line]
    assert len(failures) == 1
    assert "start URL discarded by a rewriter" in project.log()


def test_rewriters_when_nothing_changed_then_the_next_run_sends_nothing(crawled: Crawled) -> None:
    project, _, _ = crawled
    before = project.versions()

    again = project.crawl()

    assert (again.exit_code, again.counts["indexed"], again.counts["deleted"]) == (0, 0, 0)
    assert project.versions() == before


def test_rewriters_when_they_show_pages_otherwise_then_documents_are_sent_again_under_the_same_ids(
    site: SiteProcess, tmp_path: Path
) -> None:
    host = "shown.acme.test"
    site.set_page(host, "/", page("start", "/a.html"))
    site.set_page(host, "/a.html", page("a", "/"))
    plugin = [{"plugin": "rewriters:Elsewhere"}]
    project = project_of(
        tmp_path, site, rewrite=plugin, start={"urls": [site.url(host)]}, scope={"include_hosts": [host]}
    )
    shown, versions = [], []
    # The second time pages are as they were; the third time links are read again.
    for prefix, text in (("https://one.test/", "a"), ("https://two.test/", "a"), ("https://three.test/", "changed")):
        (tmp_path / "shown.txt").write_text(prefix, "utf-8")
        site.set_page(host, "/", page(text, "/a.html"))
        project.crawl()
        shown.append({hit.fields["url"] for hit in project.hits("*")})
        versions.append(len(project.versions()))

    assert shown == [
        {"https://one.test/", "https://one.test/a.html"},
        {"https://two.test/", "https://one.test/a.html"},
        {"https://three.test/", "https://three.test/a.html"},
    ]
    assert versions == [2, 2, 2]
    assert project.crawl().counts["indexed"] == 0


def test_rewriters_when_a_plugin_cannot_begin_then_file_and_key_are_named_and_nothing_requested(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = project_of(tmp_path, site, rewrite=[{"plugin": "rewriters:Unopened"}])
    site.clear_log()

    ended = project.crawl()

    line = "rewrite[0].plugin: rewriters:Unopened cannot begin: OSError('no licence')"
    assert ended.exit_code == 4
    assert ended.errors.startswith(f"sources/demo.toml: {line}")
    assert len(ended.errors.splitlines()) == 1
    assert site.log() == []
