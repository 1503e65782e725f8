"""The code, the canonical URL and the display URL that a document gets (B8–B10, C6, A4, L5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from searchcrawl.codes import Code
from searchcrawl.documents.document_pipeline import FetchedFilterPipeline, PageFilterPipeline
from searchcrawl.items import Document, Page
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.index_filter import IndexFilter
from searchcrawl.rules.rewriting import DisplayMap, Rewriting
from tests import factories


def process(document: Document, **values: Any) -> Any:
    boundary = Boundary(allow_all=True, file="sources/x.toml")
    pipeline = PageFilterPipeline(boundary=boundary, rewriting=Rewriting(), rules=IndexFilter(), **values)
    return pipeline.process_document(document)


def test_fetched_filter_when_it_refuses_then_the_document_goes_on_and_names_the_rule() -> None:
    pipeline = FetchedFilterPipeline(IndexFilter(exclude_names=["plan*"]))
    headers = ((b"Content-Disposition", b"attachment; filename=plans.html"),)

    refused = pipeline.process_document(replace(factories.document(), headers=headers))
    passed = pipeline.process_document(factories.document())

    assert [getattr(item, "refusal", "") for item in (refused, passed)] == ["keep.exclude_names: plan*", None]
    assert getattr(refused, "code", None) == 200


def test_page_filter_when_the_document_was_refused_before_then_has_its_code_and_rule() -> None:
    document = process(replace(factories.document(), refusal="keep.a: b"))

    assert (document.code, document.rule) == (Code.NOT_INDEXED, "keep.a: b")


def test_page_filter_when_a_page_refreshes_to_another_then_the_visit_ends_with_the_link() -> None:
    outcome = process(replace(factories.document(), page=Page(text="x", refresh="http://a.test/new")))

    assert (outcome.code, outcome.rule) == (Code.META_REFRESH, None)
    assert [link.url for link in outcome.links] == ["http://a.test/new"]


def test_page_filter_when_header_and_page_name_canonical_urls_then_the_header_counts() -> None:
    page = Page(text="x", canonical="http://a.test/of-the-page")

    document = process(replace(factories.document(), page=page, canonical="http://a.test/of-the-header"))

    assert document.canonical == "http://a.test/of-the-header"
    assert document.canonical_link.url == document.canonical


def test_page_filter_when_the_display_url_is_not_valid_then_is_1010_unless_the_page_is_not_indexed() -> None:
    document = factories.document()
    good = replace(document, claim=replace(document.claim, display_url="no URL"))

    codes = [process(one, display=DisplayMap([])).code for one in (good, replace(good, refusal="keep.a: b"))]

    assert codes == [Code.INVALID_DISPLAY_URL, Code.NOT_INDEXED]


def test_page_filter_when_a_document_was_not_read_then_passes() -> None:
    unread = replace(factories.document(), page=None)

    assert process(unread) is unread
