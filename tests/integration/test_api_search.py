"""``Project.search``: names of facets and groups, and what is shown for the values of a facet (A7, G6)."""

from __future__ import annotations

from pathlib import Path

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
