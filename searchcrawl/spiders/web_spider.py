"""The spider of ``type = "web"`` sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from scrapy.http import HtmlResponse, Response
from scrapy.selector import Selector

from searchcrawl import clock, plugins
from searchcrawl.answer_headers import drop_own
from searchcrawl.convert.registry import Registry
from searchcrawl.convert.user_converter import list_user_converters
from searchcrawl.http.headers_middleware import read_canonical
from searchcrawl.http.large_response import find_body
from searchcrawl.http.visit_end import find_redirects
from searchcrawl.items import CANONICAL_ETAG, Document, FetchedAnswer
from searchcrawl.sources.secrets import redact
from searchcrawl.spiders.base_spider import SourceSpider


class WebSpider(SourceSpider):
    """Visits the pages of a web source: hands each response to the item pipelines, which read it.

    ``spider = "module:Class"`` in a source file makes a subclass the spider of that source. It overrides any of
    ``list_start_urls``, ``find_opening``, ``choose_links``, ``read_fields`` and ``find_refusal``; ``select`` helps to read a page. A method
    that raises costs the page at hand (903).
    """

    def list_start_urls(self) -> Iterable[str]:
        """URLs to start with beside those of ``[start]``; asked once, when a run begins."""
        return ()

    def find_opening(self, url: str) -> datetime | None:
        """From when on a URL may be requested, with a time zone; None: now. Until then its row and document stay as they are."""
        return None

    def choose_links(self, document: plugins.Document) -> Iterable[str]:
        """The links of a page that are followed, of ``document.links`` or others; rules decide about all of them."""
        return document.links

    def read_fields(self, document: plugins.Document) -> Mapping[str, str | Sequence[str]]:
        """Other values for fields of a page: ``title``, ``text``, ``description``, ``author``, ``subject``, ``language``.

        Any other name is that of values that ``[attributes]`` maps as ``"meta:NAME"``.
        """
        return {}

    def find_refusal(self, document: plugins.Document) -> str | None:
        """Why a page is not indexed (952); None: it is. Its links are followed in any case."""
        return None

    def select(self, document: plugins.Document) -> Selector:
        """The page for CSS and XPath, as in any spider of Scrapy; it is parsed for each call."""
        return HtmlResponse(document.answered_url, body=document.body, headers=dict(document.headers)).selector

    @cached_property
    def _registry(self) -> Registry:
        return Registry(list_user_converters(self.run.project))

    def handle_response(self, response: Response) -> list[Document]:
        """The response as the one document that the item pipelines take."""
        self.answers += 1
        parts, lacks = response.meta.get("wholeness", (None, None))
        headers = tuple((name, value) for name, values in response.headers.items() for value in values)
        answer = FetchedAnswer(
            claim=response.meta["claim"],
            url=response.url,
            headers=headers,
            body=find_body(response),
            # An answer of the cache has the time when it came.
            fetched_at=response.meta.get("fetched_at") or clock.now(),
            redirects=find_redirects(response.request) if response.request else (),
            cached=response.meta.get("cached"),
            rendered=response.meta.get("rendered"),
            parts=parts,
            lacks=lacks,
        )
        return [self.build_document(answer)]

    def build_document(self, answer: FetchedAnswer) -> Document:
        """The document of an answer, before it is read."""
        # A web server is not asked who may see what, and what it says would reach the records.
        headers = answer.headers if self.run.source.kind.says_access else drop_own(answer.headers)
        last = {name.lower(): value for name, value in headers}
        canonical = None
        if b"link" in last:
            links = [value for name, value in headers if name.lower() == b"link"]
            canonical = read_canonical(links, base_url=answer.url, rewriting=self.run.rewriting)
        # Validators belong to the URL that answered.
        etag = None if answer.redirects else _decode(last.get(b"etag"))
        return Document(
            claim=answer.claim,
            base_url=answer.url,
            code=200,
            headers=headers,
            body=answer.body,
            mimetype=self._registry.find_mimetype(answer.body, headers, answer.url),
            fetched_at=answer.fetched_at,
            redirects=answer.redirects,
            answered_url=self.run.rewriting.identity.strip(answer.url) if answer.redirects else None,
            cached=answer.cached,
            rendered=answer.rendered,
            parts=answer.parts,
            lacks=answer.lacks,
            canonical=canonical,
            etag=CANONICAL_ETAG if canonical not in {None, answer.claim.url} else etag,
            last_modified=_decode(last.get(b"last-modified")),
        )


def _decode(value: bytes | None) -> str | None:
    return redact(value.decode("latin-1"))[:1000] if value else None
