"""Normalises the URLs that were found: they are rewritten, then stripped (K1; ``scope.strip_parameters``).

This is done before the transaction of a group, because a plugin may take long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from searchcrawl.admission.admit import FoundLinks
from searchcrawl.items import Link, SitemapPart, SitemapUrl
from searchcrawl.rules.rewriting import Identity, NormalisedUrl, Rewriting

#: The depth of URLs of a sitemap, and of those that are submitted: as if a start page linked to them.
LISTED_DEPTH = 1


def normalise_found(found: Sequence[FoundLinks], rewriting: Rewriting, pages: Mapping[int, str]) -> list[FoundLinks]:
    """Normalises the links of pages; ``pages`` are the URLs of the pages by row id."""
    if not rewriting.rewrites:
        return [one if _is_normal(one, rewriting.identity) else _normalise(one, rewriting, pages) for one in found]
    return [one if one.is_normalised else _normalise(one, rewriting, pages) for one in found]


def normalise_parts(parts: Sequence[SitemapPart], rewriting: Rewriting) -> tuple[list[SitemapPart], list[FoundLinks]]:
    """Normalises the URLs of parts of sitemaps; returns the parts, and their URLs as links without a page."""
    normalised: list[SitemapPart] = []
    found: list[FoundLinks] = []
    for part in parts:
        listed: list[SitemapUrl] = []
        links: list[Link] = []
        discarded: list[NormalisedUrl] = []
        for url, lastmod_ms in part.urls:
            one = rewriting.normalise(url)
            if one.code:
                discarded.append(one)
            else:
                listed.append(SitemapUrl(one.url, lastmod_ms))
                links.append(one.link)
        normalised.append(replace(part, urls=tuple(listed)) if part.urls else part)
        if part.urls:
            found.append(
                FoundLinks(None, LISTED_DEPTH, links, discarded=discarded, is_normalised=True, only_counted=True)
            )
    return normalised, found


def normalise_starts(urls: Sequence[str], rewriting: Rewriting) -> tuple[list[NormalisedUrl], FoundLinks]:
    """Normalises the start URLs; returns them, and those that are kept as links of depth 0."""
    normalised = [rewriting.normalise(url) for url in urls]
    kept = {one.url: one.link for one in normalised if not one.code}
    discarded = [one for one in normalised if one.code and one.url not in kept]
    return normalised, FoundLinks(None, 0, list(kept.values()), discarded=discarded, is_normalised=True)


def normalise_submitted(urls: Sequence[str], rewriting: Rewriting) -> list[FoundLinks]:
    """Normalises URLs that were submitted (H9); they widen nothing."""
    return [normalise_starts(urls, rewriting)[1]._replace(depth=LISTED_DEPTH)] if urls else []


def _is_normal(found: FoundLinks, identity: Identity) -> bool:
    """Whether there is nothing to strip; a fast test, because that is true of nearly all pages."""
    if found.is_normalised:
        return True
    suspects = [link[0] for link in chain(found.links, found.unfollowed) if "?" in link[0] or ";" in link[0]]
    return not suspects or all(identity.strip(url) == url for url in suspects)


def _normalise(found: FoundLinks, rewriting: Rewriting, pages: Mapping[int, str]) -> FoundLinks:
    page_url = None if found.page_id is None else pages.get(found.page_id)
    kept, discarded = rewriting.normalise_links(found.links, page_url)
    # One that a rewriter would discard needs no row: it is not followed anyway.
    unfollowed, _ = rewriting.normalise_links(found.unfollowed, page_url) if found.unfollowed else ((), ())
    return found._replace(links=kept, discarded=discarded, unfollowed=unfollowed, is_normalised=True)
