"""Which blocks stand on most pages of a host, and what is left of a text without them (C8)."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from searchcrawl.rules import site_blocks
from searchcrawl.rules.site_blocks import count_blocks, cut_blocks, pack_blocks, select_blocks, unpack_blocks

LONG = "Subscribe to the letter of the house, it is free"


def blocks_of(*texts: str, before: Collection[int] = ()) -> frozenset[int]:
    counts, pages = count_blocks(texts)
    return select_blocks(counts, pages, before=before)


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
    assert blocks_of(*["Home"] * (site_blocks.FEWEST_PAGES - 1)) == frozenset()
    assert len(blocks_of(*["Home"] * site_blocks.FEWEST_PAGES)) == 1


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
    monkeypatch.setattr(site_blocks, "_MOST_BLOCKS", 3)
    pages = ["\n".join(f"line {line}" for line in range(number, 30)) for number in range(20)]

    assert (
        blocks_of(*pages)
        == blocks_of(*pages[::-1])
        == blocks_of(*("\n".join(page.split("\n")[::-1]) for page in pages))
    )
    assert len(blocks_of(*pages)) == 3
    assert unpack_blocks(pack_blocks(blocks_of(*pages))) == blocks_of(*pages)
