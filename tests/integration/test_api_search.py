"""``Project.search``: names of facets and groups, and what is shown for the values of a facet (A7, G6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl.api.project import Project
from tests.filled_store import FilledStore

KINDS = {"values": {"language": {"en": {"name": "English", "de": "Englisch"}}}}


def test_search_when_facets_and_groups_are_one_name_then_it_is_not_taken_for_its_letters(
    tmp_path: Path, store_url: str
) -> None:
    store = FilledStore(tmp_path, store_url, attributes=KINDS, groups=["press"])
    document = store.document("http://a.test/1", checksum="1")
    fields = {**document.fields, "language": "en", "groups": ["press"]}
    store.put([type(document)(id=document.id, fields=fields)], 1)
    store.close()

    project = Project(tmp_path)
    found = project.search("*", groups="press", facets="language")
    german = project.search("*", facets=["language"], language="de")

    assert (found.total, found.facets) == (1, {"language": {"en": 1}})
    assert (found.facet_names, german.facet_names) == (
        {"language": {"en": "English"}},
        {"language": {"en": "Englisch"}},
    )


def put_one(root: Path, store_url: str) -> Project:
    store = FilledStore(root, store_url)
    document = store.document("http://a.test/1", checksum="1")
    store.put([type(document)(id=document.id, fields={**document.fields, "depth": 2})], 1)
    store.close()
    return Project(root)


def test_search_when_a_filter_is_a_number_then_it_is_looked_for(tmp_path: Path, store_url: str) -> None:
    project = put_one(tmp_path, store_url)

    assert [project.search("*", filters={"depth": value}).total for value in (2, "2", 3)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"filters": {"language": None}}, r"filters\['language'\]: must be a text \(got None\)"),
        ({"filters": {"language": ["en"]}}, r"filters\['language'\]: must be a text \(got \['en'\]\)"),
        ({"filters": {"depth": True}}, r"filters\['depth'\]: must be a text \(got True\)"),
        ({"filters": {3: "x"}}, r"filters: must be a text \(got 3\)"),
        ({"filters": [("language", "en")]}, "filters: must be a mapping of names to values"),
        ({"filters": ""}, "filters: must be a mapping of names to values"),
        ({"words": None}, "words: must be a text"),
        ({"sort": 3}, "sort: must be a text"),
        ({"source": 3}, "source: must be a text"),
        ({"language": None}, "language: must be a text"),
        ({"facets": 3}, r"facets: must be a text or a list of texts \(got 3\)"),
        ({"groups": [3]}, r"groups: must be a text \(got 3\)"),
        ({"rows": "3"}, "rows: must be a whole number"),
        ({"rows": True}, "rows: must be a whole number"),
        ({"offset": None}, "offset: must be a whole number"),
        ({"offset": 1.5}, "offset: must be a whole number"),
    ],
)
def test_search_when_an_argument_is_of_another_type_then_the_error_names_it(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        Project(tmp_path).search(**{"words": "*", **given})


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("explain", {"url": 3}, "url: must be a text"),
        ("explain", {"url": "http://a.test/", "source": 3}, "source: must be a text"),
        ("plan", {"name": None}, "name: must be a text"),
        ("status", {"name": 3}, "name: must be a text"),
        ("verify", {"name": 3}, "name: must be a text"),
        ("crawl", {"name": 3}, "name: must be a text"),
        ("crawl", {"name": "demo", "overrides": 3}, "overrides: must be a text or a list of texts"),
        ("crawl", {"name": "demo", "settings": ["x"]}, "settings: must be a mapping of names to values"),
    ],
)
def test_method_when_an_argument_is_of_another_type_then_the_error_names_it(
    tmp_path: Path, store_url: str, method: str, arguments: dict[str, Any], message: str
) -> None:
    project = put_one(tmp_path, store_url)

    with pytest.raises(ValueError, match=f"^{message}"):
        getattr(project, method)(**arguments)
