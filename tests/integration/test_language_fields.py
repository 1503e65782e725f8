"""What a real Solr makes of title_txt_LANG and content_txt_LANG: words in any of their forms ."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from searchcrawl.index.solr.receiver import SolrReceiver
from tests.index_documents import answer, page, put
from tests.languages import TEXTS

pytestmark = pytest.mark.solr

#: Another form of a word of the first text, where an analysis by language finds it.
FORMS = {
    "en": "mornings",
    "de": "Feiertag",
    "fr": "férié",
    "es": "bibliotecas",
    "it": "biblioteche",
    "nl": "feestdag",
    "pt": "feriado",
    "ru": "праздничный",
    "sv": "helgdag",
    "ja": "図書館",
    "zh": "节假日",
    "ko": "공휴일을",
    "fi": "Kirjasto",
}


def test_language_fields_when_a_word_has_another_form_then_it_is_found_in_the_language_of_its_page(
    solr_receiver: SolrReceiver, solr_core: str
) -> None:
    texts = [(language, TEXTS[language][0]) for language in FORMS]
    pages = [
        page(number, title=text, content=text, language=f"{language}-xx")
        for number, (language, text) in enumerate(texts)
    ]
    put(solr_receiver, *pages)

    found = {
        (language, field): answer(solr_core, f"select?df={field}_txt_{language}&q={quote(word)}&fl=language")[
            "response"
        ]["docs"]
        for language, word in FORMS.items()
        for field in ("title", "content")
    }

    assert {key: [each["language"] for each in docs] for key, docs in found.items()} == {
        key: [f"{key[0]}-xx"] for key in found
    }


@pytest.mark.parametrize(
    ("language", "word"), [("ja", "関西国際空港"), ("ja", "空港"), ("zh", "国際空"), ("de", "see-hafen")]
)
def test_language_fields_when_analysis_makes_several_words_of_one_then_all_are_looked_for(
    solr_receiver: SolrReceiver, solr_core: str, language: str, word: str
) -> None:
    put(solr_receiver, page(1, content="関西国際空港に行きました。 See-Hafen", language=language))

    found = answer(solr_core, f"select?df=content_txt_{language}&q={quote(word)}")["response"]["numFound"]

    assert found == 1
