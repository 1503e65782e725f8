"""The spider of ``type = "web"`` sources: reads HTML at once, leaves the rest to the convert stage."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from dataclasses import replace
from typing import Any

from scrapy.http import Response

from searchcrawl import clock
from searchcrawl.admission.admit import rule_text
from searchcrawl.checksum.digest import body_digest, filtered_digest
from searchcrawl.convert.convert_pipeline import content_type, robots_tags
from searchcrawl.convert.judge import judged, refusal_of
from searchcrawl.convert.registry import Converter, choose_converter, mimetype_of
from searchcrawl.exceptions import DocumentError
from searchcrawl.html.link_header import canonical_of
from searchcrawl.html.oversized import is_oversized
from searchcrawl.html.page import parse_html
from searchcrawl.http.visit_end import trail_of
from searchcrawl.items import Claim, Document, Outcome, Page
from searchcrawl.spiders.base_spider import SourceSpider, broken


class WebSpider(SourceSpider):
    """Visits the pages of a web source."""

    def visited(self, response: Response) -> list[Document | Outcome] | Coroutine[Any, Any, list[Document | Outcome]]:
        """One item: the document, or why there is none; later, where its host has to be asked first."""
        claim: Claim = response.meta["claim"]
        headers = tuple((name, value) for name, values in response.headers.items() for value in values)
        header = content_type(headers)
        tags = robots_tags(headers)
        body = response.body
        redirects = trail_of(response.request) if response.request else ()
        links = response.headers.getlist(b"Link")
        canonical = canonical_of([one.decode("latin-1") for one in links], base_url=response.url) if links else None
        mapped = self.run.attributes.header_text(headers) if self.run.attributes is not None else ""
        if canonical is not None and not self.run.rewriting.rewrites:
            # Its session may be another one each time.
            canonical = self.run.rewriting.identity.of(canonical)
        document = Document(
            claim=claim,
            base_url=response.url,
            code=200,
            headers=headers,
            body=body,
            mimetype=mimetype_of(body, content_type=header),
            fetched_at=clock.now(),
            redirects=redirects,
            canonical=canonical,
            # Validators belong to the URL that answered.
            etag=None if redirects else _text(response.headers.get(b"ETag")),
            last_modified=_text(response.headers.get(b"Last-Modified")),
            body_digest=body_digest(
                body, robots_tags=",".join(tags), canonical=_of_another(canonical, claim.url), attributes=mapped
            ),
        )
        if self.run.keep is not None:
            document = self._filtered(document)
        if document.body_digest == claim.body_digest:
            return [document]
        found = self._read(document, header, tags)
        return [found] if isinstance(found, Document | Outcome) else found

    def _filtered(self, document: Document) -> Document:
        """The same bytes are another document when a filter takes another view of them: of their age, of their type."""
        refusal = refusal_of(document, self.run)
        if refusal is None:
            return document
        return replace(document, body_digest=filtered_digest(document.body_digest, rule_text(refusal)))

    def _read(
        self, document: Document, header: str, tags: list[str]
    ) -> Document | Outcome | Coroutine[Any, Any, list[Document | Outcome]]:
        run = self.run
        try:
            converter = choose_converter(document.mimetype, document.body, content_type=header)
            if converter is not Converter.HTML and refusal_of(document, run) is not None:
                # Neither its text is wanted nor has it links that are followed.
                return judged(document, Page(), run)
            if converter is not Converter.HTML or is_oversized(document.body):
                return replace(document, converter=converter.value)
            page = parse_html(
                document.body,
                url=document.base_url,
                content_type=header,
                default_charset=run.source.fetch.default_charset,
                robots_headers=tags,
                user_agent=run.source.robots.user_agent or run.project.user_agent,
                wanted=run.attributes.wanted if run.attributes is not None else frozenset(),
            )
            look = run.wires.sentinel
            found = look(document, page) if look is not None else None
            if found is None:
                return judged(document, page, run)
            return found if isinstance(found, Outcome) else self._when_known(found, document, page)
        except DocumentError as error:
            return Outcome(
                claim=document.claim,
                code=error.code,
                error=f"{error}: {document.base_url}",
                redirects=document.redirects,
            )
        except Exception as error:
            self.logger.exception("%s cannot be read", document.base_url)
            return self._unread(document, error)

    async def _when_known(
        self, asked: Awaitable[Outcome | None], document: Document, page: Page
    ) -> list[Document | Outcome]:
        try:
            return [await asked or judged(document, page, self.run)]
        except Exception as error:
            self.logger.exception("%s cannot be read", document.base_url)
            return [self._unread(document, error)]

    def _unread(self, document: Document, error: Exception) -> Outcome:
        self.crawler.stats.inc_value(f"searchcrawl/read_errors/{type(error).__name__}")
        return broken(document, error)


def _of_another(canonical: str | None, own: str) -> str:
    """A page that names itself is what it is without a header: a copy of those that name none."""
    return "" if canonical is None or canonical == own else canonical


def _text(value: bytes | None) -> str | None:
    return value.decode("latin-1")[:1000] if value else None
