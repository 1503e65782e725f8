"""The spider of ``type = "web"`` sources."""

from __future__ import annotations

from scrapy.http import Response

from searchcrawl import clock
from searchcrawl.convert.registry import find_mimetype
from searchcrawl.html.links import find_header_canonical
from searchcrawl.http.visit_end import find_redirects
from searchcrawl.items import CachedAnswer, Document, Headers
from searchcrawl.spiders.base_spider import SourceSpider


class WebSpider(SourceSpider):
    """Visits the pages of a web source: hands each response to the item pipelines, which read it."""

    def handle_response(self, response: Response) -> list[Document]:
        """The response as the one document that the item pipelines take."""
        headers = tuple((name, value) for name, values in response.headers.items() for value in values)
        links = response.headers.getlist(b"Link")
        canonical = (
            find_header_canonical([one.decode("latin-1") for one in links], base_url=response.url) if links else None
        )
        if canonical is not None and not self.run.rewriting.rewrites:
            # A session id in it may be another one each time.
            canonical = self.run.rewriting.identity.strip(canonical)
        redirects = find_redirects(response.request) if response.request else ()
        return [
            Document(
                claim=response.meta["claim"],
                base_url=response.url,
                code=200,
                headers=headers,
                body=response.body,
                mimetype=find_mimetype(response.body, headers),
                # An answer of the cache has the time when it came.
                fetched_at=response.meta.get("fetched_at") or clock.now(),
                redirects=redirects,
                answered_url=self.run.rewriting.identity.strip(response.url) if redirects else None,
                cached=_find_cached(response, headers),
                canonical=canonical,
                # Validators belong to the URL that answered.
                etag=None if redirects else _decode(response.headers.get(b"ETag")),
                last_modified=_decode(response.headers.get(b"Last-Modified")),
            )
        ]


def _find_cached(response: Response, headers: Headers) -> CachedAnswer | None:
    """The answer of the cache, if no component of a user's own has changed it."""
    cached: CachedAnswer | None = response.meta.get("cached")
    if cached is None or cached.body is not response.body or cached.headers != headers:
        return None
    return cached


def _decode(value: bytes | None) -> str | None:
    return value.decode("latin-1")[:1000] if value else None
