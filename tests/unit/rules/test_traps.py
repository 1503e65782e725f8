"""Patterns: URLs alike but for numbers, ids and parameter values, and the wider ones (L8, X-T1–X-T6)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from searchcrawl.items import Link
from searchcrawl.rules.traps import (
    KnownText,
    Level,
    build_values_pattern,
    find_pattern,
    find_patterns,
    is_of_hosts,
    replace_numbers,
)

SITE = "http://a.test"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("/docs/intro.html", "/docs/intro.html"),
        ("/article/1234", "/article/{n}"),
        ("/page12.html", "/page{n}.html"),
        ("/2026/11/21", "/{n}/{n}/{n}"),
        ("/2026-11-21/x", "/{n}/x"),
        ("/v1.2.3/", "/v{n}/"),
        ("/s/8f3a9c2e/x", "/s/{n}/x"),
        ("/s/12345678/x", "/s/{n}/x"),
        ("/s/A3F9X2", "/s/{n}"),
        ("/u/123e4567-e89b-12d3-a456-426614174000", "/u/{n}"),
        ("/u/DEADBEEF-e89b-12d3-a456-426614174000", "/u/{n}"),
        ("/p;jsessionid=0AAB6C8DE415", "/p;jsessionid={n}"),
        ("/x/abcdefghijklmnopqrs7", "/x/{n}"),
        ("/deadbeef/facade", "/deadbeef/facade"),
        ("/GettingStartedWithPython", "/GettingStartedWithPython"),
        ("/stra%C3%9Fe/7", "/stra%C3%9Fe/{n}"),
        ("/", "/"),
    ],
)
def test_shape_when_a_path_has_numbers_or_ids_then_they_are_one_variable(text: str, shape: str) -> None:
    assert replace_numbers(text) == shape


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("/plain/page.html", None),
        ("/calendar/2026/11/21", "/calendar/{n}/{n}/{n}"),
        ("/month?month=3&year=2027", "/month?month&year"),
        ("/month?year=2027&month=3", "/month?month&year"),
        ("/shop?color=red&color=blue&size=3", "/shop?color&size"),
        ("/shop?f[0]=a&f[1]=b", "/shop?f[{n}]"),
        ("/x?123456", "/x?{n}"),
        ("/x?", "/x?"),
    ],
)
def test_values_pattern_when_urls_differ_in_values_then_it_is_the_same(url: str, pattern: str | None) -> None:
    assert build_values_pattern(SITE + url) == (None if pattern is None else SITE + pattern)


@pytest.mark.parametrize(
    ("url", "patterns"),
    [
        ("/", ["/**"]),
        ("/x.html", ["/*", "/**"]),
        ("/a/b/c.html", ["/a/b/*", "/a/**", "/**"]),
        ("/a/b/", ["/a/*", "/a/**", "/**"]),
        ("/s/8f3a9c2e/b", ["/s/{n}/b", "/s/{n}/*", "/s/**", "/**"]),
        ("/shop?color=red", ["/shop?color", "/shop?*", "/**"]),
        ("/shop/hats?color=red", ["/shop/hats?color", "/shop/hats?*", "/shop/**?*", "/**"]),
        ("/?q=1", ["/?q", "/?*", "/**"]),
    ],
)
def test_patterns_when_asked_then_the_narrowest_comes_first(url: str, patterns: list[str]) -> None:
    found = find_patterns(SITE + url)

    assert [text for _, text in found] == [SITE + pattern for pattern in patterns]
    assert [level for level, _ in found] == sorted(level for level, _ in found)


@pytest.mark.parametrize(
    ("origin", "shown", "above"),
    [
        ("http://h12.a.test", "http://h{n}.a.test", "http://*.a.test/**"),
        ("http://blog.a.test:8080", "http://blog.a.test:8080", "http://*.a.test:8080/**"),
        ("https://www.a.test", "https://www.a.test", None),
        ("http://a1.test", "http://a{n}.test", None),
        ("http://10.0.0.1:81", "http://10.0.0.1:81", None),
        ("http://[2001:db8::1]:81", "http://[2001:db8::1]:81", None),
    ],
)
def test_patterns_when_hosts_are_numbered_then_they_are_alike_and_addresses_are_not(
    origin: str, shown: str, above: str | None
) -> None:
    found = find_patterns(f"{origin}/x/y")

    assert found[-1].text == (above or f"{shown}/**")
    assert {pattern.text for pattern in found if pattern.level is Level.BRANCH} == {f"{shown}/x/**"}


def test_values_pattern_when_only_the_host_has_a_number_then_it_is_one() -> None:
    assert build_values_pattern("http://h12.a.test/") == "http://h{n}.a.test/"


def test_cut_when_a_narrower_pattern_is_proven_then_it_is_spared() -> None:
    cuts = {f"{SITE}/**", f"{SITE}/maze/**", f"{SITE}/good/bad/*"}
    productive = {f"{SITE}/good/**", f"{SITE}/maze/{{n}}"}

    found = {
        path: find_pattern(SITE + path, cuts, productive)
        for path in ("/maze/x/y", "/maze/7", "/good/x/y", "/good/bad/x")
    }

    assert found == {
        "/maze/x/y": f"{SITE}/maze/**",
        "/maze/7": None,
        "/good/x/y": None,
        "/good/bad/x": f"{SITE}/good/bad/*",
    }


def test_pattern_when_it_is_of_hosts_then_a_narrower_one_with_any_text_is_spared() -> None:
    host = f"{SITE}/**"

    found = [find_pattern(f"{SITE}/notes/x", {host}, (), spared) for spared in ((), {f"{SITE}/notes/*"})]

    assert found == [host, None]
    assert [is_of_hosts(text) for text in (host, "http://*.a.test/**", f"{SITE}/x/**", f"{SITE}/*")] == [
        True,
        True,
        False,
        False,
    ]


WORDS = ("the", "station", "records", "pressure", "at", "noon", "and", "keeps", "a", "copy", "of", "each", "reading",
         "before", "it", "is", "sent", "north", "with", "care")  # fmt: skip
NAVIGATION = "\n".join(" ".join(random.Random(number).choices(WORDS, k=6)) for number in range(60))
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip


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
