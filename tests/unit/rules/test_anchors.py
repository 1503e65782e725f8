"""Which texts of links are kept: few, such as say something, whatever their order (C8)."""

from __future__ import annotations

import random

from searchcrawl.rules.anchors import MOST_TEXTS, Linked, WordCounts, select_texts

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
