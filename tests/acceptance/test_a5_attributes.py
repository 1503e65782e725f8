"""Attributes from metas, headers and JSON-LD (A5), the fixed ones (A6), descriptions (A8): what index and rows say."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.queries import search
from searchcrawl.sources.loading import load_project
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, Story, Tell, page, pages, run, source
from tests.site.client import SiteProcess

A, B = "a.acme.test", "b.acme.test"
MAPPED_A = {
    "meta:DC.Creator": "author",
    "meta:version": "version",
    "meta:size": "size",
    "jsonld:datePublished": "issued",
    "jsonld:publisher.name": "publisher",
    "meta:og:section": "section",
    "meta:language": "language",
    "types": {"size": "number", "issued": "date"},
}
MAPPED_B = {"header:X-Revision": "version", "meta:language": "spoken", "meta:og:section": "section"}
#: What was asked while the story was told.
FOUND: dict[str, Any] = {}


def meta(**values: str) -> str:
    return "".join(f'<meta name="{name.replace("_", ".")}" content="{value}">' for name, value in values.items())


def ask(project: CrawlProject, words: str = "*", **asked: Any) -> dict[str, Any]:
    """The answer of a search as a user gets it, with the last part of each hit's path for its URL."""
    loaded = load_project(project.folder)
    query = SearchQuery(words=words, **{"rows": 100, **asked})
    with closing(open_index(loaded)) as index:
        answer = search.search(index, query, fields=search.read_known_fields(loaded, query))
    return answer | {"hits": [hit | {"url": hit["url"].rpartition("/")[2]} for hit in answer["hits"]]}


def names(project: CrawlProject, words: str = "*", **asked: Any) -> list[str]:
    return [hit["url"] for hit in ask(project, words, **asked)["hits"]]


def _set_pages(site: SiteProcess) -> None:
    section = '<meta property="og:section" content="News"><meta property="og:section" content="Sport">'
    article = '{"@type": "Article", "datePublished": "2024-05-06", "publisher": {"name": "Acme"}}'
    linked = f'<script type="application/ld+json">{{"@graph": [{{"@type": "WebSite"}}, {article}]}}</script>'
    pages(
        site, A,
        one=page("one", head=meta(DC_Creator="Ann Lee", version="2", size="10") + linked),
        two=page("two", head=meta(version="1", size="2.5", language="pt-BR") + section),
        three=page("three", head=meta(version="3", size="many")),
    )  # fmt: skip
    pages(site, B, four=page("four", head=meta(language="Latin") + section), five=page("five"))
    site.set_page(B, "/four.html", headers={"X-Revision": "2"})


def _mapped(project: CrawlProject) -> list[Run]:
    site = project.site
    other = replace(project, name="b")
    _set_pages(site)
    project.edit(**source(site, A), attributes=MAPPED_A)
    other.edit(**source(site, B), attributes=MAPPED_B)
    runs = [run(project), run(other)]
    FOUND["version 2"] = sorted(names(project, filters=[("version", "2")]))
    FOUND["words"] = [sorted(names(project, words)) for words in ("version:2", "section:sport", "author:lee size:10")]
    FOUND["author"] = names(project, filters=[("Author", "Ann Lee")])
    FOUND["size"] = (names(project, filters=[("size", "10.0")]), names(project, sort="-size")[:2])
    FOUND["publisher"] = names(project, filters=[("publisher", "Acme")])
    FOUND["issued"] = names(project, filters=[("issued", "2024-05-06T00:00:00Z")])
    FOUND["language"] = (names(project, filters=[("language", "pt-br")]), names(project, filters=[("spoken", "Latin")]))
    FOUND["by version"] = names(project, sort="version")[:4]
    FOUND["facets"] = ask(project, facets=["version", "section", "size", "spoken", "mimetype"])["facets"]
    FOUND["attributes"] = {hit["url"]: hit["attributes"] for hit in ask(project)["hits"]}
    asked = ("--filter", "section:Sport", "--facet", "version", "--sort", "version desc")
    FOUND["line"] = project.ask("search", "*", *asked)
    FOUND["unknown"] = project.command("search", "*", "--filter", "vresion:2")
    runs.append(run(project))
    # The same bytes with another header; a mapping that goes.
    site.set_page(B, "/four.html", headers={"X-Revision": "7"}, etag=None, last_modified=None)
    other.edit(**source(site, B), attributes=MAPPED_B)
    runs.append(run(other))
    FOUND["version 7"] = names(project, filters=[("version", "7")])
    project.edit(**source(site, A), attributes=MAPPED_A | {"drop": ["section"], "use_desc_fallback": True})
    FOUND["forced"] = project.ask("status", "demo")["force_recrawl"]
    runs.append(run(project))
    FOUND["sections"] = ask(project, facets=["section"])["facets"]["section"]
    FOUND["log"] = project.log()
    return runs


def _described(project: CrawlProject) -> list[Run]:
    site = project.site
    pages(site, A, told=page("told", head=meta(description="From the tag")), silent=page("s", text="The first words."))
    project.edit(**source(site, A))
    runs = [run(project)]
    FOUND["plain"] = {hit["url"]: hit["description"] for hit in ask(project)["hits"]}
    project.edit(**source(site, A), attributes={"use_desc_fallback": True})
    runs.append(run(project))
    FOUND["filled"] = {hit["url"]: hit["description"] for hit in ask(project)["hits"]}
    return runs


STORIES: dict[str, Story] = {"mapped": _mapped, "described": _described}


def test_a5_attributes_when_two_sources_share_one_then_one_query_finds_both(tell: Tell) -> None:
    tell("mapped")

    assert FOUND["version 2"] == ["four.html", "one.html"]
    assert FOUND["words"] == [["four.html", "one.html"], ["four.html", "two.html"], ["one.html"]]
    assert FOUND["author"] == ["one.html"]
    assert FOUND["language"] == (["two.html"], ["four.html"])
    assert FOUND["issued"] == ["one.html"]
    assert FOUND["publisher"] == ["one.html"]
    assert FOUND["attributes"]["two.html"] == {
        "version": "1", "size": 2.5, "section": ["News", "Sport"], "language": "pt-br",
        "mimetype": "text/html", "host": A,
    }  # fmt: skip
    assert FOUND["attributes"]["one.html"]["issued"] == "2024-05-06T00:00:00Z"
    assert FOUND["attributes"]["one.html"]["author"] == "Ann Lee"


def test_a5_attributes_when_sorted_and_counted_then_by_their_types(tell: Tell) -> None:
    tell("mapped")

    assert FOUND["size"] == (["one.html"], ["one.html", "two.html"])
    assert FOUND["by version"][0] == "two.html"
    assert set(FOUND["by version"][1:3]) == {"one.html", "four.html"}
    assert FOUND["by version"][3] == "three.html"
    assert FOUND["facets"] == {
        "version": {"1": 1, "2": 2, "3": 1},
        "section": {"News": 2, "Sport": 2},
        "size": {"10": 1, "2.5": 1},
        "spoken": {"Latin": 1},
        "mimetype": {"text/html": 7},
    }
    answer = FOUND["line"]
    assert [hit["url"].rpartition("/")[2] for hit in answer["hits"]] == ["four.html", "two.html"]
    assert answer["facets"] == {"version": {"1": 1, "2": 1}}


def test_a5_attributes_when_a_value_is_unreadable_then_its_document_is_indexed_without_it(tell: Tell) -> None:
    first, *_ = tell("mapped")

    assert f"{A}/three.html" in first.in_index
    assert "size" not in FOUND["attributes"]["three.html"]
    # Once a run, in each of the two that read it; and how many there were.
    assert FOUND["log"].count("attribute size: no number, and left out: 'many'") == 2
    assert FOUND["log"].count("attribute size: 1 value is left out, which could not be read") == 2


def test_a5_attributes_when_nothing_or_only_a_header_changed_then_only_that_is_sent(tell: Tell) -> None:
    _, _, again, other, _ = tell("mapped")

    assert (again.counts["indexed"], again.counts["changed"]) == (0, 0)
    assert other.counts["indexed"] == 1
    assert FOUND["version 7"] == ["four.html"]


def test_a5_attributes_when_one_is_dropped_then_the_reason_is_shown_and_it_leaves_that_source_alone(tell: Tell) -> None:
    *_, dropped = tell("mapped")

    assert FOUND["forced"] == "changed: attributes.drop, attributes.use_desc_fallback"
    assert FOUND["sections"] == {"News": 1, "Sport": 1}
    assert dropped.counts["indexed"] == 4


def test_a5_search_when_a_name_is_unknown_then_one_line_says_so(tell: Tell) -> None:
    tell("mapped")

    ended = FOUND["unknown"]
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "searchcrawl: unknown attribute: vresion (did you mean version?)\n"


def test_a8_description_when_there_is_no_tag_then_empty_and_with_the_fallback_from_the_text(tell: Tell) -> None:
    _, filled = tell("described")

    assert FOUND["plain"] == {"": "", "told.html": "From the tag", "silent.html": ""}
    assert FOUND["filled"]["told.html"] == "From the tag"
    assert FOUND["filled"]["silent.html"].startswith("The first words.")
    # The page that has a tag is as it was.
    assert filled.counts["indexed"] == 2


def test_a5_types_when_two_sources_differ_then_exit_4_and_both_are_named(site: SiteProcess, tmp_path: Path) -> None:
    project = new_project(tmp_path, site, **source(site, A), attributes={"meta:v": "version"})
    replace(project, name="b").edit(**source(site, B), attributes={"meta:v": "version", "types": {"version": "number"}})

    crawled = project.crawl()
    searched = project.command("search", "*", "--sort", "version")

    assert (crawled.exit_code, searched.returncode) == (4, 4)
    for text in (crawled.errors, searched.stderr):
        assert "sources/demo.toml" in text
        assert "sources/b.toml" in text
        assert "version" in text
    assert site.log() == []
