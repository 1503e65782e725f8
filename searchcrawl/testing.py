"""Tests a plugin without a crawl.

``followed`` says what a run would make of links, ``converted`` what of a file; ``read`` is what pipelines, document services
and spiders get of a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass

from searchcrawl import clock, items, urls
from searchcrawl.convert.html_converter import HTML
from searchcrawl.convert.user_converter import page_of_plugin
from searchcrawl.documents.shown_document import show
from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.html.context import ConversionContext
from searchcrawl.index.receiver import Batch, Receipt, Receiver
from searchcrawl.items import Change, Claim, IndexedDocument, Page, Removal
from searchcrawl.plugins import Converted, Document, DocumentConverter, DocumentService, Rewritten, UrlRewriter
from searchcrawl.rules.rewriting import SESSION_NAMES, Identity, PluginRewriter, Rewriting

__all__ = [
    "Batch", "Change", "Converted", "Document", "DocumentConverter", "DocumentService", "FollowedLink",
    "IndexUnavailable", "IndexedDocument", "Receipt", "Receiver", "Removal", "Rewritten", "UrlRewriter",
    "converted", "followed", "read",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedLink:
    """What a run makes of a link: the URL that would be fetched and the one that would be shown.

    Both are None where the link is discarded; ``discarded`` then says why, as ``urls`` and ``explain`` do.
    """

    access_url: str | None = None
    display_url: str | None = None
    discarded: str | None = None


def followed(
    rewriter: Callable[[], UrlRewriter],
    links: Iterable[str],
    *,
    referrer: str | None = None,
    source: str = "test",
    strip_parameters: Iterable[str] = SESSION_NAMES,
) -> list[FollowedLink]:
    """What a run of ``source`` with this class as its only ``[[rewrite]]`` makes of links found on ``referrer``.

    The class is made, opened, called with each link and closed as in a crawl; relative links are resolved
    against ``referrer``. The boundary is not applied. Raises ConfigurationError where the plugin cannot
    begin, InvalidUrl for a link that no page could have.

    >>> class Mirror:
    ...     def open(self, source): ...
    ...     def rewrite(self, url, *, referrer):
    ...         return Rewritten(url.replace("www.", "inner."), url)
    ...     def close(self): ...
    >>> followed(Mirror, ["/a"], referrer="http://www.site.test/")[0].access_url
    'http://inner.site.test/a'
    """
    name = getattr(rewriter, "__qualname__", type(rewriter).__qualname__)
    rewriting = Rewriting([PluginRewriter(rewriter, name)], Identity(tuple(strip_parameters)))
    rewriting.open(source)
    with closing(rewriting):
        return [_follow(rewriting, urls.resolve(link, referrer), referrer) for link in links]


def converted(
    converter: Callable[[], DocumentConverter],
    body: bytes,
    *,
    mimetype: str,
    url: str = "http://test.invalid/file",
    attribute_origins: Iterable[str] = (),
) -> Page:
    """The page that a run with this class under ``converters`` makes of a file, which came from ``url``.

    The class is called in this process, without limits. ``attribute_origins`` are the names of ``values`` that
    ``[attributes]`` maps, as ``meta:created``; the page has them in ``found``. Raises what the class does, and TypeError
    where it answers anything but a ``Converted`` of strings.

    >>> class Lines:
    ...     def convert(self, body, *, url, mimetype):
    ...         return Converted(text=body.decode(), title="Lines")
    >>> converted(Lines, b"one", mimetype="text/x-lines").title
    'Lines'
    """
    name = getattr(converter, "__qualname__", type(converter).__qualname__)
    context = ConversionContext(url=url, mimetype=mimetype, attribute_origins=frozenset(attribute_origins))
    return page_of_plugin(converter().convert(body, url=url, mimetype=mimetype), name, context)


def read(
    html: str,
    *,
    url: str = "http://test.invalid/",
    attribute_origins: Iterable[str] = (),
    content_type: str = "text/html; charset=utf-8",
) -> Document:
    """The document of an HTML page as pipelines, document services and spiders get it: with all of its text.

    ``attribute_origins`` are the names that ``[attributes]`` maps, as ``meta:price``; ``values`` has those of the page.

    >>> read("<title>Tea</title><p>Green, of spring.").text
    'Green, of spring.'
    """
    body = html.encode()
    headers = ((b"Content-Type", content_type.encode()),)
    context = ConversionContext(
        url=url, headers=headers, mimetype="text/html", attribute_origins=frozenset(attribute_origins)
    )
    page = HTML.convert(body, context)
    claim = Claim(url_id=0, url=url, host_id=0, depth=0)
    document = items.Document(
        claim=claim, base_url=url, code=200, headers=headers, body=body, mimetype="text/html", fetched_at=clock.now()
    )
    return show(document, page)


def _follow(rewriting: Rewriting, url: str, referrer: str | None) -> FollowedLink:
    named = rewriting.normalise(url, referrer)
    if named.code:
        why = named.decision.rule if named.error is None else f"{named.decision.rule} ({named.error})"
        return FollowedLink(discarded=why)
    return FollowedLink(access_url=named.url, display_url=named.display or named.url)
