"""Attributes, language and description of a page that was read (A5, A8, C9)."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from searchcrawl.documents import own_pipeline
from searchcrawl.documents.document_pipeline import NO_LANGUAGES, Languages, complete_page
from searchcrawl.items import Guess, Page
from searchcrawl.rules.attribute_values import AttributeMap, Mapped
from tests import factories

GERMAN = "Die Bibliothek öffnet um neun Uhr und schließt um achtzehn Uhr, außer an Feiertagen."


def complete(
    page: Page,
    attributes: AttributeMap | None = None,
    *,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    languages: Languages = NO_LANGUAGES,
) -> Page:
    document = replace(factories.document(), headers=headers)
    return complete_page(page, document, attributes, languages)


def mapping(*mapped: tuple[str, str, str], desc_fallback: bool = False) -> AttributeMap:
    return AttributeMap([Mapped(*each) for each in mapped], desc_fallback=desc_fallback)


def test_attributes_when_found_then_typed_fields_of_the_index() -> None:
    attributes = mapping(
        ("meta:v", "version", "string"), ("header:x-size", "size", "number"), ("jsonld:d", "issued", "date"),
        ("meta:n", "note", "text"), ("meta:m", "mimetype", "string"),
    )  # fmt: skip
    page = Page(
        language="en",
        found=(
            ("meta:v", ("2", "1")),
            ("jsonld:d", ("2024-05-06",)),
            ("meta:n", ("some words",)),
            ("meta:m", ("a/b",)),
        ),
    )

    made = complete(page, attributes, headers=((b"X-Size", b"1.5"),))

    assert made.found == ()
    assert made.attributes == (
        ("issued_dt", ("2024-05-06T00:00:00Z",)),
        ("mimetype", ("a/b",)),
        ("note_t", ("some words",)),
        ("size_l", (1.5,)),
        ("version_s", ("2", "1")),
    )


def test_attributes_when_mapped_onto_fixed_ones_then_these_are_filled() -> None:
    attributes = mapping(
        ("meta:c", "author", "string"), ("meta:t", "title", "string"), ("meta:l", "language", "string"),
        ("meta:s", "subject", "string"), ("meta:none", "description", "string"),
    )  # fmt: skip
    page = Page(
        title="own", author="own", description="own", language="en",
        found=(("meta:c", ("Ann", "Bob")), ("meta:t", ("One", "Two")), ("meta:l", ("pt_BR",)), ("meta:s", ("a", "b"))),
    )  # fmt: skip

    made = complete(page, attributes)

    assert (made.title, made.author, made.description) == ("One", "Ann, Bob", "own")
    assert (made.language, made.subject, made.attributes) == ("pt-br", "a, b", ())


def test_attributes_when_values_cannot_be_read_then_left_out_counted_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    attributes = mapping(("meta:n", "size", "number"), ("meta:l", "language", "string"))
    page = Page(language="en", text="text", found=(("meta:n", ("many", "few\nmore", "3")), ("meta:l", ("not one",))))

    with caplog.at_level(logging.WARNING):
        made = [complete(page, attributes) for _ in range(3)]

    assert {each.attributes for each in made} == {(("size_l", (3,)),)}
    assert {each.language for each in made} == {"en"}
    assert attributes.unreadable == {"size": 6, "language": 3}
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "attribute size",
        "attribute language",
    ]


@pytest.mark.parametrize(
    ("page", "headers", "default", "expected"),
    [
        (Page(language="fr", text=GERMAN), ((b"Content-Language", b"it"),), "en", "fr"),
        (Page(text=GERMAN), ((b"content-language", b"pt_BR"),), "en", "pt-br"),
        (Page(text=GERMAN), ((b"Content-Language", b"it, fr"),), "en", "de"),
        (Page(text=GERMAN), ((b"Content-Language", b"it"), (b"Content-Language", b"fr")), "en", "de"),
        (Page(text=GERMAN), (), "en", "de"),
        (Page(text="4711"), (), "pt-br", "pt-br"),
        (Page(text="4711"), (), "", ""),
        (Page(language="en", text="Библиотека открывается в девять часов утра"), (), "", "ru"),
    ],
)
def test_language_when_told_in_several_ways_then_declared_before_detected_before_default(
    page: Page, headers: tuple[tuple[bytes, bytes], ...], default: str, expected: str
) -> None:
    assert complete(page, headers=headers, languages=Languages(default=default)).language == expected


def test_language_when_the_source_forces_one_then_no_other_counts() -> None:
    page = Page(language="fr", text=GERMAN, found=(("meta:l", ("es",)),))

    made = complete(page, mapping(("meta:l", "language", "string")), languages=Languages(forced="nl", default="en"))

    assert made.language == "nl"


@pytest.mark.parametrize(
    ("page", "languages", "expected"),
    [
        (Page(text=GERMAN), Languages(), Guess.TEXT),
        (Page(text="4711"), Languages(), Guess.DEFAULT),
        (Page(text="4711"), Languages(default="fi"), Guess.DEFAULT),
        (Page(text=GERMAN, language="de"), Languages(), None),
        (Page(text=GERMAN), Languages(forced="de"), None),
        # Its script is another one: the page says nothing that counts.
        (Page(language="en", text="Библиотека открывается в девять часов утра"), Languages(), Guess.TEXT),
    ],
)
def test_language_when_nothing_declares_it_then_the_page_says_that_it_is_a_guess(
    page: Page, languages: Languages, expected: Guess | None
) -> None:
    made = complete(page, languages=languages)

    assert made.language_guess == expected
    # What a pipeline of a user's own sets after it is no guess.
    assert replace(made, language="nl").language_guess is None


def test_language_when_a_meta_element_or_header_names_it_then_it_is_no_guess() -> None:
    by_meta = complete(Page(text=GERMAN, found=(("meta:l", ("es",)),)), mapping(("meta:l", "language", "string")))
    by_header = complete(Page(text=GERMAN), headers=((b"Content-Language", b"it"),))

    assert (by_meta.language_guess, by_header.language_guess) == (None, None)


def test_description_when_there_is_no_tag_then_the_beginning_of_the_text_only_where_asked_for() -> None:
    page = Page(language="en", text="First line\nsecond " + "word " * 100)

    plain = complete(page, mapping(("meta:a", "b", "string")))
    filled = complete(page, mapping(desc_fallback=True))
    explicit = complete(replace(page, description="mine"), mapping(desc_fallback=True))

    assert (plain.description, explicit.description) == ("", "mine")
    assert filled.description.startswith("First line second word")
    assert filled.description.endswith("word…")
    assert 200 < len(filled.description) <= 251
    assert complete(Page(language="ja", text="あ" * 400), mapping(desc_fallback=True)).description == "あ" * 250 + "…"
    assert complete(Page(language="en", text="short"), mapping(desc_fallback=True)).description == "short"


def test_languages_when_a_component_of_a_users_own_sets_one_then_no_text_outweighs_it() -> None:
    page = Page(text=f"{GERMAN}\n" * 9, language="en")

    assert complete(page).language == "de"
    assert complete(own_pipeline.change(page, {"language": "nl"}, {})).language == "nl"


def test_languages_when_a_source_forces_one_then_no_other_is_kept() -> None:
    english = "The library opens at nine in the morning and closes at six, except on public holidays."
    page = Page(text=f"{GERMAN}\n{english}\n" * 9, language="de")

    assert complete(page).languages == ("de", "en")
    assert complete(page, languages=Languages(forced="fr")).languages == ("fr",)
