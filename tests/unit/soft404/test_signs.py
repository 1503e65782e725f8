"""What has a host asked for a path that it does not have: signs of a page, and texts that are alike (L9, 965)."""

from __future__ import annotations

import pytest

from searchcrawl.items import Page
from searchcrawl.soft404.signs import Outline, is_nearly_empty, looks_like_notice
from searchcrawl.soft404.taken_pages import TakenPage, TakenPages

SENTENCES = (
    "The gauge has to be calibrated in the first week of each quarter by the person who signs for it.",
    "Valves of the second series open at four bar and close at three, whatever the temperature of the water is.",
    "Who orders more than a dozen of them gets a discount, which is told by the office in the main building.",
)
MENU = "Home\nProducts\nSupport\nContact us\nImprint\nLog in"


@pytest.mark.parametrize(
    ("title", "text", "headings"),
    [
        ("404", "", ()),
        ("Seite nicht gefunden – ACME", "", ()),
        ("ACME", "We couldn’t find that page.", ()),
        ("ACME", "没有找到页面", ()),
        ("ACME", "Страница не найдена", ()),
        ("ACME", MENU * 100, ("Page introuvable",)),
        ("Sign in", MENU * 100, ()),
        ("ACME", "This site is closed for maintenance.", ()),
    ],
)
def test_page_when_it_says_that_there_is_none_then_looks_like_a_notice(
    title: str, text: str, headings: tuple[str, ...]
) -> None:
    assert looks_like_notice(Page(title=title, text=text, headings=headings))


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Calibration of gauges", SENTENCES[0]),
        # Menus have such links.
        ("ACME", f"{MENU}\n{SENTENCES[1]}"),
        # A manual may speak of errors.
        ("Errors of the valve", "\n".join((*SENTENCES * 4, "Error 404: the valve is not found"))),
        ("", ""),
    ],
)
def test_page_when_it_is_about_something_then_does_not_look_like_a_notice(title: str, text: str) -> None:
    assert not looks_like_notice(Page(title=title, text=text))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Nothing at /a/b.html, sorry: ask later", "Nothing at /c/valve.html, sorry: ask later", True),
        ("It is 12:30 and nothing is here", "It is 12:59 and nothing is here", True),
        (SENTENCES[0], SENTENCES[1], False),
        ("", "", False),
        ("7 12", "7 13", False),
        ("没有找到页面", "没有找到页面", True),
        # Long texts: a token, and a word of the URL, in one of many lines.
        (MENU * 60 + "a.html is not here 9f8e7d", MENU * 60 + "valve.html is not here 1a2b3c", True),
        ("\n".join(SENTENCES * 5 + ("one",)), "\n".join(SENTENCES * 5 + ("two",)), True),
        # The same menu, and other texts.
        (
            MENU * 9 + "\n".join(f"{line} {line}" for line in SENTENCES[:2]) * 3,
            MENU * 9 + f"{SENTENCES[2]} {SENTENCES[2]}" * 6,
            False,
        ),
        ("Nothing is here", "Nothing is here " * 500, False),
    ],
)
def test_texts_when_they_differ_in_what_a_page_repeats_then_are_alike(one: str, other: str, alike: bool) -> None:
    first = Outline.of(one, asked="http://h.test/a/b.html")
    second = Outline.of(other, asked="http://h.test/c/valve.html")

    assert (first.is_alike(second), second.is_alike(first)) == (alike, alike)


def test_outline_when_the_text_is_long_then_is_small() -> None:
    outline = Outline.of("\n".join(SENTENCES * 10_000), asked="http://h.test/")

    assert len(outline.parts) + len(outline.weights) < 100


@pytest.mark.parametrize(
    ("words", "is_known", "empty"),
    [(1, False, True), (0, True, True), (50, False, False), (50, True, True), (100, True, False)],
)
def test_page_when_it_has_a_few_words_then_is_nearly_empty(words: int, is_known: bool, empty: bool) -> None:
    assert is_nearly_empty(Page(text="word " * words), is_known=is_known) is empty


def test_pages_when_there_are_many_then_the_last_are_compared() -> None:
    pages = TakenPages()
    outlines = [
        Outline.of(f"{SENTENCES[0]}\n" * 4 + f"{chr(97 + number) * 40} " * 30, asked="") for number in range(20)
    ]

    counts = [pages.add(TakenPage(number, False, number, each), most=5) for number, each in enumerate(outlines)]

    assert (counts, len(pages)) == ([1] * 5 + [0] * 15, 5)
    assert [pages.has_alike(each) for each in outlines] == [False] * 15 + [True] * 5
    assert [page.url_id for page in pages.take(lambda page: page.outline.is_alike(outlines[17]))] == [17]
    assert (len(pages), pages.has_alike(outlines[17])) == (4, False)
