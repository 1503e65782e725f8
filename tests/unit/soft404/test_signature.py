"""What a host answers to any path, told from its pages (L9, X-R17)."""

from __future__ import annotations

import re

import pytest

from searchcrawl.html.raw_page import has_password_field
from searchcrawl.items import Page
from searchcrawl.rules.turned_pages import words_of
from searchcrawl.soft404.signature import Features, Sample, Signature, distance, probe_url
from searchcrawl.soft404.signature import features_of as features_of_words

MENU = "Home Products Support Contact us docs Imprint " * 3
SENTENCES = "The gauge has to be calibrated in the first week of each quarter by the person who signs for it. " * 4


def page(text: str, title: str = "ACME") -> Page:
    return Page(title=title, text=text)


def signature_of(answer: str, title: str = "ACME") -> Signature | None:
    """The signature of a host that fills ``{url}``, ``{name}`` and ``{n}`` into one page."""
    samples = []
    for number, name in enumerate(("kqjzvtwmxnbpaaaaaaaa", "wbxpmqrtyuioplkjhgfd")):
        url = f"http://h.test/{name}.html"
        text = answer.format(url=url, name=name, n=7919 * (number + 3))
        samples.append(Sample.of(page(text, title.format(name=name)), asked=url))
    return Signature.between(*samples)


def test_probe_when_made_then_lies_beside_the_page_and_is_new_each_time() -> None:
    probes = [
        probe_url(url)
        for url in ("http://h.test/a/b.html?x=1#y", "http://h.test/", "http://h.test/a/", "http://h.test/a.b/c")
    ]

    assert [re.sub("[a-z]{20}", "*", probe) for probe in probes] == [
        "http://h.test/a/*.html",
        "http://h.test/*",
        "http://h.test/a/*",
        "http://h.test/a.b/*",
    ]
    assert probe_url("http://h.test/") != probe_url("http://h.test/")


@pytest.mark.parametrize(
    ("answer", "asked", "text"),
    [
        ("We are sorry: nothing here.", "/x", "We are sorry: nothing here."),
        ("Nothing at {url}, ask later.", "/a/b?c=d", "Nothing at http://h.test/a/b?c=d, ask later."),
        ("It is 12:{n} and {name} is not here.", "/pump.html", "It is 13:01 and pump is not here."),
        (MENU + "{name}.html is not here", "/docs.html", MENU + "docs.html is not here"),
        (MENU + "{name}.html is not here", "/docs", MENU + "docs is not here"),
        ("Log in. User name, password. Token abc{n}def", "/x/y", "Log in. User name, password. Token 9z8"),
        ("{n}: Seite nicht gefunden", "/%C3%A9t%C3%A9", "17: Seite nicht gefunden"),
        ("没有找到页面", "/x", "没有找到页面"),
    ],
)
def test_page_when_it_differs_no_more_than_answers_do_then_it_matches(answer: str, asked: str, text: str) -> None:
    signature = signature_of(answer)

    assert signature is not None
    assert signature.matches(page(text), asked=f"http://h.test{asked}")


@pytest.mark.parametrize(
    ("answer", "of_answer", "text", "title", "matches"),
    [
        ("Nothing here.", "ACME", "The valve opens at four bar.", "ACME", False),
        # A page that is little more than its menu.
        (
            MENU * 4 + "Nothing here, sorry.",
            "ACME",
            MENU * 4 + "Valve: opens at four bar, closes at three.",
            "ACME",
            False,
        ),
        # The same text with a title of its own.
        (SENTENCES, "ACME", SENTENCES, "Calibration of gauges", False),
        (SENTENCES, "ACME", SENTENCES.replace("calibrated", "replaced"), "ACME", False),
        ("Nothing here.", "ACME", "", "ACME", False),
        # Home for a path that it does not know: its other pages say more, or less.
        (SENTENCES + MENU, "ACME", MENU + "Valves", "ACME", False),
        # Titles are compared without the path that they repeat.
        (SENTENCES, "{name} - not found", SENTENCES, "valve - not found", True),
        (SENTENCES, "{name} - not found", SENTENCES, "valve - all about it", False),
    ],
)
def test_page_when_it_says_something_of_its_own_then_is_content(
    answer: str, of_answer: str, text: str, title: str, matches: bool
) -> None:
    signature = signature_of(answer, of_answer)

    assert signature is not None
    assert signature.matches(page(text, title), asked="http://h.test/valve.html") is matches


def test_signature_when_answers_are_made_up_or_empty_then_there_is_none() -> None:
    one, other = (
        Sample.of(page(text), asked="http://h.test/x") for text in ("alpha beta gamma delta", "one two three four")
    )
    empty = Sample.of(page(""), asked="http://h.test/x")

    assert Signature.between(one, other) is None
    assert Signature.between(empty, empty) is None


@pytest.mark.parametrize(
    ("body", "has"),
    [
        (b'<form><input name=u><INPUT name="p" TYPE="password"></form>', True),
        (b"<input type=password>", True),
        (b"<input\n type = 'password' />", True),
        (b'<input type="text" placeholder="password">', False),
        (b"<p>type=password</p>", False),
    ],
)
def test_password_field_when_looked_for_then_is_an_input(body: bytes, has: bool) -> None:
    assert has_password_field(body) is has


def features_of(text: str) -> Features:
    return features_of_words(words_of(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Page, of 12:30 — No. 7", ["the", "page", "of", "", "", "no", ""]),
        ("token a3f9c0 and " + "x" * 31, ["token", "", "and", ""]),
        ("snake_case Größe naïve", ["snake", "case", "größe", "naïve"]),
        ("没有找到页面", list("没有找到页面")),
        ("", []),
    ],
)
def test_words_when_read_then_numbers_and_tokens_are_blank(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_features_when_made_then_are_words_and_pairs_but_not_across_numbers() -> None:
    assert features_of("Not found: error 404 here") == {
        *("not", "found", "error", "here"),
        *(("not", "found"), ("found", "error")),
    }


def test_distance_when_texts_are_compared_then_is_their_share_of_other_features() -> None:
    text = "this page says how to calibrate a gauge"

    same = distance(features_of(text), features_of(text.upper() + " 12:30"))
    near = distance(features_of(text), features_of(text.replace("gauge", "scale")))
    far = distance(features_of(text), features_of("an invoice nobody has paid yet"))

    assert (same, far) == (0, 1)
    assert near == pytest.approx(1 - 13 / 17)


@pytest.mark.parametrize(
    ("one", "other", "expected"), [("", "", 0.0), ("one", "", 1.0), ("not found", "Not found 7", 0.0)]
)
def test_distance_when_texts_are_short_then_is_still_one(one: str, other: str, expected: float) -> None:
    assert distance(features_of(one), features_of(other)) == expected


def test_features_when_words_are_left_out_then_their_pairs_are_too() -> None:
    words = words_of("docs and docstrings of docs")

    assert features_of_words(words, without={"docs"}) == {
        *("and", "docstrings", "of"),
        *(("and", "docstrings"), ("docstrings", "of")),
    }
