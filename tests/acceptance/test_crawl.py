"""One crawl of the test site, by a process, into the embedded index: rows, documents, requests (B, C, F, G)."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from searchcrawl.sources.loading import load_project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import link_table
from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.site import expected
from tests.site.client import SiteProcess
from tests.site.expected import short

pytestmark = pytest.mark.matrix


class Crawled(NamedTuple):
    """A project after its first run, and what the site saw."""

    project: CrawlProject
    ended: Ended
    requested: list[str]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with SiteProcess() as site:
        project = new_project(tmp_path_factory.mktemp("crawl"), site, fetch={"retries": 0})
        ended = project.crawl()
        yield Crawled(project, ended, site.requested())


def test_crawl_when_the_site_is_new_then_finished_and_counted(crawled: Crawled) -> None:
    status, rows = crawled.ended.status, crawled.project.rows().values()

    assert (crawled.ended.exit_code, crawled.ended.errors) == (0, "")
    assert (status["state"], status["run"]["kind"], status["run"]["end_reason"]) == ("finished", "initial", "finished")
    assert status["documents"] == crawled.ended.counts["indexed"] == len(crawled.project.indexed())
    assert (status["waiting"], status["quarantined"], status["force_recrawl"]) == (0, 0, None)
    refused = [row for row in rows if row["code"] in (951, 955)]
    # One leads to a page that robots.txt forbids: it was requested itself.
    assert crawled.ended.counts["rejected"] == len(refused) - 1 == sum(not row["redirects"] for row in refused)
    assert crawled.ended.counts["duplicates"] == sum(row["code"] in (909, 964) for row in rows)
    assert {row["fetch_state"] for row in rows} == {2}


def test_crawl_when_ended_then_each_row_has_the_code_that_the_site_calls_for(crawled: Crawled) -> None:
    codes = crawled.project.codes()

    copies = {url for group in expected.COPIES for url in group}
    known = {
        url: 200 if url in copies and code == 909 else code
        for url, code in codes.items()
        if url not in expected.OUTSIDE | expected.OPEN
    }
    assert known == expected.codes()
    assert expected.OUTSIDE.isdisjoint(codes)
    # Nothing but redirects leads to elsewhere.test.
    hosts = {url.partition("/")[0] for url in expected.OUTSIDE} - {"elsewhere.test"}
    assert crawled.ended.refused_links.keys() >= hosts
    assert all(codes[url] in (200, 911) for url in expected.OPEN)


def test_crawl_when_ended_then_nothing_was_requested_that_may_not_be(crawled: Crawled) -> None:
    asked = set(crawled.requested)

    assert asked.isdisjoint(expected.NEVER_REQUESTED)
    assert expected.UNLINKED.isdisjoint(crawled.project.rows())


def test_crawl_when_ended_then_no_url_was_asked_for_twice_for_itself(crawled: Crawled) -> None:
    asked = Counter(crawled.requested)
    rows = crawled.project.rows()

    # The target of a followed redirect is asked for again where it has a row of its own.
    targets = {"www.acme.test/nowhere.html", "www.acme.test/redirects/loop-b"}
    assert {url for url, times in asked.items() if times > 1 and url in rows} <= targets


def test_index_when_the_crawl_ended_then_it_has_each_good_page_exactly_once(crawled: Crawled) -> None:
    good = sorted(url for url, code in crawled.project.codes().items() if code == 200)

    assert crawled.project.indexed() == good


def test_copies_when_the_crawl_ended_then_each_is_listed_by_one_survivor(crawled: Crawled) -> None:
    duplicates = {
        short(hit.fields["url"]): sorted(short(url) for url in hit.fields["duplicates"])
        for hit in crawled.project.hits("*")
        if hit.fields.get("duplicates")
    }

    groups = {frozenset({survivor, *copies}) for survivor, copies in duplicates.items()}
    assert groups == {*expected.COPIES, expected.CANONICAL}
    assert len(duplicates) == len(groups)


def test_depth_when_the_crawl_ended_then_it_is_that_of_the_shortest_way(crawled: Crawled) -> None:
    rows = {row["url"]: row for row in crawled.project.rows().values()}
    outlinks = _outlinks(crawled.project)

    start = crawled.project.site.url()
    # What a sitemap lists is as far away as what the start page links to.
    depths = {start: 0, crawled.project.site.url(path="/about/car-park.html"): 1}
    waiting = deque(depths)
    while waiting:
        page = waiting.popleft()
        # The target of a permanent redirect is as far away as the redirect.
        step = 0 if rows[page]["code"] in (953, 954) else 1
        for target in outlinks.get(page, ()):
            if depths[page] + step < depths.get(target, 1000):
                depths[target] = depths[page] + step
                waiting.append(target)
    assert {url: row["depth"] for url, row in rows.items()} == depths
    assert rows[crawled.project.site.url("docs.acme.test", "/chain/5.html")]["depth"] == 6


def _outlinks(project: CrawlProject) -> dict[str, list[str]]:
    database = Database(load_project(project.folder).database_url, project.folder)
    with database.read_once() as transaction:
        urls = {row.id: row.url for row in transaction.exec_driver_sql("SELECT id, url FROM urls")}
        found = link_table.load(transaction, list(urls))
    database.close()
    return {urls[page]: [urls[target] for target in targets] for page, targets in found.items()}


@pytest.mark.parametrize(
    ("words", "pages"),
    [
        ('"oracle on demand"', {"www.acme.test/phrases/1.html"}),
        ('"oracle demand"', {"www.acme.test/phrases/2.html"}),
        ("quicksilver capsule", {"docs.acme.test/manuals/barometer.pdf"}),
        ("梨の木の箱", {"jp.acme.test/history.html"}),
        ("霜の警報装置", {"jp.acme.test/news.html"}),
        ("蜘蛛", {"jp.acme.test/products.html"}),
        ("untypedword", {"www.acme.test/tests/untyped"}),
        ("upside harbour -herring", {"www.acme.test/products/prices.html"}),
        ("herring soup", set()),
    ],
)
def test_search_when_words_are_known_then_exactly_their_pages_are_found(
    crawled: Crawled, words: str, pages: set[str]
) -> None:
    found = crawled.project.found(words)

    assert set(found) == pages


def test_robots_when_a_rule_forbids_then_951_with_its_line_and_no_request(crawled: Crawled) -> None:
    rows = crawled.project.rows()

    assert {
        url: row["rule"] for url, row in rows.items() if url.startswith("www.acme.test/") and row["code"] == 951
    } == {
        "www.acme.test/cyberworld/map/": "Disallow: /cyberworld/map/",
        "www.acme.test/cyberworld/map/north.html": "Disallow: /cyberworld/map/",
        "www.acme.test/tmp/scratch.html": "Disallow: /tmp/",
        "www.acme.test/%74mp/scratch2.html": "Disallow: /tmp/",
        "www.acme.test/foo.html": "Disallow: /foo.html",
        "www.acme.test/redirects/to-forbidden": "Disallow: /tmp/",
    }
    assert "www.acme.test/cyberworld/open.html" in crawled.requested


def test_robots_when_the_crawl_ended_then_each_host_was_asked_for_it_once(crawled: Crawled) -> None:
    asked = Counter(entry["host"] for entry in crawled.project.site.log() if entry["path"] == "/robots.txt")

    assert asked == {f"{name}.test": 1 for name in ("www.acme", "docs.acme", "jp.acme", "mirror.acme", "partner")}


def test_redirects_when_followed_then_the_row_keeps_the_way_and_its_own_address(crawled: Crawled) -> None:
    project = crawled.project
    way = json.loads(project.rows()["www.acme.test/redirects/chain-1"]["redirects"])
    moved = json.loads(project.rows()["www.acme.test/redirects/301-outside"]["redirects"])

    steps = [f"www.acme.test/redirects/chain-{number}" for number in (1, 2, 3)]
    assert [(short(hop["url"]), hop["code"]) for hop in way] == list(zip(steps, (302, 307, 303), strict=True))
    assert [(short(hop["url"]), hop["code"]) for hop in moved] == [("www.acme.test/redirects/301-outside", 301)]
    assert "www.acme.test/redirects/302-outside" in project.indexed()
    assert "partner.test/landing.html" in crawled.requested
    assert "www.acme.test/redirected/301.html" in project.indexed()


def test_noindex_when_a_page_says_it_then_its_links_are_followed_and_it_is_not_found(crawled: Crawled) -> None:
    codes = crawled.project.codes()

    pages = ["www.acme.test/handbook/archive.html", "www.acme.test/handbook/canteen.html"]
    assert [codes[page] for page in pages] == [952, 952]
    assert codes["www.acme.test/handbook/archive/1998.html"] == 200
    assert not {*pages} & {*crawled.project.indexed()}
