from __future__ import annotations

from searchcrawl.admission.admit import FoundLinks
from searchcrawl.admission.url_normalisation import normalise_found, normalise_parts, normalise_starts
from searchcrawl.items import Link, SitemapPart, SitemapUrl
from searchcrawl.rules.rewriting import Identity, PatternRewriter, Rewriting

SITE = "http://a.test/"
STRIPPING = Rewriting([], Identity(["sid"]))
#: Gives up what is below /no/.
REWRITING = Rewriting([PatternRewriter("^.*/no/.*$", ""), PatternRewriter("/old/", "/new/")], Identity(["sid"]))


def links(*paths: str) -> list[Link]:
    return [Link(SITE + path) for path in paths]


def test_found_when_nothing_is_to_be_stripped_then_it_is_what_it_was() -> None:
    pages = [FoundLinks(1, 1, links("a", "b?q=sid", "c;v=1")), FoundLinks(2, 1, links("d?sid=1"), is_normalised=True)]

    named = normalise_found(pages, STRIPPING, {})

    assert [one is before for one, before in zip(named, pages, strict=True)] == [True, True]


def test_found_when_links_become_one_then_it_is_there_once_and_what_is_near_stays() -> None:
    canonicals = (Link(f"{SITE}canonical"),)

    (named,) = normalise_found(
        [FoundLinks(1, 2, links("a?sid=1", "b", "a?sid=2"), canonicals)], STRIPPING, {1: f"{SITE}page"}
    )

    assert (named.page_id, named.depth, named.links, named.canonicals) == (1, 2, links("a", "b"), canonicals)


def test_found_when_rewritten_then_discarded_links_are_apart() -> None:
    (named,) = normalise_found([FoundLinks(1, 2, links("old/a", "no/b", "c"))], REWRITING, {})

    assert named.links == [Link(f"{SITE}new/a", False, None, f"{SITE}old/a"), Link(f"{SITE}c")]
    assert [(one.url, one.code, one.decision.key) for one in named.discarded] == [(f"{SITE}no/b", 955, "rewrite.match")]


def test_found_when_a_page_says_nofollow_then_its_links_are_named_as_a_crawl_would_request_them() -> None:
    pages = [
        FoundLinks(1, 2, (), unfollowed=links("old/a?sid=1", "no/b")),
        FoundLinks(2, 2, (), unfollowed=links("c?sid=1")),
    ]

    rewritten, _ = normalise_found(pages, REWRITING, {})
    _, stripped = normalise_found(pages, STRIPPING, {})

    assert [link.url for link in rewritten.unfollowed] == [f"{SITE}new/a"]
    assert (list(rewritten.links), list(rewritten.discarded)) == ([], [])
    assert [link.url for link in stripped.unfollowed] == [f"{SITE}c"]


def test_parts_when_a_sitemap_lists_sessions_and_what_is_discarded_then_rows_are_named_alike() -> None:
    listed = tuple(SitemapUrl(SITE + path, 5) for path in ("old/a?sid=1", "no/b"))
    parts = [SitemapPart(url=f"{SITE}sitemap.xml", urls=listed), SitemapPart(url=f"{SITE}sitemap.xml")]

    named, (found,) = normalise_parts(parts, REWRITING)

    assert [part.urls for part in named] == [(SitemapUrl(f"{SITE}new/a", 5),), ()]
    assert (found.page_id, found.depth, [link.url for link in found.links]) == (None, 1, [f"{SITE}new/a"])
    assert [one.url for one in found.discarded] == [f"{SITE}no/b"]


def test_start_when_one_is_discarded_then_the_others_are_links_of_depth_0() -> None:
    named, found = normalise_starts([f"{SITE}old/a", f"{SITE}no/b", f"{SITE}new/a?sid=3"], REWRITING)

    assert [one.code for one in named] == [0, 955, 0]
    assert (found.depth, [link.url for link in found.links]) == (0, [f"{SITE}new/a"])
    assert [one.url for one in found.discarded] == [f"{SITE}no/b"]
