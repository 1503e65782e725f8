"""The benchmark of decisions: what it takes for lost, for navigation, for a shared title, and for a wrong survivor."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urljoin

import pytest

from benchmarks.decisions.bounds import find_passed
from benchmarks.decisions.measure import Figures, Measuring, Stored, find_common_words
from benchmarks.decisions.sites import MANUALS, Manual, Part
from benchmarks.decisions.survivors import find_groups
from benchmarks.decisions.truth import count_words, read_truth
from tests.trap_kinds import KINDS, OneTrap

WORDS = " ".join(f"word{number}" for number in range(40))
MANUAL = Manual(packages=["x"], folder="x", generator="x", content=["main", "body"], without=".menu")


def truth_of(markup: str) -> Any:
    return read_truth(f"<title>T</title><body>{markup}".encode(), MANUAL)


@pytest.fixture(autouse=True)
def no_lingua(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.decisions.measure.tell_language", lambda prose: "de" if "Umlaut" in prose else "")


def measure(*pages: tuple[str, str], title: str = "", language: str = "") -> Figures:
    """Of pages by their stored text and markup."""
    measuring = Measuring(frozenset())
    for number, (text, markup) in enumerate(pages):
        stored = Stored(f"http://a.test/{number}", title or f"title {number}", text, language)
        measuring.add_title(stored)
        measuring.add(stored, truth_of(markup))
    return measuring.finish()


def test_truth_when_the_container_has_a_menu_then_its_other_text_counts_and_nothing_else() -> None:
    truth = truth_of("<nav>far</nav><main>own <b>t</b>ext<p>line</p><div class=menu>menu</div><code>f</code></main>")
    assert (dict(truth.words), truth.prose.split()) == (
        {"own": 1, "text": 1, "line": 1, "f": 1},
        ["own", "text", "line"],
    )


def test_words_when_they_are_written_without_spaces_then_each_character_counts() -> None:
    assert dict(count_words("漢字 ab¶ ____ c_d")) == {"漢": 1, "字": 1, "ab": 1, "c_d": 1}


@pytest.mark.parametrize(("kept", "lost"), [(36, 0), (35, 1)])
def test_page_when_over_a_tenth_of_its_words_is_missing_then_it_is_lost(kept: int, lost: int) -> None:
    text = " ".join(WORDS.split()[:kept])
    assert len(measure((text, f"<main>{WORDS}</main>")).lost) == lost


@pytest.mark.parametrize(("more", "navigation"), [(4, 0), (5, 1)])
def test_page_when_over_a_tenth_of_the_stored_words_is_not_in_it_then_that_is_navigation(
    more: int, navigation: int
) -> None:
    text = f"{WORDS} {' '.join(f'menu{number}' for number in range(more))}"
    assert len(measure((text, f"<main>{WORDS}</main>")).navigation) == navigation


def test_words_when_most_pages_repeat_them_then_they_are_no_loss() -> None:
    truths = [truth_of(f"<main>everywhere only{number}</main>") for number in range(5)]
    assert find_common_words(truths) == {"everywhere"}


def test_titles_when_five_pages_share_one_then_all_of_them_count() -> None:
    page = (WORDS, f"<main>{WORDS}</main>")
    assert [len(measure(*[page] * count, title="Same").titles) for count in (4, 5)] == [0, 5]


def test_language_when_another_one_or_none_is_stored_then_it_is_wrong() -> None:
    page = (WORDS, f"<main>Umlaut {WORDS}</main>")
    assert [len(measure(page, language=code).languages) for code in ("de-AT", "en", "")] == [0, 1, 1]


def of_copies(survivor: str, *others: str) -> list[dict[str, Any]]:
    rows = [{"url": url, "duplicate_of": survivor} for url in others]
    return [*rows, {"url": survivor, "duplicate_of": None}]


@pytest.mark.parametrize(
    ("survivor", "other", "title", "language", "is_wrong"),
    [
        ("/lmtp.8.html", "/smtp.8.html", "Postfix manual - smtp(8)", "", True),
        ("/smtp.8.html", "/lmtp.8.html", "Postfix manual - smtp(8)", "", False),
        ("/a/index.html", "/a/smtp.html", "smtp", "", False),
        ("/cs/a.html", "/en/a.html", "A", "en", True),
        ("/en/a.html", "/cs/a.html", "A", "en", False),
        ("/cs/a.html", "/de/a.html", "A", "en", False),
    ],
)
def test_survivor_when_another_copy_is_certainly_better_then_it_is_wrong(
    survivor: str, other: str, title: str, language: str, is_wrong: bool
) -> None:
    host = "http://a.test"
    [group] = find_groups(of_copies(host + survivor, host + other), {host + survivor: (title, language)})
    assert bool(group.wrong) == is_wrong


def row(part: str, **figures: Any) -> dict[str, Any]:
    counts = dict.fromkeys(("lost", "navigation", "titles", "languages", "wrong_survivors", "groups"), 0)
    totals = dict.fromkeys(("reached", "titled", "pages", "with_words", "with_language"), 1000)
    return {"name": "a", "part": part, "codes": {}, **counts, **totals, **figures}


@pytest.mark.parametrize(
    ("part", "figures", "passed"),
    [
        ("named", {"lost": 5, "navigation": 20}, 0),
        ("named", {"lost": 6}, 1),
        ("unseen", {"navigation": 21}, 1),
        ("seen", {"lost": 900}, 0),
        ("seen", {"codes": {"961": 1}}, 1),
        ("named", {"groups": 3, "wrong_survivors": 1}, 1),
    ],
)
def test_bounds_when_a_share_is_above_one_then_it_is_named(part: str, figures: dict[str, Any], passed: int) -> None:
    assert len(find_passed([row(part, **figures)])) == passed


def test_sites_when_they_are_counted_then_ten_are_unseen_and_twenty_beyond_the_named_ones() -> None:
    parts = [manual.part for manual in MANUALS.values()]
    assert parts.count(Part.UNSEEN) == 10
    assert len(parts) - parts.count(Part.NAMED) >= 20


@pytest.mark.parametrize("kind", KINDS)
def test_trap_when_its_links_are_followed_then_there_are_always_new_ones_and_good_pages_answer(kind: str) -> None:
    site = OneTrap(10, kind)
    assert all(site.page(*split(path)) for path in site.good_paths())
    seen = {"/"}
    waiting = ["/"]
    while waiting and len(seen) < 500:
        at = waiting.pop(0)
        markup = site.page(*split(at))
        assert markup is not None, at
        found = {urljoin(at, unescape(link)) for link in re.findall(r'href="([^"]*)"', markup)} - seen
        seen |= found
        waiting += sorted(found)
    assert waiting


def split(target: str) -> tuple[str, str]:
    path, _, query = target.partition("?")
    return path, query
