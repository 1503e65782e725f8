"""Which language a text is in: by sentences of 24 languages (D5)."""

from __future__ import annotations

import pytest

from searchcrawl.documents.fields_pipeline import detect_language
from tests.languages import TEXTS


def test_language_when_there_is_one_sentence_then_nine_of_ten_are_right() -> None:
    right = [language for language, texts in TEXTS.items() for text in texts if detect_language(text) == language]

    assert len(right) >= 0.9 * sum(map(len, TEXTS.values()))
    # Each is known at least once.
    assert len(set(right)) >= len(TEXTS) - 1


def test_language_when_there_is_a_page_of_text_then_all_are_right() -> None:
    wrong = {
        language: detected
        for language, texts in TEXTS.items()
        if (detected := detect_language("\n".join(texts) * 5)) != language
    }

    # Danish and Norwegian differ in a few letters.
    assert wrong.keys() <= {"da"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("Page 3", ""),
        ("12 345 678 " * 200, None),
        ("東京", ""),
        ("東京都に住んでいます。", "ja"),
        ("カタカナデカイタページ", "ja"),
        ("Der Vertrag mit 東京電力 wurde von beiden Seiten unterschrieben und gilt ab Montag.", "de"),
        ("\udcff" * 400 + "\x00", None),
    ],
)
def test_language_when_a_text_is_odd_then_it_is_not_guessed_wildly(text: str, expected: str | None) -> None:
    detected = detect_language(text)

    assert detected.isascii()
    assert len(detected) <= 8
    assert expected is None or detected == expected
