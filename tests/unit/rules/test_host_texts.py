"""Titles that pages share get a name of the page, the first that tells, in whatever order pages come (C8)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from itertools import chain

import pytest

from searchcrawl.rules import host_texts
from searchcrawl.rules.host_texts import (
    MOST_TEXTS,
    Linked,
    NamedPage,
    WordCounts,
    choose_title,
    cut_blocks,
    key_of_own,
    list_blocks,
    list_title_keys,
    pack_keys,
    select_blocks,
    select_shared,
    select_texts,
    unpack_keys,
)
from tests.growth import assert_linear

SITE = "http://example.com/"


def page_of(url: str, title: str, *headings: str, naming: int | None = None, line: str = "") -> NamedPage:
    return NamedPage(SITE + url, title, headings, len(headings) if naming is None else naming, line)


def count_titles(pages: list[NamedPage]) -> Counter[int]:
    return Counter(chain.from_iterable(map(list_title_keys, pages)))


def tell(pages: list[NamedPage]) -> list[str]:
    shared = select_shared(count_titles(pages), before=())
    return [choose_title(page, shared) for page in pages]


def test_titles_when_five_pages_share_one_then_each_has_its_heading_and_four_keep_theirs() -> None:
    names = ["std::list", "std::map< _Key >", "std::set", "std::pair", "std::vector"]
    members = [page_of(f"{number}", "lib: Member List", f"{name} Member List") for number, name in enumerate(names)]
    others = [page_of(f"o{number}", "Overview", f"Part {number}") for number in range(4)]

    assert tell(members + others) == [f"lib: Member List · {name}" for name in names] + ["Overview"] * 4


@pytest.mark.parametrize(
    ("headings", "line", "url", "told"),
    [
        (("Manual", "Overview", "Kettles"), "", "x", "Manual of Tea · Kettles"),
        (("manual OF tea", "- Tea -", "1", "Lids"), "", "x", "Manual of Tea · Lids"),
        ((), "All about kettles", "x", "Manual of Tea · All about kettles"),
        ((), "Overview", "care/lime_scale.html", "Manual of Tea · lime_scale"),
        ((), "", "caf%C3%A9/index.html", "Manual of Tea · café"),
        ((), "", "care/0401.html", "Manual of Tea · care/0401"),
        ((), "1 2 3", "view?page=12", "Manual of Tea · view?page=12"),
        ((), "", "", "Manual of Tea"),
    ],
)
def test_titles_when_what_names_a_page_says_nothing_new_or_is_shared_then_the_next_does(
    headings: tuple[str, ...], line: str, url: str, told: str
) -> None:
    others = [page_of(f"{number}", "Manual of Tea", "Overview", line="Overview") for number in range(5)]

    assert tell([page_of(url, "Manual of Tea", *headings, line=line), *others])[0] == told


def test_titles_when_definitions_name_a_page_then_they_come_before_its_url() -> None:
    pages = [page_of(f"file{number}", "API", f"tea.Kettle{number}", "boil", naming=0) for number in range(5)]

    assert tell(pages) == [f"API · tea.Kettle{number}" for number in range(5)]


def test_titles_when_a_page_has_none_then_it_is_its_heading() -> None:
    assert tell([page_of("a", "", "Kettles")]) == ["Kettles"]
    assert tell([page_of("kettle", "", line="a" * 200)]) == ["kettle"]
    assert tell([page_of("", "")]) == [""]


def test_titles_when_they_are_shared_by_fewer_than_before_then_they_stay_shared_down_to_three() -> None:
    pages = [page_of(f"{number}", "Tea", f"Kettle {number}") for number in range(5)]
    shared = select_shared(count_titles(pages), before=())

    assert key_of_own("Tea") in shared
    assert select_shared(count_titles(pages[:3]), before=shared) == shared
    assert select_shared(count_titles(pages[:2]), before=shared) == frozenset()
    assert select_shared(count_titles(pages[:4]), before=()) == frozenset()
    assert unpack_keys(pack_keys(shared)) == shared


def test_titles_when_pages_come_in_another_order_then_they_have_the_same_ones() -> None:
    chance = random.Random(3)
    pages = [
        page_of(f"{number}", f"T{chance.randrange(4)}", *(f"H{chance.randrange(9)}" for _ in range(3)))
        for number in range(60)
    ]
    told = dict(zip(pages, tell(pages), strict=True))

    shuffled = random.Random(4).sample(pages, len(pages))
    assert dict(zip(shuffled, tell(shuffled), strict=True)) == told


def test_titles_when_they_are_long_then_those_with_the_same_beginning_count_as_one() -> None:
    pages = [page_of(f"{number}", f"{'tea ' * 200}{number}", f"Kettle {number} lid") for number in range(5)]

    assert all(title.endswith(f" · Kettle {number} lid") for number, title in enumerate(tell(pages)))


@pytest.mark.parametrize("text", ["a ", "-", "/", "%C3", "?x", "\u0301"])
def test_r13_titles_when_what_names_a_page_is_long_then_it_takes_linear_time(text: str) -> None:
    assert_linear(
        lambda long: tell([page_of(long, long, long, long, line=long)]),
        lambda count: text * count,
        smallest=2_000,
        largest=256_000,
    )


LONG = "Subscribe to the letter of the house, it is free"


def blocks_of(*texts: str, before: Collection[int] = ()) -> frozenset[int]:
    return select_blocks(Counter(chain.from_iterable(map(list_blocks, texts))), len(texts), before=before)


def pages_with(line: str, *, on: int, of: int = 20) -> list[str]:
    return [f"page {number}\n{line}\n{line}" if number < on else f"page {number}" for number in range(of)]


@pytest.mark.parametrize(
    ("on", "known", "expected"), [(12, False, 1), (11, False, 0), (11, True, 1), (8, True, 1), (7, True, 0)]
)
def test_c8_blocks_when_they_stand_on_most_pages_then_stay_until_they_stand_on_few(
    on: int, known: bool, expected: int
) -> None:
    before = blocks_of(*pages_with("Home", on=20)) if known else frozenset[int]()

    assert len(blocks_of(*pages_with("Home", on=on), before=before)) == expected


def test_c8_blocks_when_there_are_few_pages_then_are_none() -> None:
    assert blocks_of(*["Home"] * (host_texts.FEWEST_PAGES - 1)) == frozenset()
    assert len(blocks_of(*["Home"] * host_texts.FEWEST_PAGES)) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Home\nAbout\nPage\nEnd\nHome", "Page\nEnd"),
        ("Page\nHome\nEnd", "Page\nHome\nEnd"),
        (f"Page\n{LONG}\nEnd", "Page\nEnd"),
        (f"{LONG}\nHome", f"{LONG}\nHome"),
        ("Page", "Page"),
        ("", ""),
    ],
)
def test_c8_text_when_blocks_are_cut_then_short_ones_go_at_its_ends_alone(text: str, expected: str) -> None:
    blocks = blocks_of(*[f"Home\nAbout\n{LONG}\n{number}" for number in range(20)])

    assert cut_blocks(text, blocks) == expected
    assert cut_blocks(text, frozenset()) == text


def test_c8_blocks_when_they_are_counted_then_the_order_of_pages_and_lines_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_texts, "_MOST_BLOCKS", 3)
    pages = ["\n".join(f"line {line}" for line in range(number, 30)) for number in range(20)]

    assert (
        blocks_of(*pages)
        == blocks_of(*pages[::-1])
        == blocks_of(*("\n".join(page.split("\n")[::-1]) for page in pages))
    )
    assert len(blocks_of(*pages)) == 3
    assert unpack_keys(pack_keys(blocks_of(*pages))) == blocks_of(*pages)


HOST = 1


def linked(text: str, pages: int = 1, host: int = HOST) -> Linked:
    return Linked(text.casefold(), text, host, pages)


def select(*links: Linked, title: str = "", counts: WordCounts | None = None, pages: int = 5) -> list[str]:
    return select_texts(links, title=title, counts=counts or WordCounts(), pages_of_host={HOST: pages, 2: 5})


def test_texts_when_the_title_has_all_of_their_words_then_are_left_out() -> None:
    found = select(linked("The KETTLE"), linked("Fill the kettle"), title="Kettle: the manual")

    assert found == ["Fill the kettle"]


def test_texts_when_they_differ_in_case_then_are_one_for_which_all_pages_count() -> None:
    many = [linked(f"number {number}", 2) for number in range(MOST_TEXTS)]

    found = select(linked("Filling it"), linked("filling it"), linked("FILLING IT"), *many)

    assert len(found) == MOST_TEXTS
    assert "FILLING IT" in found
    assert "number 9" not in found


def test_texts_when_most_pages_of_a_host_have_them_then_are_menus_there_alone() -> None:
    of_two = [linked("Imprint", 10), linked("imprint", 1, host=2)]

    assert select(linked("Imprint", 10), pages=20) == []
    assert select(linked("Imprint", 9), pages=20) == ["Imprint"]
    # Of a few pages nothing can be said.
    assert select(linked("Imprint", 9), pages=9) == ["Imprint"]
    assert select(*of_two, pages=20) == ["imprint"]


def test_texts_when_their_words_lead_to_many_documents_then_say_nothing() -> None:
    counts = WordCounts()
    for number in range(1_000):
        counts.add(["next section" if number < 6 else "x", f"chapter {number}"])

    found = select(linked("Next section"), linked("chapter 3"), linked("chapter"), counts=counts)

    assert found == ["chapter 3"]


def test_texts_when_they_come_in_another_order_then_are_the_same() -> None:
    links = [linked(f"{case}ettle {number}", number % 3 + 1) for number in range(40) for case in "kK"]
    expected = select(*links)

    for seed in range(20):
        assert select(*random.Random(seed).sample(links, len(links))) == expected
    assert len(expected) == MOST_TEXTS
