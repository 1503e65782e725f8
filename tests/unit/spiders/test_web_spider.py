"""What a web source hands to the item pipelines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from searchcrawl.items import Document, Hop
from searchcrawl.kind import WEB
from searchcrawl.rules.rewriting import Identity, Rewriting
from searchcrawl.spiders.web_spider import WebSpider
from tests import factories


def handle(body: bytes = b"<title>x", *, redirects: tuple[Hop, ...] = (), **headers: str) -> Document:
    spider: Any = WebSpider(name="x")
    project, source = SimpleNamespace(converters={}), SimpleNamespace(kind=WEB)
    spider.run = SimpleNamespace(rewriting=Rewriting((), Identity(["sid"])), project=project, source=source)
    meta = {"claim": factories.claim(), "redirects": redirects}
    response = Response(
        "http://a.test/page",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        body=body,
        request=Request("http://a.test/page", meta=meta),
    )
    (document,) = spider.handle_response(response)
    assert isinstance(document, Document)
    return document


def test_response_when_handled_then_is_an_unread_document_with_its_type() -> None:
    document = handle(b"<title>x", Content_Type="application/octet-stream", ETag='"1"')

    assert (document.mimetype, document.page, document.body_digest, document.etag) == ("text/html", None, b"", '"1"')


def test_response_when_it_came_by_a_redirect_then_its_etag_is_that_of_another_url() -> None:
    assert handle(ETag='"1"', redirects=(Hop("http://a.test/", 302),)).etag is None


@pytest.mark.parametrize(
    ("link", "canonical"),
    [("</other?sid=1>; rel=canonical", "http://a.test/other"), ("</other>; rel=next", None)],
)
def test_response_when_a_link_header_names_a_canonical_url_then_the_document_has_it(
    link: str, canonical: str | None
) -> None:
    assert handle(Link=link).canonical == canonical
