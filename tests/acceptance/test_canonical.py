"""Canonical links: which page stands for which, whatever the order, run after run (L5; code 964)."""

from __future__ import annotations

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import Run, Story, Tell, page, pages, run, source
from tests.site.client import write_project

HOST = "canonical.acme.test"


def naming(title: str, target: str, *links: str, text: str = "") -> str:
    """A page that names another one as canonical."""
    return page(title, *links, text=text, head=f'<link rel="canonical" href="{target}">')


def at(name: str) -> str:
    return f"{HOST}/{name}"


def _ignored(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(**source(site, HOST))
    pages(
        site,
        HOST,
        file=naming("file", "file:///usr/share/doc/index.html"),
        itself=naming("itself", "/itself.html"),
        outside=naming("outside", f"http://offsite.test:{site.port}/x.html"),
        missing=naming("missing", "/nowhere.html"),
        moved=naming("moved", "/moving.html"),
        barred=naming("barred", "/unindexed.html"),
        one=naming("one", "/two.html"),
        two=naming("two", "/one.html"),
        several=page("several", head='<link rel=canonical href="/one.html"><link rel=canonical href="/two.html">'),
        comment=page("comment", text='<link rel="canonical" href="/itself.html">'),
    )
    site.set_page(HOST, "/moving.html", "", status=301, headers={"Location": "/itself.html"})
    site.set_page(HOST, "/unindexed.html", page("unindexed", head='<meta name="robots" content="noindex">'))
    return [run(project)]


def _named(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(**source(site, HOST))
    pages(
        site,
        HOST,
        printed=naming("printed", "/best.html"),
        # Nothing else leads to the page that it names.
        leading=naming("leading", "/hidden/place.html"),
        chained=naming("chained", "/printed.html"),
        barred=page("barred", head='<link rel="canonical" href="best.html"><meta name="robots" content="nofollow">'),
        headed=page("headed"),
        copy=naming("the same words", "/long/name/of/it.html", text="the same words"),
    )
    site.set_page(HOST, "/headed.html", headers={"Link": '</best.html>; rel="canonical"'}, honours_conditions=False)
    site.set_page(HOST, "/best.html", naming("best", "/best.html"))
    site.set_page(HOST, "/hidden/place.html", page("place"))
    site.set_page(
        HOST, "/long/name/of/it.html", naming("the same words", "/long/name/of/it.html", text="the same words")
    )
    runs = [run(project), run(project)]
    site.delete_page(HOST, "/best.html")
    site.set_page(HOST, "/leading.html", page("leading"))
    runs.append(run(project))
    site.set_page(HOST, "/best.html", page("best once more"))
    site.set_page(HOST, "/headed.html", headers={}, honours_conditions=False)
    return [*runs, run(project)]


def _forgetful(project: CrawlProject) -> list[Run]:
    site = project.site
    pages(site, HOST, printed=naming("printed", "/best.html"), best=page("best"))
    write_project(project.folder, site, project={"cache": {"preserve": False}}, **source(site, HOST))
    runs = [run(project)]
    site.delete_page(HOST, "/best.html")
    return [*runs, run(project), run(project)]


def _boundary(project: CrawlProject) -> list[Run]:
    site = project.site
    wide = source(site, HOST)
    project.edit(**wide)
    pages(site, HOST, printed=naming("printed", "/best.html"), best=page("best"))
    runs = [run(project)]
    project.edit(**source(site, HOST, scope={"exclude_urls": ["*/best.html"]}))
    runs.append(run(project))
    project.edit(**wide)
    return [*runs, run(project)]


def _depth(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(**source(site, HOST, scope={"depth": 1}))
    # As near as the page that names it, and what it links to is further away.
    pages(site, HOST, printed=naming("printed", "/best.html", "/deep.html"))
    site.set_page(HOST, "/best.html", page("best", "/deep.html"))
    return [run(project)]


STORIES: dict[str, Story] = {
    "named": _named,
    "ignored": _ignored,
    "forgetful": _forgetful,
    "boundary": _boundary,
    "depth": _depth,
}


def test_canonical_when_it_leads_to_no_good_page_of_the_source_then_the_page_is_indexed_itself(tell: Tell) -> None:
    (found,) = tell("ignored")

    names = ("file", "itself", "outside", "missing", "moved", "barred", "one", "two", "several", "comment")
    assert {name: found.codes[at(f"{name}.html")] for name in names} == dict.fromkeys(names, 200)
    assert found.versions.keys() == {at(""), *(at(f"{name}.html") for name in names)}
    assert not [entry for entry in found.log if entry["host"] == "offsite.test"]
    assert found.counts["duplicates"] == 0


def test_canonical_when_it_names_a_good_page_then_that_is_indexed_and_names_the_others(tell: Tell) -> None:
    first, again, *_ = tell("named")

    others = ("printed", "leading", "chained", "barred", "headed", "copy")
    assert {name: first.codes[at(f"{name}.html")] for name in others} == dict.fromkeys(others, 964)
    assert first.versions.keys() == {at(""), at("best.html"), at("hidden/place.html"), at("long/name/of/it.html")}
    assert at("hidden/place.html") in first.requested
    assert first.counts["duplicates"] == len(others)
    assert first.listed[at("best.html")] == [at(f"{name}.html") for name in ("barred", "chained", "headed", "printed")]
    assert first.listed[at("long/name/of/it.html")] == [at("copy.html")]
    # Nothing changed: nothing is sent.
    assert (again.versions, again.codes, again.counts["indexed"]) == (first.versions, first.codes, 0)


def test_canonical_when_the_page_is_gone_then_those_that_named_it_are_back_in_the_same_run(tell: Tell) -> None:
    _, before, gone, back = tell("named")

    named = ("printed", "barred", "headed")
    assert gone.versions.keys() - before.versions.keys() == {at(f"{name}.html") for name in (*named, "leading")}
    assert before.versions.keys() - gone.versions.keys() == {at("best.html")}
    assert gone.codes[at("chained.html")] == 964
    assert gone.listed[at("printed.html")] == [at("chained.html")]
    # And it is there again: they leave, but for the one that names it no longer.
    assert gone.versions.keys() - back.versions.keys() == {at("printed.html"), at("barred.html")}
    assert back.versions.keys() - gone.versions.keys() == {at("best.html")}
    assert back.codes[at("headed.html")] == 200
    assert back.listed[at("best.html")] == [at("barred.html"), at("chained.html"), at("printed.html")]


def test_canonical_when_the_page_is_gone_and_the_cache_keeps_nothing_then_the_other_is_fetched_again(
    tell: Tell,
) -> None:
    first, gone, again = tell("forgetful")

    assert first.versions.keys() == {at(""), at("best.html")}
    assert gone.versions.keys() == again.versions.keys() == {at(""), at("printed.html")}
    assert again.counts["indexed"] == 0


def test_canonical_when_the_boundary_excludes_the_page_then_the_other_is_indexed_until_it_is_inside_again(
    tell: Tell,
) -> None:
    first, narrow, wide = tell("boundary")

    assert first.versions.keys() == wide.versions.keys() == {at(""), at("best.html")}
    assert narrow.versions.keys() == {at(""), at("printed.html")}
    assert [one.codes[at("printed.html")] for one in (first, narrow, wide)] == [964, 200, 964]


def test_canonical_when_the_depth_is_reached_then_it_is_as_near_as_the_page_that_names_it(tell: Tell) -> None:
    (found,) = tell("depth")

    assert found.codes[at("best.html")] == 200
    assert found.codes[at("printed.html")] == 964
    assert found.codes[at("deep.html")] == 955
