"""One letter in several forms, in queries and in texts, on both indexes: what a person types finds what a person sees."""

from __future__ import annotations

import unicodedata

import pytest

from searchcrawl.index.receiver import HIT_END, HIT_START, SearchIndex, SearchQuery
from tests.index_documents import listed, page, put

pytestmark = pytest.mark.solr

LOOSE = unicodedata.normalize("NFD", "Über das Café in Hội An und データベース")
#: The text of each page, with queries that find it and no other page.
PAGES = {
    LOOSE: [
        "café",
        "cafe",
        unicodedata.normalize("NFD", "Café"),
        "Hội",
        unicodedata.normalize("NFD", "Hộ*"),
        "データベース",
    ],
    "Die Donau\u00addampf\u00adschiff\u00adfahrt ist\u2060alt": [
        "Donaudampfschifffahrt",
        "donau\u00addampf*",
        "istalt",
    ],
    "قرأت الكتاب، ثم كتبت؟ نعم۔": ["الكتاب", '"الكتاب ثم"', "كتبت", "نعم"],
    "ﺳﻼم ﻋﻠﻴﻜﻢ": ["سلام", "ﻋﻠﻴﻜﻢ", "عليكم"],
    "Zebra™ und ﬁnch, Emu℠ № 7": ["Zebra", "finch", "emu zebra"],
    "İstanbul ve DİYARBAKIR": ["İstanbul", "istanbul", "DİYARBAKIR", "diyarbakır", "İstanb*"],
    "I met Stan Bul": ['"Stan Bul"'],
    "Ｆｕｌｌ ｗｉｄｔｈ": ["Ｆｕｌｌ", "title：Ｗｉｄｔｈ", "ful＊ widt＊", "fu\x00ll", "width\x01\x1f"],
    "यह हिन्दी है। दिल्ली।": ["है", "दिल्ली"],
    "Η Αθήνα, ΤΑΞΊΔΙ στην Ελλάς του Ἀριστοτέλους": [
        *("ΑΘΗΝΑ", "αθηνα", "Αθήνα", unicodedata.normalize("NFD", "Αθήνα"), "Αθήν*", "ΑΘΗΝ*", "ταξίδι", "ΤΑΞΙΔΙ"),
        *("ΕΛΛΑΣ", "ελλάς", "ΕΛΛΆΣ", '"Η ΑΘΗΝΑ"', "Αριστοτέλους"),
    ],
    "ΑΡΧΑΙΑ ΟΛΥΜΠΙΑ": ["Αρχαία", "Ολυμπία", "ολυμπί*"],
    "كِتَابٌ جَمِيلٌ في مـــدرسة": ["كتاب", "كِتَابٌ", "مدرسة", "مـدرسة", "كِتَا*", "كتا*", '"كتاب جميل"'],
    "مكتبة كبيرة": ["مَكْتَبَةٌ", "مكـــتبة", '"مَكتبة كَبيرة"'],
    "שָׁלוֹם עוֹלָם": ["שלום", "שָׁלוֹם", "שלו*", "שָׁל*", '"שלום עולם"'],
    "ספר חדש": ["סֵפֶר", '"סֵפֶר חָדָשׁ"'],
    "ภาษาไทยเป็นภาษาที่มีวรรณยุกต์ ใส่เสื้อแล้ว": ["ไทย", "ภาษา", "วรรณยุกต์", "เสื้อ", "ภาษาไทย", '"ไทยเป็น"', "ไท*"],
}


def test_search_when_letters_have_several_forms_then_each_finds_the_others(index: SearchIndex) -> None:
    documents = [page(number, title=text, content=text, language="en") for number, text in enumerate(PAGES)]
    put(index, *documents)

    assert {words: listed(index, words) for queries in PAGES.values() for words in queries} == {
        words: [document.id] for document, queries in zip(documents, PAGES.values(), strict=True) for words in queries
    }


def test_search_when_a_tone_mark_is_another_then_it_is_another_word(index: SearchIndex) -> None:
    put(index, page(1, title="A title", content="ใส่เสื้อแล้ว"))

    assert index.search(SearchQuery(words="เสือ")).total == 0


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("Στην Αθήνα και ταξίδι", "ΑΘΗΝΑ ΤΑΞΙΔΙ", "Στην [Αθήνα] και [ταξίδι]"),
        ("قرأت كِتَابًا جميلا و كِتَاب آخر", "كتاب", "قرأت كِتَابًا جميلا و [كِتَاب] آخر"),
        ("אמר שָׁלוֹם לכולם", "שלום", "אמר [שָׁלוֹם] לכולם"),
        ("ผมพูดภาษาไทยได้", "ภาษา", "ผมพูด[ภาษา]ไทยได้"),
        ("ใส่เสื้อแล้ว", "เสื้อ", "ใส่[เสื้อ]แล้ว"),
    ],
)
def test_snippet_when_a_word_has_marks_then_it_is_marked_whole(
    index: SearchIndex, text: str, words: str, marked: str
) -> None:
    put(index, page(1, title="A title", content=text))

    (hit,) = index.search(SearchQuery(words=words)).hits

    assert hit.snippet.replace(HIT_START, "[").replace(HIT_END, "]").replace("][", "") == marked


def test_snippet_when_accents_are_loose_or_hyphens_soft_then_whole_words_are_marked(index: SearchIndex) -> None:
    text = f"{LOOSE}. A soft hy\u00adphen."
    put(index, page(1, title="A title", content=text))

    (hit,) = index.search(SearchQuery(words="café hyphen")).hits

    assert hit.snippet.replace(HIT_START, "[").replace(HIT_END, "]") == (
        "Über das [Café] in Hội An und データベース. A soft [hyphen]."
    )
