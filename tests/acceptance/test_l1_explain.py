"""L1: ``explain`` names the rule that decided about a URL; without it, and those it names beside it, the verdict flips."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final

import pytest

from tests.acceptance.support_explain import (
    FILE,
    HOST,
    Asking,
    ask,
    is_outside,
    is_refused,
    of_file,
    said,
    with_advice,
    without,
)
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page
from tests.crawl_forks import Forks
from tests.site.client import SiteProcess
from tests.site.toml_text import to_toml

SHOP: Final = "shop.acme.test"
WORDS: Final = "barometer " * 30
OLD: Final = format_datetime(datetime.now(UTC) - timedelta(days=40), usegmt=True)
NEW: Final = format_datetime(datetime.now(UTC) - timedelta(days=2), usegmt=True)
ROBOTS: Final = ("User-agent: *", "Disallow: /secret/", "Disallow: /*plan", "Disallow: /nothing/")
#: Pages that are there, and good.
GOOD: Final = ("/", *(f"/good/{n}.html" for n in range(70)), "/deep/1.html", "/deep/2.html", "/shop/ok.html")
#: Refused by what came back: path to the rule.
REFUSED_LATER: Final[Mapping[str, str]] = {
    "/keep/old.html": "keep.max_age_days: max_age_days = 30",
    "/keep/short.html": "keep.min_bytes: min_bytes = 200",
    "/keep/long.html": "keep.max_bytes: max_bytes = 3000",
    "/keep/notes.txt": "keep.exclude_mime_types: text/plain",
    "/keep/draft-1.html": "keep.exclude_names: draft*",
    "/keep/internal/x.html": "keep.exclude_urls: */internal/*",
    "/keep/internal/draft-2.html": "keep.exclude_urls: */internal/*",
    "/keep/noindex.html": "keep.meta_robots: meta robots noindex",
    "/keep/page.htm": "keep.include_urls: no include matches",
    "/hop-1.html": "fetch.max_redirects: max_redirects = 2",
    "/moved-away": "scope.include_hosts: no include matches",
    "/huge.html": "fetch.max_bytes: max_bytes = 100000",
    "/secret/plan.html": "Disallow: /secret/",
}


PLUGIN: Final = """
class Dropping:
    def open(self, source):
        pass

    def rewrite(self, url, *, referrer):
        from searchcrawl.plugins import Rewritten

        return None if "/drop/" in url else Rewritten(url)

    def close(self):
        pass
"""


@dataclass(frozen=True, slots=True)
class Crawled:
    """The project after its run, and each URL that it was told of."""

    project: CrawlProject
    urls: Sequence[str]


def links_of(site: SiteProcess) -> list[str]:
    """300 URLs and more, that meet rules of each kind."""
    www, port = site.url(HOST, ""), site.port
    found = [f"{www}{path}" for path in (*GOOD[:-3], *REFUSED_LATER, "/missing.html", "/deep/1.html")]
    found.append(site.url(SHOP, "/shop/ok.html"))
    for n in range(10):
        found += [
            f"{www}/files/{n}.zip",
            f"{www}/files/v{n}/old/x.html",
            f"{www}/files/{n}/old/x.zip",
            f"{www}/list.html?page={n}",
            f"{www}/list.html?{'&'.join(f'p{k}={n}' for k in range(9))}",
            f"{www}/one/two/three/four/five/six/{n}.html",
            f"{www}/a/b/a/b/a/b/{n}.html",
            f"{www}/private/{n}.html",
            f"{www}/%70rivate/{n}/%61.html",
            f"{www}/long/{'x' * 160}{n}.html",
            f"http://{HOST}:{port + n + 1}/port.html",
            f"http://old.acme.test:{port}/{n}.html",
            f"http://old.acme.test:{port}/{n}.zip",
            site.url(SHOP, f"/other/{n}.html"),
            site.url(SHOP, f"/shop/cart/{n}.html"),
            site.url(SHOP, f"/other/{n}.zip?x=1"),
            f"http://elsewhere.test:{port}/{n}.html",
            f"http://elsewhere.test:{port}/private/{n}.zip",
            f"http://h{n}.partner.test/x.html",
            f"http://mirror.example:{port}/acme/{n}.html",
            f"{www}/tracked/{n}.html?page={n}&print=1",
            f"{www}/drop/{n}.html",
        ]
    return found


def build(site: SiteProcess) -> None:
    links = links_of(site)
    chunk = -(-len(links) // 4)
    for n in range(4):
        site.set_page(
            HOST,
            f"/good/{n}.html",
            page(f"part {n}", *links[n * chunk : (n + 1) * chunk], text=WORDS[:200]),
            last_modified=NEW,
        )
    site.set_page(HOST, "/", page("start", *(f"/good/{n}.html" for n in range(4)), text=WORDS), last_modified=NEW)
    for path in GOOD[5:-3]:
        site.set_page(HOST, path, page(path, text=path + WORDS), last_modified=NEW)
    site.set_page(HOST, "/deep/1.html", page("deep", "/deep/2.html", text=f"deep {WORDS}"), last_modified=NEW)
    site.set_page(
        HOST, "/deep/2.html", page("deeper", "/deep/3.html", "/deep/3.zip", text=f"deeper {WORDS}"), last_modified=NEW
    )
    site.set_page(SHOP, "/shop/ok.html", page("shop", text=f"shop {WORDS}"), last_modified=NEW)
    sizes = {"/keep/short.html": "", "/keep/long.html": WORDS * 20, "/huge.html": WORDS * 900}
    for path in REFUSED_LATER:
        head = '<meta name="robots" content="noindex">' if "noindex" in path else ""
        body = page(path[1:6], text=sizes.get(path, path + WORDS), head=head)
        site.set_page(HOST, path, body, last_modified=OLD if "old" in path else NEW)
    site.set_page(HOST, "/keep/notes.txt", path_text("/keep/notes.txt"), content_type="text/plain", last_modified=NEW)
    site.set_page(HOST, "/moved-away", "", status=301, headers={"Location": site.url("elsewhere.test", "/new.html")})
    for n in range(1, 4):
        site.set_page(HOST, f"/hop-{n}.html", "", status=302, headers={"Location": f"/hop-{n + 1}.html"})
    site.set_page(HOST, "/hop-4.html", page("hops", text=f"hops {WORDS}"), last_modified=NEW)
    site.set_page("elsewhere.test", "/new.html", page("new", text=f"new {WORDS}"), last_modified=NEW)
    site.set_page(HOST, "/robots.txt", "".join(f"{line}\n" for line in ROBOTS), content_type="text/plain")


def path_text(path: str) -> str:
    return f"{path} {WORDS}"


def rules(site: SiteProcess) -> dict[str, Any]:
    """A source file with rules of every kind, several against some URLs."""
    return {
        "start": {"urls": [site.url(HOST)], "sitemaps": "off"},
        "scope": {
            "include_hosts": ["www.*", "acme.test", "=never.test"],
            "exclude_hosts": ["old.acme.test"],
            "include_urls": ["http://*.acme.test*", "re:[.]html$"],
            "exclude_urls": ["*.zip", "re:/old/"],
            "exclude_ports": [site.port + 1, site.port + 2],
            "depth": 3,
            "dynamic_pages": False,
            "max_url_length": 150,
            "max_path_segments": 6,
            "max_query_parameters": 8,
            "max_repeated_segments": 2,
            "strip_parameters": ["print"],
            "host": [
                {"host": "acme.test", "exclude_paths": ["/private/"]},
                {"host": HOST, "include_ports": [site.port, 8099], "exclude_paths": ["/%70rivate/"]},
                {"host": SHOP, "include_paths": ["/shop/", "/info/"], "exclude_paths": ["/shop/cart/"]},
            ],
        },
        "keep": {
            "mime_types": ["text/html"],
            "exclude_mime_types": ["text/plain", "image/*"],
            "include_urls": ["*.html", "*.txt", "*/"],
            "min_bytes": 200,
            "max_bytes": 3_000,
            "max_age_days": 30,
            "exclude_urls": ["*/internal/*"],
            "exclude_names": ["draft*"],
            "meta_robots": True,
        },
        "fetch": {"retries": 0, "max_bytes": 100_000, "max_redirects": 2},
        "rewrite": [
            {"plugin": "dropping_links:Dropping"},
            {"match": "^http://mirror[.]example(:[0-9]+)/acme/", "replace": r"http://old.acme.test\1/"},
        ],
    }


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    build(site)
    return site


@pytest.fixture(scope="module")
def crawled(site: SiteProcess, forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    defaults = {"defaults": {"scope": {"max_query_parameters": 9}}}
    project = new_project(tmp_path_factory.mktemp("explain"), site, project=defaults, **rules(site))
    (project.folder / "dropping_links.py").write_text(PLUGIN, "utf-8")
    code = forks.run(project.folder, "crawl", project.name)

    assert code == 0, (project.folder / "output.txt").read_text("utf-8")
    known = [site.url(HOST), *links_of(site), site.url(HOST, "/deep/3.html"), site.url(HOST, "/never/seen.html")]
    return Crawled(project, list(dict.fromkeys(known)))


def test_explain_when_what_it_names_is_removed_then_the_verdict_of_each_url_flips(crawled: Crawled) -> None:
    """Each rule that refuses or admits one of 300 URLs, taken out with those named beside it."""
    kinds: Counter[str] = Counter()
    by_rules: dict[str, list[str]] = defaultdict(list)
    with closing(Asking(crawled.project.folder)) as asking:
        before = dict(zip(crawled.urls, asking.asked(crawled.urls), strict=True))
        for url, found in before.items():
            if reasons := of_file(found):
                by_rules[json.dumps(reasons, sort_keys=True)].append(url)
                kinds.update(re.sub(r"\[\d+\]", "", reason["key"]) for reason in reasons)
        for text, urls in by_rules.items():
            reasons = json.loads(text)
            after = asking.edited(without(asking.written, reasons), urls)
            for url, later in zip(urls, after or [], strict=after is not None):
                told = (url, before[url]["verdict"], later["verdict"], reasons)
                assert before[url]["verdict"] != later["verdict"], told
                # The boundary that a crawl would ask says the same.
                assert url.endswith("/moved-away") or asking.allows(later) != is_outside(later), told
                assert reasons[0] not in [later["decided_by"], *later["also"]], told
                # The URL that moved stays one that moved; what flips is whether its target is asked for.
                assert is_refused(before[url]) != is_refused(later) or url.endswith("/moved-away"), told
            if after is None:
                # Without an include the source itself is refused (B5).
                assert not any(is_refused(before[url]) for url in urls), reasons

    assert len(before) >= 300
    assert sum(map(len, by_rules.values())) >= 280
    assert kinds.keys() >= {
        "scope.include_hosts", "scope.exclude_hosts", "scope.include_urls", "scope.exclude_urls",
        "scope.exclude_ports", "scope.host.include_ports", "scope.host.include_paths", "scope.host.exclude_paths",
        "scope.depth", "scope.dynamic_pages", "scope.max_url_length", "scope.max_path_segments",
        "scope.max_query_parameters", "scope.max_repeated_segments",
        "keep.exclude_mime_types", "keep.min_bytes", "keep.max_bytes", "keep.max_age_days", "keep.exclude_urls",
        "keep.exclude_names", "keep.meta_robots", "keep.include_urls", "keep.mime_types", "fetch.max_bytes",
        "fetch.max_redirects", "rewrite.plugin",
    }, kinds  # fmt: skip


def test_explain_when_it_says_what_would_admit_a_url_then_that_does(crawled: Crawled) -> None:
    """The edits that it names for each refused URL of the 300, with those for the rules beside the first."""
    actions: Counter[str] = Counter()
    with closing(Asking(crawled.project.folder)) as asking:
        before = [found for found in asking.asked(crawled.urls) if is_refused(found) and found["decided_by"]["key"]]
        by_advice: dict[str, list[str]] = defaultdict(list)
        for found in before:
            reasons = [found["decided_by"], *found["also"]]
            assert all("proposal" in reason for reason in reasons), found
            by_advice[json.dumps(reasons, sort_keys=True)].append(found["url"])
        for text, urls in by_advice.items():
            reasons = json.loads(text)
            if any(reason["proposal"]["file"] != FILE for reason in reasons):
                continue
            actions.update(reason["proposal"]["action"] for reason in reasons)
            for found in asking.edited(with_advice(asking.written, reasons), urls) or []:
                # The URL that moved stays one that moved.
                assert not is_refused(found) or found["url"].endswith("/moved-away"), (reasons, found)

    assert len(before) >= 200
    assert set(actions) == {"add", "remove", "set", "raise"}


def test_explain_when_a_limit_is_set_below_others_then_those_are_named_too(crawled: Crawled) -> None:
    [found] = ask(crawled.project.folder, f"http://{HOST}/list.html?{'&'.join(f'p{n}=1' for n in range(12))}")

    limits = [(reason["rule"], reason["file"]) for reason in found["also"] if "parameters" in reason["rule"]]
    assert limits == [
        ("max_query_parameters = 8", FILE),
        ("max_query_parameters = 9", "searchcrawl.toml"),
        ("max_query_parameters = 10", "built-in"),
    ]


def test_explain_when_a_built_in_limit_refuses_then_it_is_named_once(crawled: Crawled) -> None:
    [found] = ask(crawled.project.folder, f"http://{HOST}/same/same/same/same/same/x.html")

    named = [(reason["rule"], reason["file"], reason["key"]) for reason in (found["decided_by"], *found["also"])]
    assert ("max_repeated_segments = 3", "built-in", "scope.max_repeated_segments") in named
    assert len(set(named)) == len(named)


def test_explain_when_what_it_names_is_removed_then_the_next_run_indexes_what_was_refused_at_its_visit(
    site: SiteProcess, forks: Forks, crawled: Crawled
) -> None:
    """The rules that were asked after the request, all of them at once, and the lines of robots.txt."""
    folder, later = crawled.project.folder, [site.url(HOST, path) for path in REFUSED_LATER]
    before = dict(zip(REFUSED_LATER, ask(folder, *later), strict=True))
    named = [reason for found in before.values() for reason in (found["decided_by"], *found["also"])]
    distinct = list({json.dumps(reason, sort_keys=True): reason for reason in named}.values())
    written = tomllib.loads((folder / FILE).read_text("utf-8"))
    edited = without(written, [reason for reason in distinct if reason["file"] == FILE])
    lines = [reason["rule"] for reason in distinct if reason["key"] == "robots.txt"]

    (folder / FILE).write_text(to_toml(edited), "utf-8")
    body = "".join(f"{line}\n" for line in ROBOTS if line not in lines)
    site.set_page(HOST, "/robots.txt", body, content_type="text/plain")
    code = forks.run(folder, "crawl", crawled.project.name)
    *known, target = ask(folder, *later, site.url("elsewhere.test", "/new.html"))
    after = dict(zip(REFUSED_LATER, known, strict=True))

    assert {path: said(found) for path, found in before.items()} == REFUSED_LATER
    assert [reason["rule"] for reason in before["/secret/plan.html"]["also"]] == ["Disallow: /*plan"]
    assert not any(found["in_index"] for found in before.values())
    assert code == 0
    assert {path for path, found in after.items() if not found["in_index"]} == {"/moved-away"}
    assert target["in_index"]
