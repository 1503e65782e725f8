"""What was found gets the URLs that rows have: rewritten, and without what is stripped (K1; ``scope.strip_parameters``).

It is done before the transaction of a group: a plug-in may take its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from searchcrawl.admission.admit import Found
from searchcrawl.items import Link, ListedUrl, SitemapPart
from searchcrawl.rules.identity import Identity
from searchcrawl.rules.rewriting import NormalisedUrl, Rewriting

#: The depth of what a sitemap lists: as if a start page linked to it.
_SITEMAP_DEPTH = 1


def named_found(found: Sequence[Found], rewriting: Rewriting, pages: Mapping[int, str]) -> list[Found]:
    """The links of pages as rows have them; ``pages`` are the URLs of the pages by row id."""
    if not rewriting.rewrites:
        return [one if _is_named(one, rewriting.identity) else _named(one, rewriting, pages) for one in found]
    return [one if one.named else _named(one, rewriting, pages) for one in found]


def named_parts(parts: Sequence[SitemapPart], rewriting: Rewriting) -> tuple[list[SitemapPart], list[Found]]:
    """The parts with the URLs that rows have, and what they list, as links without a page."""
    named: list[SitemapPart] = []
    found: list[Found] = []
    for part in parts:
        listed: list[ListedUrl] = []
        links: list[Link] = []
        discarded: list[NormalisedUrl] = []
        for url, lastmod_ms in part.urls:
            one = rewriting.normalise(url)
            if one.code:
                discarded.append(one)
            else:
                listed.append(ListedUrl(one.url, lastmod_ms))
                links.append(one.link)
        named.append(replace(part, urls=tuple(listed)) if part.urls else part)
        if part.urls:
            found.append(Found(None, _SITEMAP_DEPTH, links, discarded=discarded, named=True))
    return named, found


def named_start(urls: Sequence[str], rewriting: Rewriting) -> tuple[list[NormalisedUrl], Found]:
    """What becomes of the start URLs, and the same as links of depth 0."""
    named = [rewriting.normalise(url) for url in urls]
    kept = {one.url: one.link for one in named if not one.code}
    discarded = [one for one in named if one.code and one.url not in kept]
    return named, Found(None, 0, list(kept.values()), discarded=discarded, named=True)


def _is_named(found: Found, identity: Identity) -> bool:
    """Whether nothing is to be stripped: nearly always, so it has to be seen at once."""
    if found.named:
        return True
    suspects = [link[0] for link in found.links if "?" in link[0] or ";" in link[0]]
    return not suspects or all(identity.strip(url) == url for url in suspects)


def _named(found: Found, rewriting: Rewriting, pages: Mapping[int, str]) -> Found:
    page_id, depth, links, near, *_ = found
    kept, discarded = rewriting.normalise_links(links, None if page_id is None else pages.get(page_id))
    return Found(page_id, depth, kept, near, discarded, named=True)
