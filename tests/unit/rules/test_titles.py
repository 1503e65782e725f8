"""Titles that pages share get a name of the page, the first that tells, in whatever order pages come (C8)."""

from __future__ import annotations

import random

import pytest

from searchcrawl.rules.titles import (
    NamedPage,
    choose_title,
    count_titles,
    key_of_own,
    pack_keys,
    select_shared,
    unpack_keys,
)
from tests.growth import assert_linear

SITE = "http://example.com/"


def page_of(url: str, title: str, *headings: str, naming: int | None = None, line: str = "") -> NamedPage:
    return NamedPage(SITE + url, title, headings, len(headings) if naming is None else naming, line)


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
