"""Marks that people leave out when they type, and what both indexes make of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from searchcrawl.index.characters import CJK, POINTS, UNACCENTED, remove_points, simplify
from searchcrawl.index.opening import find_configset
from tests.growth import assert_linear

CONFIGSET: Path = find_configset()
LAST: int = 0x40000


def characters_of(ranges: str) -> set[str]:
    """All characters of the set of a regular expression."""
    inside = re.compile(f"[{ranges}]")
    return {letter for letter in map(chr, range(LAST)) if inside.fullmatch(letter)}


def test_configset_when_it_folds_marks_then_as_the_embedded_index_does() -> None:
    lines = (CONFIGSET / "lang" / "folding.txt").read_text("utf-8").splitlines()
    read = [re.findall(r'"((?:\\u[0-9a-f]{4})*)"', line) for line in lines if not line.startswith("#")]
    folded = {
        str(pair[0]).encode().decode("unicode_escape"): pair[1].encode().decode("unicode_escape") for pair in read
    }

    assert folded == {**dict.fromkeys(characters_of(POINTS), ""), **UNACCENTED}


def test_configset_when_characters_are_words_of_their_own_then_they_are_those_of_the_embedded_index() -> None:
    (words,) = re.findall(r'ENTITY words "\[(.*?)\]', (CONFIGSET / "schema.xml").read_text("utf-8"))
    ranges = re.sub("&#38;#x([0-9A-F]+);", lambda match: chr(int(match[1], 16)), words)

    assert characters_of(ranges) == characters_of(CJK)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("ΑΘΉΝΑ Ϊ ΐ ᾄδης ὁδός", "ΑΘηΝΑ ι ι αδησ οδοσ"),
        ("الْقُرْآنُ أُمّ مـــن", "القرآن أم من"),
        ("שָׁל\ufb2aוֹם־עוֹלָם׃", "שלשום־עולם׃"),
        ("Café Ωmega é ї й", "Café Ωmega é ї й"),
    ],
)
def test_text_when_it_is_analysed_then_has_letters_without_marks(text: str, folded: str) -> None:
    assert simplify(text)[0] == folded


def test_query_when_points_are_removed_then_accents_stay() -> None:
    assert remove_points("كِتَاب Αθήνα Café") == "كتاب Αθήνα Café"


@pytest.mark.parametrize("repeated", ["ά", "كَ", "ب", "α", "น้"])
def test_r13_text_when_it_has_many_marks_then_takes_linear_time(repeated: str) -> None:
    assert_linear(simplify, lambda count: repeated * count, smallest=4_000, largest=512_000)
