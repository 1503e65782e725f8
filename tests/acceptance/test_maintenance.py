"""Second and later runs: what is new, changed, gone, a copy no longer, or nearer (D1-D6, F2, F3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, Story, Tell, page, pages, run, source
from tests.site import expected
from tests.site.client import SiteProcess, write_project

HOST = "www.acme.test"


def _test_site(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(fetch={"retries": 0})
    runs = [run(project), run(project)]
    site.stage("changed")
    runs.append(run(project))
    return runs


def _comes_back(project: CrawlProject) -> list[Run]:
    site, host = project.site, "comes-back.acme.test"
    project.edit(**source(site, host))
    pages(site, host, a=page("alpha"), b=page("beta"), c=page("gamma"))
    runs = [run(project)]
    site.delete_page(host, "/a.html")
    site.delete_page(host, "/b.html")
    runs.append(run(project))
    site.set_page(host, "/a.html", page("alpha"))
    site.set_page(host, "/b.html", page("beta", text="other words"))
    return [*runs, run(project), run(project)]


def _forgetful(project: CrawlProject) -> list[Run]:
    site, host = project.site, "forgetful.acme.test"
    same = page("the same everywhere")
    pages(site, host, a=page("alpha"), b=page("beta"), c=same, cc=same)
    write_project(project.folder, site, project={"cache": {"preserve": False}}, **source(site, host))
    runs = [run(project)]
    site.set_behaviour(host, "/a.html", status=404)
    # It does not answer conditions: the same bytes are sent again.
    site.set_page(host, "/b.html", honours_conditions=False)
    site.set_behaviour(host, "/b.html", status=410)
    site.delete_page(host, "/c.html")
    runs.append(run(project))
    site.clear_behaviours()
    return [*runs, run(project)]


def _noindex(project: CrawlProject) -> list[Run]:
    site, host = project.site, "noindex.acme.test"
    project.edit(**source(site, host))
    pages(site, host, a=page("alpha"), b=page("beta"), c=page("gamma"))
    runs = [run(project)]
    site.set_page(host, "/a.html", page("alpha", head='<meta name="robots" content="noindex">'))
    # A header alone changes: the body is the same as before, byte for byte.
    site.set_page(host, "/b.html", page("beta"), headers={"X-Robots-Tag": "noindex"}, honours_conditions=False)
    site.set_page(host, "/robots.txt", "User-agent: *\nDisallow: /c.html\n", content_type="text/plain")
    runs.append(run(project))
    site.set_page(host, "/a.html", page("alpha"))
    site.set_page(host, "/b.html", page("beta"), headers={}, honours_conditions=False)
    site.set_page(host, "/robots.txt", "", content_type="text/plain")
    return [*runs, run(project)]


def _copies(project: CrawlProject) -> list[Run]:
    site, host = project.site, "copies.acme.test"
    project.edit(**source(site, host))
    same = page("the same everywhere")
    pages(site, host, a=same, bb=same, ccc=same, d=page("delta"))
    runs = [run(project)]
    # The survivor disappears: the next takes its place in the same run.
    site.delete_page(host, "/a.html")
    runs.append(run(project))
    # The next survivor changes: both are documents now.
    site.set_page(host, "/bb.html", page("no copy any more"))
    runs.append(run(project))
    # A page becomes a copy of another one.
    site.set_page(host, "/d.html", page("no copy any more"))
    return [*runs, run(project)]


def _deeper(project: CrawlProject) -> list[Run]:
    site, host = project.site, "deeper.acme.test"
    site.set_page(host, "/", page("start", "/1.html"))
    for number in range(1, 5):
        site.set_page(host, f"/{number}.html", page(f"page {number}", f"/{number + 1}.html"))
    site.set_page(host, "/5.html", page("page 5"))
    project.edit(**{**source(site, host), "scope": {"include_hosts": [host], "depth": 3}})
    runs = [run(project)]
    # A shorter way: pages behind it come within reach.
    site.set_page(host, "/", page("start", "/1.html", "/3.html"))
    return [*runs, run(project)]


STORIES: dict[str, Story] = {
    "test_site": _test_site,
    "copies": _copies,
    "forgetful": _forgetful,
    "comes_back": _comes_back,
    "noindex": _noindex,
    "deeper": _deeper,
}


def test_second_run_when_nothing_changed_then_nothing_is_sent_and_bodies_only_where_the_site_has_no_validators(
    tell: Tell,
) -> None:
    first, second, _ = tell("test_site")

    assert second.ended.exit_code == 0
    assert second.ended.status["run"]["kind"] == "maintenance"
    assert second.versions == first.versions
    assert {second.counts[name] for name in ("indexed", "new", "changed", "deleted", "duplicates")} == {0}
    assert second.counts["not_modified"] + second.counts["unchanged"] >= len(first.versions)
    # The ends of redirects (asked without conditions), and two pages without validators.
    assert second.bodies <= 12
    assert second.codes == first.codes


@pytest.mark.matrix
def test_third_run_when_the_site_changed_then_new_changed_and_gone_pages_are_so_in_the_index(tell: Tell) -> None:
    _, before, after = tell("test_site")

    differing = {
        url for url in before.versions.keys() & after.versions.keys() if before.versions[url] != after.versions[url]
    }
    counts = [after.counts[name] for name in ("new", "changed", "deleted", "indexed")]
    assert counts == [1, 3, 2, 4]
    assert after.versions.keys() - before.versions.keys() == {f"{HOST}/products/evaporimeter.html"}
    assert before.versions.keys() - after.versions.keys() == {
        f"{HOST}/products/anemometer.html",
        f"{HOST}/products/hygrometer.html",
    }
    # The glossary has the same text and another date, which is indexed too.
    assert differing == {f"{HOST}/products/", f"{HOST}/products/prices.html", f"{HOST}/handbook/glossary.html"}
    copies = {url for group in expected.COPIES for url in group}
    codes = {url: 200 if url in copies else code for url, code in after.codes.items()}
    assert {url: codes[url] for url in expected.codes(changed=True)} == expected.codes(changed=True)


def test_page_when_gone_and_there_again_then_it_is_indexed_again(tell: Tell) -> None:
    first, gone, again, last = tell("comes_back")

    both = {"comes-back.acme.test/a.html", "comes-back.acme.test/b.html"}
    assert first.versions.keys() - gone.versions.keys() == both
    assert gone.counts["deleted"] == 2
    assert again.versions.keys() == first.versions.keys()
    assert [again.codes[url] for url in sorted(both)] == [200, 200]
    assert last.versions == again.versions
    assert last.counts["indexed"] == 0


def test_page_when_gone_and_there_again_and_the_cache_keeps_nothing_then_it_is_indexed_again(tell: Tell) -> None:
    first, gone, again = tell("forgetful")

    url = "forgetful.acme.test/{}.html"
    assert first.versions.keys() - gone.versions.keys() == {url.format(name) for name in "abc"}
    # The next of the copies is fetched again in the same run: there was no record of it.
    assert gone.versions.keys() - first.versions.keys() == {url.format("cc")}
    assert again.versions.keys() - gone.versions.keys() == {url.format("a"), url.format("b")}
    assert [again.codes[url.format(name)] for name in ("a", "b", "cc")] == [200, 200, 200]


def test_noindex_and_robots_when_they_appear_and_vanish_then_documents_leave_and_return(tell: Tell) -> None:
    first, barred, free = tell("noindex")

    url = "noindex.acme.test/{}.html"
    assert [barred.codes[url.format(name)] for name in "abc"] == [952, 952, 951]
    assert barred.versions.keys() == {"noindex.acme.test/"}
    assert barred.counts["deleted"] == 3
    assert free.versions.keys() == first.versions.keys()


def test_copies_when_the_survivor_changes_or_goes_then_another_is_found_in_the_same_run(tell: Tell) -> None:
    url = "copies.acme.test/{}.html"
    first, gone, split, joined = (
        {name for name in ("a", "bb", "ccc", "d") if url.format(name) in one.versions} for one in tell("copies")
    )

    assert first == {"a", "d"}
    assert gone == {"bb", "d"}
    assert split == {"bb", "ccc", "d"}
    assert len(joined & {"bb", "d"}) == 1
    assert "ccc" in joined
    assert [run.ended.exit_code for run in tell("copies")] == [0, 0, 0, 0]


def test_depth_when_a_shorter_way_appears_then_pages_behind_it_are_visited(tell: Tell) -> None:
    first, second = tell("deeper")

    url = "deeper.acme.test/{}.html"
    assert [first.codes[url.format(number)] for number in (3, 4)] == [200, 955]
    assert url.format(5) not in first.codes
    assert [second.codes[url.format(number)] for number in (3, 4, 5)] == [200, 200, 200]
    assert url.format(5) in second.versions


def test_rule_when_a_page_that_may_not_be_indexed_is_as_before_then_it_stays(site: SiteProcess, tmp_path: Path) -> None:
    host = "unindexed.acme.test"
    site.set_page(host, "/", page("Hidden", head='<meta name="robots" content="noindex">'))
    project = new_project(tmp_path, site, **source(site, host))
    project.crawl()

    before = project.rows()
    project.crawl()

    assert project.rows() == before
    row = before[f"{host}/"]
    assert (row["code"], row["depth"], row["rule"]) == (952, 0, "keep.meta_robots: meta robots noindex")
