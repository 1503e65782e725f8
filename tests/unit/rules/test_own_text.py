"""How much of a page is its own: archives bring text for ever, calendars, mazes and copies soon bring none (L8, L12)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from searchcrawl.items import Link
from searchcrawl.rules.own_text import KnownText

WORDS = ("the", "station", "records", "pressure", "at", "noon", "and", "keeps", "a", "copy", "of", "each", "reading",
         "before", "it", "is", "sent", "north", "with", "care")  # fmt: skip
NAVIGATION = "\n".join(" ".join(random.Random(number).choices(WORDS, k=6)) for number in range(60))
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
SITE = "http://a.test"


def means(pages: Iterator[tuple[str, str]], *, number: int, last: int = 200) -> float:
    """The mean share of the last of so many pages."""
    known = KnownText()
    shares = [known.measure(url, "", text) for url, text in (next(pages) for _ in range(number))]
    return sum(shares[-last:]) / last


def words(chance: random.Random, number: int) -> str:
    return " ".join(chance.choices(WORDS, k=number))


def archive() -> Iterator[tuple[str, str]]:
    """Articles of few different words, four fifths of each of which is navigation."""
    for number in count(1):
        chance = random.Random(number)
        yield f"{SITE}/article/{number}", f"{NAVIGATION}\n{words(chance, 50)}\n{words(chance, 40)}"


def notes() -> Iterator[tuple[str, str]]:
    """Very short texts, each with one word of its own."""
    for number in count(1):
        yield f"{SITE}/note/{number}", f"{NAVIGATION}\nThis note is about thing{number:x}x today"


def tables() -> Iterator[tuple[str, str]]:
    """Measured values, and nothing else."""
    for number in count(1):
        chance = random.Random(number)
        rows = "\n".join(" ".join(f"{chance.uniform(0, 40):.1f}" for _ in range(6)) for _ in range(12))
        yield f"{SITE}/data/{number}", f"Measured values\n{rows}"


def cards() -> Iterator[tuple[str, str]]:
    """One paragraph of one long line after the other, without any line in common."""
    for number in count(1):
        yield f"{SITE}/p/{number}", words(random.Random(number), 150)


def calendar() -> Iterator[tuple[str, str]]:
    for number in count(1):
        month, year = number % 12, 1900 + number // 12
        title = f"{MONTHS[month]} {year}"
        days = " ".join(map(str, range(1, 31)))
        yield f"{SITE}/month?month={month + 1}&year={year}", f"{title}\nNothing happens in {title}\nSu Mo Tu\n{days}"


def calendar_without_echo() -> Iterator[tuple[str, str]]:
    for number in count(1):
        dates = "\n".join(f"Mon {day} {MONTHS[number % 12]} {1900 + number // 12}, 10:30" for day in range(1, 8))
        yield (
            f"{SITE}/week/{number}",
            f"Week of 03.{number % 12 + 1:02}.{1900 + number // 12}\n{dates}\nvisitor {number * 977}",
        )


def maze() -> Iterator[tuple[str, str]]:
    for number in count(1):
        path = "/".join(random.Random(number).choices([f"{one}{two}" for one in WORDS for two in WORDS], k=3))
        yield f"{SITE}/{path}", f"{NAVIGATION}\nSorry, /{path} is not here\nServed in 0.{number:04} seconds"


def sessions() -> Iterator[tuple[str, str]]:
    """Fifty articles, each again and again with another session id, which stands in it."""
    articles = [text for _, (_, text) in zip(range(50), archive(), strict=False)]
    for number in count(1):
        session = f"{number * 7919:08x}"
        yield f"{SITE}/s/{session}/{number % 50}", f"{articles[number % 50]}\nYour session is {session}"


def facets() -> Iterator[tuple[str, str]]:
    lamps = [f"{one} {two} lamp" for one in WORDS[:10] for two in WORDS[10:]]
    for number in count(1):
        chance = random.Random(number)
        color = chance.choice(WORDS)
        items = "\n".join(chance.sample(lamps, 10))
        yield f"{SITE}/shop?color={color}&page={number}", f"Lamps\nChosen: {color} {number}\n{items}"


@pytest.mark.parametrize("pages", [archive, notes, tables, cards])
def test_share_when_each_page_has_words_of_its_own_then_it_stays_high(
    pages: Callable[[], Iterator[tuple[str, str]]],
) -> None:
    assert means(pages(), number=1_200) > 0.055


def test_share_when_an_archive_is_long_then_its_last_articles_are_as_new_as_the_first() -> None:
    assert means(archive(), number=4_000) > 0.9


@pytest.mark.parametrize(
    ("pages", "number"),
    # The maze has 400 words, and is named by three of them: each is new once.
    [(calendar, 400), (calendar_without_echo, 400), (maze, 1_600), (sessions, 400), (facets, 400)],
)
def test_share_when_pages_only_count_on_then_they_soon_bring_nothing(
    pages: Callable[[], Iterator[tuple[str, str]]], number: int
) -> None:
    assert means(pages(), number=number) < 0.03


def test_share_when_another_page_has_the_text_then_it_is_not_the_page_s_own() -> None:
    known = KnownText()
    text = words(random.Random(1), 200)
    original = known.measure(f"{SITE}/a/1", "An article", f"first\n{text}")

    copy = known.measure(f"{SITE}/s/8f3a9c2e/a/1", "An article", f"first\n{text}\nYour session is 8f3a9c2e")

    assert (original, copy) == (1.0, pytest.approx(3 / 16))
    assert known.measure(f"{SITE}/s/1f3a9c2e/a/1", "An article", f"first\n{text}\nYour session is 1f3a9c2e") == 0.0


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/std/arch/fn._mm256_add_pd.html", "_mm256_add_pd"),
        ("/api/DataFrame.add.html", "DataFrame.add"),
        ("/smtp.8.html", "smtp(8)"),
        ("/wiki?title=Pressure", "Pressure gauges"),
    ],
)
def test_share_when_a_page_is_named_as_its_url_then_the_name_is_its_own(path: str, name: str) -> None:
    known = KnownText()
    for other in ("subtract", "multiply", "divide"):
        known.measure(f"{SITE}/fn.{other}.html", f"Function {other}", f"Function {other}\nReturns the result")

    assert known.measure(SITE + path, f"Function {name}", f"Function {name}\nReturns the result") >= 2 / 16


def test_share_when_a_menu_has_thousands_of_lines_then_what_is_below_it_counts() -> None:
    known = KnownText()
    menu = "\n".join(f"pandas.Frame.method{chr(97 + one % 26)}{one}" for one in range(4_600))
    known.measure(f"{SITE}/1", "One", f"{menu}\nThe first")

    assert known.measure(f"{SITE}/2", "Two", f"{menu}\n{words(random.Random(1), 80)}") == 1.0


def test_share_when_a_page_is_empty_then_nothing() -> None:
    assert KnownText().measure(f"{SITE}/1", "", "\n") == 0.0


def test_share_when_there_are_surrogates_and_no_blanks_then_it_is_told() -> None:
    assert KnownText().measure(f"{SITE}/%ff/1", "", "気圧は正午に記録される。\n\ud800x" * 50) > 0


def test_share_when_a_line_is_the_text_of_a_link_then_it_is_that_of_another_page() -> None:
    known = KnownText()
    known.measure(f"{SITE}/1", "Entry", "An entry")
    links = [Link(f"{SITE}/zebra", texts=("Zebra",))]

    assert known.measure(f"{SITE}/aardvark", "Entry", "An entry\nZebra", links) == 0.0
    # Its own name is not, whatever links to it.
    assert known.measure(f"{SITE}/zebra", "Zebra", "An entry\nZebra", links) > 0


def test_share_when_words_are_joined_without_blanks_then_it_is_at_most_one() -> None:
    assert KnownText().measure(f"{SITE}/1", "", "/".join("abcdefghijklmnopqrstuvw")) == 1.0
