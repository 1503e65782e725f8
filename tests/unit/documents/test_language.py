"""Which language a text is in: by sentences of 24 languages (C9)."""

from __future__ import annotations

import itertools

import pytest

from searchcrawl.documents.language import judge_languages, select_usual, weigh_usual
from searchcrawl.items import Guess
from tests.languages import TEXTS


def test_language_when_there_is_one_sentence_then_nine_of_ten_are_right() -> None:
    right = [language for language, texts in TEXTS.items() for text in texts if judge_languages(text).main == language]

    assert len(right) >= 0.9 * sum(map(len, TEXTS.values()))
    # Each is known at least once.
    assert len(set(right)) >= len(TEXTS) - 1


def test_language_when_there_is_a_page_of_text_then_all_are_right() -> None:
    wrong = {
        language: detected
        for language, texts in TEXTS.items()
        if (detected := judge_languages("\n".join(texts * 5)).main) != language
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
    detected = judge_languages(text).main

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
        ("図書館は午前九時に開きます。", ("en",), "ja"),
        ("図書館は午前九時に開きます。" + LISTING, ("ja",), "ja"),
        ("print(open('データ.txt').read())  # 日本", ("en",), "en"),
        ("Библиотека открывается в девять часов утра", ("tlh",), "tlh"),
        ("The library opens at nine in the morning.", ("ru",), "en"),
        ("The library opens at nine in the morning, библиотека", ("ru",), "ru"),
        ("Библиотека открывается в девять часов утра", ("zxx", "und"), "ru"),
        ("Anything", (), ""),
    ],
)
def test_language_when_it_is_declared_then_it_counts_unless_its_script_is_another(
    text: str, declared: tuple[str, ...], expected: str
) -> None:
    assert judge_languages(text, declared).main == expected


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
    assert weigh_usual(text, judge_languages(text), usual) == tuple(filter(None, (expected,)))


def test_language_when_a_text_is_clearly_of_another_than_the_usual_one_then_it_keeps_its_own() -> None:
    # Spanish on Portuguese hosts, and all others: three sentences are enough.
    wrong = [
        (language, usual)
        for language, texts in TEXTS.items()
        for usual in TEXTS
        if weigh_usual(text := "\n".join(texts), judge_languages(text), usual) != (language,)
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

    assert judge_languages(text).main == "de"


def _write(language: str, times: int = 2) -> str:
    return "\n".join(TEXTS[language] * times)


#: Half of a page in each of them; no two are much alike.
PAIRS = [
    (first, second)
    for first, second in itertools.permutations(("en", "de", "fr", "it", "pl", "tr", "ru", "el", "ja", "ko", "th"), 2)
]


def test_languages_when_a_text_has_two_then_both_are_found_and_no_other() -> None:
    wrong = {
        (first, second): found
        for first, second in PAIRS
        if {*(found := judge_languages(f"{_write(first)}\n{_write(second)}").languages)} != {first, second}
    }

    assert wrong == {}


def test_languages_when_one_of_two_is_declared_then_it_is_the_main_one() -> None:
    wrong = {
        (first, second): found
        for first, second in PAIRS
        if (found := judge_languages(f"{_write(first)}\n{_write(second)}", [second]).languages) != (second, first)
    }

    assert wrong == {}


def test_languages_when_a_text_is_clearly_of_another_than_the_declared_one_then_that_is_its_language() -> None:
    alike = [{"sv", "da"}, {"es", "pt"}, {"ru", "uk"}]
    wrong = {
        (language, declared): found
        for language in TEXTS
        for declared in TEXTS
        if language != declared and {language, declared} not in alike
        if (found := judge_languages(_write(language), [declared])) != ((language,), Guess.TEXT)
    }

    assert wrong == {}


def test_languages_when_it_is_declared_rightly_then_it_stays_as_it_was_declared() -> None:
    told = {language: judge_languages(_write(language), [f"{language}-xx"]) for language in TEXTS}

    assert told == {language: ((f"{language}-xx",), None) for language in TEXTS}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Names that no statistics tell.
        ("Иванов Петров Сидоров Кузнецов", "ru"),
        ("Παπαδόπουλος Γεωργίου Δημητρίου", "el"),
        ("ישראלי כהן לוי מזרחי פרץ ביטון", "he"),
        ("สมชาย สมหญิง ประเสริฐ วิชัย", "th"),
        ("김철수 이영희 박민수 최지우", "ko"),
        ("Հովհաննիսյան Գրիգորյան Սարգսյան", "hy"),
        ("ბერიძე კაპანაძე გელაშვილი მაისურაძე", "ka"),
        ("शर्मा वर्मा गुप्ता सिंह कुमार यादव", "hi"),
        # Latin letters alone say nothing.
        ("AB1 XK-200 QRT ZZP BLM KRT VVX WQP LLM GHT", ""),
    ],
)
def test_languages_when_the_words_tell_none_then_the_script_does(text: str, expected: str) -> None:
    assert judge_languages(text).main == expected


def test_languages_when_the_script_alone_tells_one_then_the_host_says_which_of_it() -> None:
    told = judge_languages("Иванов Петров Сидоров Кузнецов")

    assert weigh_usual("", told, "bg") == ("bg",)
    assert weigh_usual("", told, "de") == ("ru",)


def test_languages_when_another_script_begins_after_names_and_code_then_it_is_found_all_the_same() -> None:
    listing = LISTING * 3

    assert judge_languages(listing + _write("ru", 6)).main == "ru"
    assert judge_languages(listing + _write("ja", 6), ["en"]).main == "ja"


def test_languages_when_a_manual_has_listings_and_names_then_only_its_prose_counts() -> None:
    listing = " ".join(LISTING.split())
    page = "\n".join(f"{line}\n{listing}\nSHUTDOWN_TIMEOUT\nHTTP Keep-Alive" for line in TEXTS["de"] * 3)

    assert judge_languages(page).languages == ("de",)
    assert judge_languages(page, ["en"]).languages == ("de",)


def test_languages_when_a_part_declares_its_own_then_it_is_one_of_them_unless_it_is_in_another() -> None:
    part = _write("fr", 1)

    assert judge_languages(_write("de"), ["de"], [("fr", part)]).languages == ("de", "fr")
    assert judge_languages(_write("de"), ["de"], [("it", part)]).languages == ("de",)
    assert judge_languages(_write("de"), ["de-at"], [("de", _write("de"))]).languages == ("de-at",)


def test_languages_when_a_text_has_two_then_both_stay_whatever_its_host_has() -> None:
    text = f"{_write('en')}\n{_write('de')}"
    told = judge_languages(text)

    assert [weigh_usual(text, told, usual) for usual in ("en", "de", "fr")] == [told.languages] * 3
