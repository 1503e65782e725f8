"""Which language a text is in: by sentences of 24 languages (C9)."""

from __future__ import annotations

import pytest

from searchcrawl.documents.language import (
    choose_declared,
    detect_language,
    select_usual,
    weigh_usual,
)
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

    assert wrong == {}


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


LISTING = """static int cmp(const void *a, const void *b) { return *(int *)a - *(int *)b; }
qsort(v, n, sizeof *v, cmp); for (i = 0; i < n; ++i) printf("%d\\n", v[i]); #define MAX(x, y) ((x) > (y) ? (x) : (y))
struct khm { uint8_t x0, x1; }; khm k[] = {{0x17, 0x80}, {0x17, 0x81}}; mov eax, ebx; jne .L3; retq
"""


@pytest.mark.parametrize(
    ("text", "declared", "expected"),
    [
        ("The library opens at nine in the morning.", ("de",), "de"),
        ("Библиотека открывается в девять часов утра", ("en-us", "ru-ru"), "ru-ru"),
        ("図書館は午前九時に開きます。", ("en",), ""),
        ("図書館は午前九時に開きます。" + LISTING, ("ja",), "ja"),
        ("print(open('データ.txt').read())  # 日本", ("en",), "en"),
        ("Библиотека открывается в девять часов утра", ("tlh",), "tlh"),
        ("Anything", (), ""),
    ],
)
def test_language_when_it_is_declared_then_it_counts_unless_its_script_is_another(
    text: str, declared: tuple[str, ...], expected: str
) -> None:
    assert choose_declared(text, declared) == expected


ENGLISH = "The library opens at nine in the morning and closes at six, except on public holidays. "


@pytest.mark.parametrize(
    ("text", "usual", "expected"),
    [
        # Listings have no language of their own.
        (LISTING, "de", "de"),
        ("x = 1; y = 2; z = x + y" * 3, "en", "en"),
        ("x = 1; y = 2; z = x + y", "", ""),
        ("4711", "fi", "fi"),
        # A few words in the language of menus are no page in it …
        ("Home About us Products Contact", "de", "de"),
        ("Home About us Products Contact", "", "en"),
        # … unlike a text.
        (ENGLISH * 3, "de", "en"),
        (ENGLISH * 3, "en", "en"),
        # No host makes a language of a script that it does not have.
        ("Библиотека открывается в девять часов утра", "en", "ru"),
        ("Библиотека открывается", "en", ""),
        ("図書館は午前九時に開きます。", "zh", "ja"),
        ("Библиотека открывается в девять часов утра. " * 8, "xx", "ru"),
    ],
)
def test_language_when_a_host_has_a_usual_one_then_it_counts_where_the_text_is_not_sure(
    text: str, usual: str, expected: str
) -> None:
    assert weigh_usual(text, detect_language(text), usual) == expected


def test_language_when_a_text_is_clearly_of_another_than_the_usual_one_then_it_keeps_its_own() -> None:
    # Spanish on Portuguese hosts, and all others: three sentences are enough.
    wrong = [
        (language, usual)
        for language, texts in TEXTS.items()
        for usual in TEXTS
        if weigh_usual("\n".join(texts), language, usual) != language
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("counts", "before", "expected"),
    [
        ({"en": 6, "de": 4}, "", "en"),
        ({"en": 59, "de": 41}, "", ""),
        ({"en": 5, "de": 5}, "en", "en"),
        ({"en": 49, "de": 51}, "en", ""),
        ({"en": 40, "de": 60}, "en", "de"),
        ({"en": 9}, "", ""),
        ({"en": 9}, "en", ""),
        ({}, "", ""),
    ],
)
def test_usual_language_when_most_documents_have_it_then_stays_down_to_half_of_them(
    counts: dict[str, int], before: str, expected: str
) -> None:
    assert select_usual(counts, before=before, least=10) == expected


@pytest.mark.parametrize("character", ["\x00", "\x0b", "\x7f", "\x85", "\ufffe", "\udc80", "\U000f1ca2", "\U0010ffff"])
def test_language_when_the_text_has_characters_that_no_text_has_then_its_words_tell_it(character: str) -> None:
    text = f"Die Bibliothek öffnet um neun Uhr{character}und schließt um achtzehn Uhr, außer an Feiertagen."

    assert detect_language(text) == "de"
