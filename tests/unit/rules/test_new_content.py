"""How much of a page is new: archives bring text for ever, calendars, mazes and copies soon bring none (L8)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import count

import pytest

from searchcrawl.rules.new_content import NEAR_BITS, KnownLines, NewContent, PageText, find_runs, simhash

WORDS = ("the", "station", "records", "pressure", "at", "noon", "and", "keeps", "a", "copy", "of", "each", "reading",
         "before", "it", "is", "sent", "north", "with", "care")  # fmt: skip
NAVIGATION = "\n".join(" ".join(random.Random(number).choices(WORDS, k=6)) for number in range(60))
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
SITE = "http://a.test"


def means(pages: Iterator[tuple[str, str]], *, number: int, last: int = 200) -> float:
    """How much the last of so many pages brought in the mean."""
    known, new_content = KnownLines(), NewContent()
    shares = [share(known, new_content, *next(pages)) for _ in range(number)]
    return sum(shares[-last:]) / last


def share(known: KnownLines, new_content: NewContent, url: str, text: str) -> float:
    found = new_content.measure(known.add_page(url, text, sha256(text.encode()).digest()))
    assert found is not None
    return found


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


@pytest.mark.parametrize("pages", [calendar, calendar_without_echo, maze, sessions, facets])
def test_share_when_pages_only_count_on_then_they_soon_bring_nothing(
    pages: Callable[[], Iterator[tuple[str, str]]],
) -> None:
    assert means(pages(), number=400) < 0.03


def read(known: KnownLines, url: str, text: str) -> PageText:
    return known.add_page(url, text, sha256(text.encode("utf-8", "surrogatepass")).digest())


LONG = "The station records the pressure at noon and keeps a copy of each reading before it is sent north with care."


def test_share_when_a_shorter_url_has_the_text_then_it_is_not_new() -> None:
    known = KnownLines()
    original = NewContent().measure(read(known, f"{SITE}/a/1", f"first\n{LONG}"))

    copy = NewContent().measure(read(known, f"{SITE}/s/8f3a9c2e/a/1", f"second\n{LONG}"))

    assert original == 1.0
    assert copy is not None
    assert copy < 0.07


def test_share_when_the_copy_came_first_then_the_original_is_new_all_the_same() -> None:
    known = KnownLines()
    NewContent().measure(read(known, f"{SITE}/s/8f3a9c2e/a/1", LONG))

    assert NewContent().measure(read(known, f"{SITE}/a/1", LONG)) == 1.0


def test_share_when_asked_roughly_then_only_copies_and_short_pages_are_looked_at() -> None:
    known, new_content = KnownLines(), NewContent()
    new_content.measure(read(known, f"{SITE}/1", NAVIGATION))

    long = words(random.Random(1), 200)
    much = new_content.measure(read(known, f"{SITE}/2", f"{NAVIGATION}\n{long}"), roughly=True)
    copied = new_content.measure(read(known, f"{SITE}/3", f"{NAVIGATION}\n{long}"), roughly=True)
    short = new_content.measure(read(known, f"{SITE}/4", f"{NAVIGATION}\nshort\nand other"), roughly=True)

    assert (much, copied) == (None, 0.0)
    assert short == pytest.approx(2 / 16)


def test_share_when_the_text_of_another_process_is_handed_on_then_it_is_known() -> None:
    known = KnownLines()
    before = NewContent()
    before.measure(read(known, f"{SITE}/1", words(random.Random(1), 200)))

    after = NewContent(before.pack())

    assert after.measure(read(KnownLines(), f"{SITE}/2", words(random.Random(1), 200))) == 0.0


def test_share_when_a_page_is_empty_then_nothing() -> None:
    assert NewContent().measure(read(KnownLines(), f"{SITE}/1", "\n")) == 0.0


def test_share_when_there_are_surrogates_and_no_blanks_then_it_is_told() -> None:
    found = NewContent().measure(read(KnownLines(), f"{SITE}/%ff/1", "気圧は正午に記録される。\n\ud800x" * 50))

    assert found == pytest.approx(3 / 16)


def test_runs_when_words_stand_in_the_url_or_are_numbers_then_they_are_left_out() -> None:
    runs = find_runs(["The page /Foo/bar of 21 November 2026, 10:30 is no. 12345 at 2026-11-21"], f"{SITE}/foo/bar")

    assert runs == find_runs(["The page of November is no at"], f"{SITE}/")


def test_simhash_when_texts_differ_in_little_then_in_few_bits() -> None:
    text = [random.Random(number).randrange(-(2**63), 2**63) for number in range(500)]
    other = [random.Random(number).randrange(-(2**63), 2**63) for number in range(500, 1000)]
    near = simhash(text) ^ simhash([*text[10:], *other[:10]])
    far = simhash(text) ^ simhash(other)

    assert near.bit_count() <= NEAR_BITS
    assert 16 <= far.bit_count() <= 48
