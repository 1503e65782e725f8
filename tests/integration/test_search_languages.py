"""Queries in the languages of the index, in other forms than the text has, on both indexes (G1, G2)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from searchcrawl.index.receiver import HIT_END, HIT_START, SearchIndex, SearchQuery
from searchcrawl.index_fields import LANGUAGES
from searchcrawl.items import IndexedDocument
from tests.index_documents import page, put
from tests.languages import TEXTS

pytestmark = pytest.mark.solr

#: Words of queries by language: each finds the page in the language, although most stand there in another form.
FORMS = {
    "en": "opening library bridges months LIBRARIES",
    "de": "Bibliotheken Feiertag Brücken Verträge Vertrags Flüsse bibliothek Bruecken Vertraege Fluesse",
    "fr": "bibliothèques férié contrats l'heure ponts bibliotheque",
    "es": "bibliotecas contratos festivo puentes",
    "it": "biblioteche contratti giorno festivo dell'automobile",
    "pt": "bibliotecas contratos feriado pontes",
    "nl": "bibliotheken feestdag contracten dagen",
    "ru": "библиотеку праздничный договоры мосты",
    "ja": "図書館 図書館で 契約書は 署名する 祝日",
    "zh": "图书馆 节假日 图书馆开门 我们新桥",
    "ko": "도서관에서 공휴일을 계약서가 다리를 도서관",
}
#: 28 German ones.
STOP_WORDS = (
    "aber alle auch bei bin bis da damit dann das dein dem den der des die dir du ein eine einem einen einer er es"
    " euch für sie"
)
#: What the snippet of some of them marks.
MARKED = {"en bridges": "bridge", "de Verträge": "Vertrag", "de bibliothek": "Bibliothek", "fr bibliotheque": "bibliothèque",
          "ru договоры": "договор", "ja 図書館で": "図書館", "ko 도서관에서": "도서관"}  # fmt: skip


def made(number: int, language: str, title: str, content: str) -> IndexedDocument:
    return page(number, title=title, content=content, language=language)


def languages() -> list[IndexedDocument]:
    return [
        made(number, f"{language}-xx", texts[0], "\n".join(texts))
        for number, (language, texts) in enumerate(TEXTS.items())
        if language in LANGUAGES
    ]


def phrases() -> list[IndexedDocument]:
    """The sentences of G2, each labelled with every language."""
    texts = ("Oracle on demand", "oracle demand", "Oracle technology on demand")
    pairs = [(language, text) for language in LANGUAGES for text in texts]
    return [made(number, language, "", text) for number, (language, text) in enumerate(pairs)]


def find(index: SearchIndex, words: str) -> list[dict[str, Any]]:
    hits = index.search(SearchQuery(words=words, rows=100)).hits
    return [{**hit.fields, "snippet": hit.snippet} for hit in hits]


def test_search_when_a_word_has_another_form_then_the_page_in_its_language_is_found(index: SearchIndex) -> None:
    put(index, *languages())
    asked = [(language, word) for language, words in FORMS.items() for word in words.split()]

    answers = {(language, word): find(index, word) for language, word in asked}

    found = {key: {hit["language"] for hit in hits} for key, hits in answers.items()}
    assert [key for key, tags in found.items() if f"{key[0]}-xx" not in tags] == []
    # Related languages share words; a page in a language of another family has none of them.
    assert max(map(len, found.values())) <= 4
    marked = {
        f"{language} {word}": next(
            hit["snippet"].partition(HIT_START)[2].partition(HIT_END)[0]
            for hit in answers[language, word]
            if hit["language"] == f"{language}-xx"
        )
        for language, word in asked
        if f"{language} {word}" in MARKED
    }
    assert marked == MARKED


def test_search_when_all_words_are_required_then_each_may_be_found_in_another_form(index: SearchIndex) -> None:
    put(index, *languages())

    assert [hit["language"] for hit in find(index, "libraries opening on the holiday")] == ["en-xx"]
    assert [hit["language"] for hit in find(index, "der Vertrag die Brücken Feiertag")] == ["de-xx"]
    assert find(index, "libraries opening tomorrow") == []
    # A stop word of its language is not required of a page, but of those in others, and where there is nothing else.
    assert [hit["language"] for hit in find(index, "les horaires OR heures du pont au")] == ["fr-xx"]
    assert find(index, "der library") == []
    assert find(index, "der durch") == []
    # A phrase, and a word that is excluded, are meant as they are typed.
    assert find(index, '"libraries open"') == []
    assert [hit["language"] for hit in find(index, "bridge -opening")] == ["en-xx"]
    assert find(index, "bridge -opens") == []


def test_search_when_a_text_has_two_languages_then_it_is_found_in_the_forms_and_stop_words_of_both(
    index: SearchIndex,
) -> None:
    texts = "\n".join((*TEXTS["de"], *TEXTS["fr"]))
    both = page(98, content=texts, language="de-at", languages=["de-at", "fr"])
    put(index, both, made(99, "nb", "Kontrakt", "Den undertegnede kontrakten gjelder fra mandag."))

    for words in ("Brücken Feiertag", "contrats bibliothèques", "les Verträge durch"):
        assert [hit["languages"] for hit in find(index, words)] == [["de-at", "fr"]]
    assert [hit["language"] for hit in find(index, "kontrakter mandager")] == ["nb"]
    assert [hit["language"] for hit in find(index, "languages:fr")] == ["de-at"]
    counts = index.search(SearchQuery(words="*", facets=("languages",), filters=(("languages", "fr"),))).facets
    assert counts == {"languages": {"de-at": 1, "fr": 1}}


def test_search_when_a_word_stands_as_it_was_typed_then_that_document_comes_first(index: SearchIndex) -> None:
    texts = ["the barometers fell " + "and so on " * 5, "the barometer fell " + "and so on " * 5]
    put(index, *(made(number, "en", "", text) for number, text in enumerate(texts)))

    for word, first in (("barometer", "barometer fell"), ("barometers", "barometers fell")):
        hits = find(index, word)
        assert len(hits) == 2
        assert first in hits[0]["snippet"].replace(HIT_START, "").replace(HIT_END, "")


def test_search_when_a_capital_i_has_a_dot_then_it_is_the_letter_that_is_typed(index: SearchIndex) -> None:
    documents = [made(1, "tr", "İstanbul", "İSTANBUL'da bir köprü"), made(2, "", "Isparta", "ısparta yolu")]
    put(index, *documents)

    for words in ("istanbul", "İstanbul", "ISTANBUL"):
        assert [hit["title"] for hit in find(index, words)] == ["İstanbul"]
    assert [hit["title"] for hit in find(index, "isparta")] == ["Isparta"]


def test_search_when_words_follow_each_other_as_they_were_typed_then_that_document_comes_first(
    index: SearchIndex,
) -> None:
    texts = ["fox " * 3 + "brown " * 3 + "quick", "a lot of other words and the quick brown fox " + "and so on " * 9]
    put(index, *(made(number, "en", "", text) for number, text in enumerate(texts)))

    assert [hit["url"].rpartition("/")[2] for hit in find(index, "quick brown fox")] == ["1", "0"]
    # Stop words alone are no sequence, and nothing is found.
    assert find(index, "the on of") == []


#: In a short document whose language is mistaken.
OF_PHRASES: Final[dict[str, set[int]]] = {
    '"oracle on demand"': {0},
    '"oracle demand"': {1},
    '"oracle on on demand"': {2},
    "on": set(),
    "on the": set(),
    "oracle on demand": {0, 1, 2},
    "oracle -technology": {0, 1},
    "technology on": {2},
}


def test_g2_search_when_the_language_of_short_documents_is_mistaken_then_stop_words_hold_their_places(
    index: SearchIndex,
) -> None:
    put(index, *phrases())

    found = {words: {int(hit["url"].rpartition("/")[2]) for hit in find(index, words)} for words in OF_PHRASES}

    assert found == {
        words: {number for number in range(3 * len(LANGUAGES)) if number % 3 in expected}
        for words, expected in OF_PHRASES.items()
    }


def test_search_when_there_are_as_many_words_and_languages_as_may_be_then_it_answers(index: SearchIndex) -> None:
    put(index, *languages(), made(99, "en", "", " ".join(f"word{number}" for number in range(128))))

    assert len(find(index, " ".join(f"word{number}" for number in range(200)))) == 1
    some = " ".join(f"word{number}" for number in range(98))
    assert len(find(index, f"{some} {STOP_WORDS}")) == 0
    assert len(find(index, f"{STOP_WORDS} Vertrag Brücken Feiertag")) == 1
    assert len(find(index, " ".join(f"word{number}.word{number + 1}*" for number in range(200)))) == 1
    assert len(find(index, "word1." * 400 + "word*")) == 0
    assert all(len(find(index, word * 270)) <= 1 for word in ("图", "図書館", "カ", "도서관", "Donau", "a"))
    assert [hit["language"] for hit in find(index, "图书馆 OR " + "图" * 270)] == ["zh-xx"]


def test_search_when_links_name_a_document_then_it_is_found_by_them_behind_titles(index: SearchIndex) -> None:
    texts = {"Kettle": ["tea maker", "Brühkanne"], "Teapot": [], "Cup": ["x" * 40_000, "for tea"]}
    documents = [
        page(
            number,
            anchors=anchors,
            title=title,
            content=f"{title} of the house, beside the brewer. {title}",
            language="en",
        )
        for number, (title, anchors) in enumerate(texts.items())
    ]
    brewer = made(3, "en", "Brewer", "It says nothing of others, and is as long as the text of the pages.")
    put(index, *documents, brewer)

    def titles(words: str) -> list[str]:
        return [hit["title"] for hit in find(index, words)]

    # Words of one document may stand in several fields, and the words of a phrase in one text.
    assert titles("maker") == titles("kettle maker") == titles('"tea maker"') == titles("mak*") == ["Kettle"]
    assert titles("brühkanne") == ["Kettle"]
    assert titles('"maker brühkanne"') == []
    assert titles("brewer")[0] == "Brewer"
    assert sorted(titles("tea")) == ["Cup", "Kettle"]
    assert find(index, "maker")[0]["anchor"] == ["tea maker", "Brühkanne"]
    # Asked for by its name: the word in no other field.
    assert titles("anchor:maker") == titles('anchor:"tea maker"') == titles("anchor:mak*") == ["Kettle"]
    assert titles("anchor:house") == []
