"""What ``explain`` says of URLs without a row: of redirects that led there, and of links that were not followed (L1)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from searchcrawl import urls
from searchcrawl.queries.explain import explain_url
from searchcrawl.queries.explain_context import build_inputs
from searchcrawl.sources.config import Source
from searchcrawl.store.documents import duplicate_key_table
from searchcrawl.store.urls import link_table, orphan_table
from searchcrawl.store.urls.link_table import Nofollow, Unfollowed
from tests.filled_store import SITE, FilledStore


def ask(filled: FilledStore, url: str, source: Source | None = None) -> dict[str, Any]:
    inputs = build_inputs(filled.project, source or filled.source)
    return explain_url(filled.database, inputs, url).as_json()


def refuse(filled: FilledStore, page: str, kind: Nofollow, *targets: str, cut: bool = False) -> None:
    """The page has links that may not be followed."""
    found = Unfollowed(filled.ids[page], kind, [urls.key(SITE + target) for target in targets], cut)
    filled.database.write(link_table.add_unfollowed, filled.run.source_id, [found])


def lead(filled: FilledStore, *hops: str, to: str) -> None:
    """The page of the first hop came from another URL."""
    trail = ",".join(f'{{"url":"{SITE}{hop}","code":302}}' for hop in hops)
    filled.settle(hops[0], 200, redirects=f"[{trail}]")
    filled.database.write(duplicate_key_table.set_keys, "answered_key", {filled.ids[hops[0]]: urls.key(to)})


def test_explain_when_redirects_led_to_a_url_without_a_row_then_it_names_the_page_that_stands_for_it(
    filled: FilledStore,
) -> None:
    away = "http://elsewhere.test/page"
    filled.fetch("/a", "/b")
    lead(filled, "/a", "/between", to=f"{SITE}/target")
    lead(filled, "/b", to=away)
    filled.send()
    filled.fetch("/c")
    lead(filled, "/c", to=f"{SITE}/unsent")

    target, between, outside, unsent = (
        ask(filled, url) for url in (f"{SITE}/target", f"{SITE}/between", away, f"{SITE}/unsent")
    )

    for told, page in ((target, "/a"), (between, "/a"), (outside, "/b")):
        assert told["in_index"] is False
        assert told["verdict"] == (
            f"not in the index by itself: its page is in the index as {SITE}{page}, which redirects to it"
        )
        assert told["decided_by"] == {
            "step": "redirect", "rule": f"{SITE}{page} redirects to it", "file": None, "key": None,
        }  # fmt: skip
        assert f"{SITE}{page} redirects to it" in [one["detail"] for one in told["steps"] if one["step"] == "redirect"]
    assert [reason["key"] for reason in outside["also"]] == ["scope.include_hosts"]
    assert unsent["verdict"] == (
        f"not in the index by itself: {SITE}/c redirects to it, and is not in the index either (200 OK)"
    )


def test_explain_when_links_may_not_be_followed_then_their_pages_and_what_says_so_are_named(
    filled: FilledStore,
) -> None:
    filled.fetch("/rel", "/meta", "/header")
    refuse(filled, "/rel", Nofollow.REL, "/a", "/b")
    refuse(filled, "/meta", Nofollow.META, "/b")
    refuse(filled, "/header", Nofollow.HEADER, "/c", cut=True)
    unheeded = filled.source.model_copy(update={"keep": filled.source.keep.model_copy(update={"meta_robots": False})})

    by_rel, by_both, by_header, other = (ask(filled, f"{SITE}/{name}") for name in "abcd")
    lifted, kept = (ask(filled, f"{SITE}/{name}", unheeded) for name in "ba")

    never = "not in the index: never seen: no page that was read has a link to it that may be followed"
    assert by_rel["verdict"].startswith(f"{never} (rel=nofollow on {SITE}/rel), and ")
    assert by_rel["decided_by"] == {
        "step": "found", "rule": f"rel=nofollow on {SITE}/rel", "file": None, "key": None,
    }  # fmt: skip
    assert by_both["verdict"].startswith(f"{never} (meta robots nofollow on {SITE}/meta), and ")
    assert [reason["rule"] for reason in by_both["also"]] == [f"rel=nofollow on {SITE}/rel"]
    assert (by_header["decided_by"]["rule"], by_header["decided_by"]["proposal"]["key"]) == (
        f"X-Robots-Tag nofollow on {SITE}/header",
        "keep.meta_robots",
    )
    assert other["verdict"].startswith(f"{never} (some pages have so many that may not that not all are known), and ")
    assert lifted["verdict"].startswith("not in the index as yet: no rule refuses it as they are now")
    assert kept["decided_by"] == by_rel["decided_by"]


def test_explain_when_canonical_links_count_for_nothing_then_the_step_says_why(filled: FilledStore) -> None:
    chain = [f"/c{number}" for number in range(13)]
    filled.fetch(*chain, "/to-do", "/failed", "/other")
    filled.admit("/waiting")
    filled.settle("/failed", 503)
    named = dict(pairwise(chain)) | {"/to-do": "/waiting", "/other": "/failed"}
    keys = {filled.ids[page]: urls.key(SITE + target) for page, target in named.items()}
    filled.database.write(duplicate_key_table.set_keys, "canonical_key", keys)

    told = {page: ask(filled, SITE + page) for page in ("/c0", "/to-do", "/other", "/c11")}

    found = {
        page: step["detail"] for page, each in told.items() for step in each["steps"] if step["step"] == "canonical"
    }
    assert found == {
        "/c0": f"it names {SITE}/c1: more than 10 canonical links follow each other",
        "/to-do": f"it names {SITE}/waiting: that URL is still to be visited",
        # Its document is good, whatever became of its last visit.
        "/other": f"it names {SITE}/failed",
        "/c11": f"it names {SITE}/c12",
    }


def test_explain_when_nothing_names_a_document_any_more_then_it_says_so_and_which_links_are_not_followed(
    filled: FilledStore,
) -> None:
    filled.fetch("/page", "/kept", "/leaving")
    filled.send()
    refuse(filled, "/page", Nofollow.META, "/kept")
    with filled.database.write_once() as transaction:
        orphan_table.park(transaction, [filled.ids["/kept"]])
        orphan_table.mark(transaction, [filled.ids["/leaving"]])

    def orphans(mode: str) -> Source:
        lifecycle = filled.source.lifecycle.model_copy(update={"orphans": mode})
        return filled.source.model_copy(update={"lifecycle": lifecycle})

    kept, leaving = ask(filled, f"{SITE}/kept", orphans("keep")), ask(filled, f"{SITE}/leaving", orphans("delete"))
    lifted = ask(filled, f"{SITE}/kept", orphans("check"))

    said = "no page, sitemap or start list names it any more"
    assert kept["verdict"] == f"in the index, and not visited any more: {said}"
    assert (kept["decided_by"]["rule"], kept["decided_by"]["key"]) == ("keep", "lifecycle.orphans")
    assert kept["decided_by"]["proposal"]["value"] == "check"
    assert [reason["rule"] for reason in kept["also"]] == [f"meta robots nofollow on {SITE}/page"]
    assert leaving["verdict"] == f"in the index, and leaves at the end of a run: {said}"
    assert lifted["verdict"] == f"in the index, and stays: {said}, and the next run visits it all the same"
    assert [step["detail"].endswith(said) for step in kept["steps"] if step["step"] == "found"] == [True]
