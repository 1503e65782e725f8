"""Near copies: texts that differ in a few words have nearly the same signature, and different texts do not (F6)."""

from __future__ import annotations

import random

import pytest

from searchcrawl.rules import near_copies
from searchcrawl.rules.near_copies import NEAR_PLACES, NearGroups, count_equal_places, sign

WORDS = ("the", "station", "records", "pressure", "at", "noon", "and", "keeps", "a", "copy", "of", "each", "reading",
         "before", "it", "is", "sent", "north", "with", "care", "harbour", "lamp", "river", "over")  # fmt: skip
#: Letters of languages that are not written in Latin ones.
LETTERS = {
    "ru": "абвгдежзиклмнопрстуфхцчшыьэюя   ",
    "el": "αβγδεζηθικλμνοπρστυφχψω   ",
    "ar": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي   ",
    "ja": "日本語文章検索機能説明書同様内容確認結果比較方法のはがをにで",
    "ko": "가나다라마바사아자차카타파하이의을를은는   ",
}


def words(seed: int, number: int = 400) -> list[str]:
    return random.Random(seed).choices([word + end for word in WORDS for end in ("", "s", "er", "ing")], k=number)


def edited(text: list[str], seed: int, changes: int) -> list[str]:
    """The text with so many words of it replaced, one after the other at a place of its own."""
    chance, copy = random.Random(seed), list(text)
    for at in chance.sample(range(len(copy)), changes):
        copy[at] = f"edited{chance.randrange(10**6)}"
    return copy


def are_near(one: str, other: str) -> bool:
    """What groups are to be made of, for each pair on its own."""
    return count_equal_places(one, other) >= NEAR_PLACES


def test_signature_when_made_then_it_is_the_same_on_every_machine() -> None:
    signature = sign(" ".join(words(1)))

    assert len(signature) == 1 + 2 * near_copies.PLACES
    assert signature[:17] == "148976d91782d8c28"


@pytest.mark.parametrize(("changes", "near"), [(0, True), (2, True), (4, True), (120, False), (400, False)])
def test_texts_when_few_words_differ_then_they_are_near_and_else_they_are_not(changes: int, near: bool) -> None:
    text = words(2)
    found = [are_near(sign(" ".join(text)), sign(" ".join(edited(text, seed, changes)))) for seed in range(40)]

    assert sum(found) >= 38 if near else sum(found) == 0


@pytest.mark.parametrize("language", LETTERS)
def test_texts_when_they_are_not_latin_then_they_are_compared_as_well(language: str) -> None:
    chance = random.Random(3)
    one, other = ("".join(chance.choices(LETTERS[language], k=1500)) for _ in range(2))
    copy = one[:700] + "".join(chance.choices(LETTERS[language], k=8)) + one[708:]

    assert [are_near(sign(one), sign(text)) for text in (copy, other)] == [True, False]


def test_texts_when_letter_case_and_line_breaks_differ_then_the_first_does_not_count() -> None:
    text = words(4)

    assert sign(" ".join(text)) == sign(" ".join(text).upper())


@pytest.mark.parametrize(
    "text", ["", "word", "a reader of short words " * 4, "a reader of the same words " * 400, "\udc80" * 50]
)
def test_text_when_it_is_short_or_repeats_itself_then_it_has_no_signature_and_is_near_to_nothing(text: str) -> None:
    assert sign(text) == ""
    assert not are_near(sign(text), sign(text))
    assert [NearGroups().add(1, ""), NearGroups().add(2, "")] == [1, 2]


@pytest.mark.parametrize("signature", ["2" + "00" * 64, "1" + "zz" * 64, "1" + "00" * 63, "of another release"])
def test_signature_when_it_cannot_be_read_then_it_is_near_to_nothing(signature: str) -> None:
    groups = NearGroups()

    assert not are_near(signature, signature)
    assert [groups.add(number, signature) for number in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("seed", range(5))
def test_groups_when_texts_come_by_rank_then_each_stands_with_the_first_that_it_is_near_to(seed: int) -> None:
    chance = random.Random(seed)
    originals = [words(number) for number in range(12)]
    signatures = [
        sign(" ".join(edited(chance.choice(originals), chance.random(), chance.randrange(12)))) for _ in range(150)
    ]
    groups = NearGroups()

    found = [groups.add(number, signature) for number, signature in enumerate(signatures)]

    # Compared with every earlier one that stands for itself.
    expected: list[int] = []
    for number, signature in enumerate(signatures):
        near = (one for one in range(number) if expected[one] == one and are_near(signatures[one], signature))
        expected.append(next(near, number))
    assert found == expected
    assert 12 <= len(set(found)) < 120


def test_groups_when_thousands_look_alike_in_a_band_then_each_is_compared_with_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance, compared = random.Random(1), []
    count_equal = near_copies._count_equal
    monkeypatch.setattr(near_copies, "_count_equal", lambda *both: compared.append(1) or count_equal(*both))
    groups = NearGroups()

    for number in range(2000):
        # Equal in five of twelve bands, and near to no other.
        groups.add(number, "1" + "00" * 28 + chance.randbytes(36).hex())

    assert len(compared) <= 2000 * 12 * near_copies._MOST_IN_BAND
    assert len(compared) / 2000 < 40
