"""Attributes, language and description of a page that was read (A5, A8, C9)."""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import replace
from typing import Any

import pytest

from searchcrawl.codes import Code
from searchcrawl.documents import digests, shown_document
from searchcrawl.documents.digests import compute_body_digest, compute_copy_digest, compute_fields_digest
from searchcrawl.documents.document_pipeline import (
    NO_LANGUAGES,
    BodyDigestPipeline,
    FetchedFilterPipeline,
    FieldsDigestPipeline,
    Languages,
    PageFilterPipeline,
    complete_page,
)
from searchcrawl.items import Document, Guess, Page
from searchcrawl.rules.attribute_values import AttributeMap, Mapped
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.index_filter import IndexFilter
from searchcrawl.rules.rewriting import DisplayMap, Rewriting
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
    assert complete(shown_document.change(page, {"language": "nl"}, {})).language == "nl"


def test_languages_when_a_source_forces_one_then_no_other_counts_or_is_kept() -> None:
    english = "The library opens at nine in the morning and closes at six, except on public holidays."
    page = Page(text=f"{GERMAN}\n{english}\n" * 9, language="de", found=(("meta:l", ("es",)),))
    forced = complete(page, mapping(("meta:l", "language", "string")), languages=Languages(forced="fr", default="en"))

    assert complete(page).languages == ("de", "en")
    assert (forced.language, forced.languages) == ("fr", ("fr",))


def process(document: Document, **values: Any) -> Any:
    boundary = Boundary(allow_all=True, file="sources/x.toml")
    pipeline = PageFilterPipeline(boundary=boundary, rewriting=Rewriting(), rules=IndexFilter(), **values)
    return pipeline.process_document(document)


def test_fetched_filter_when_it_refuses_then_the_document_goes_on_and_names_the_rule() -> None:
    pipeline = FetchedFilterPipeline(IndexFilter(exclude_names=["plan*"]))
    headers = ((b"Content-Disposition", b"attachment; filename=plans.html"),)

    refused = pipeline.process_document(replace(factories.document(), headers=headers))
    passed = pipeline.process_document(factories.document())

    assert [getattr(item, "refusal", "") for item in (refused, passed)] == ["keep.exclude_names: plan*", None]
    assert getattr(refused, "code", None) == 200


def test_page_filter_when_the_document_was_refused_before_then_has_its_code_and_rule() -> None:
    document = process(replace(factories.document(), refusal="keep.a: b"))

    assert (document.code, document.rule) == (Code.NOT_INDEXED, "keep.a: b")


def test_page_filter_when_a_page_refreshes_to_another_then_the_visit_ends_with_the_link() -> None:
    outcome = process(replace(factories.document(), page=Page(text="x", refresh="http://a.test/new")))

    assert (outcome.code, outcome.rule) == (Code.META_REFRESH, None)
    assert [link.url for link in outcome.links] == ["http://a.test/new"]


def test_page_filter_when_header_and_page_name_canonical_urls_then_the_header_counts() -> None:
    page = Page(text="x", canonical="http://a.test/of-the-page")

    document = process(replace(factories.document(), page=page, canonical="http://a.test/of-the-header"))

    assert document.canonical == "http://a.test/of-the-header"
    assert document.canonical_link.url == document.canonical


def test_page_filter_when_the_display_url_is_not_valid_then_is_1010_unless_the_page_is_not_indexed() -> None:
    document = factories.document()
    good = replace(document, claim=replace(document.claim, display_url="no URL"))

    codes = [process(one, display=DisplayMap([])).code for one in (good, replace(good, refusal="keep.a: b"))]

    assert codes == [Code.INVALID_DISPLAY_URL, Code.NOT_INDEXED]


def test_page_filter_when_a_document_was_not_read_then_passes() -> None:
    unread = replace(factories.document(), page=None)

    assert process(unread) is unread


def test_digests_when_a_page_has_attributes_then_they_count_and_without_them_nothing_changes() -> None:
    page = Page(title="t", text="x")
    one, two = (replace(page, attributes=(("version_s", (value,)),)) for value in ("1", "2"))

    assert len({compute_fields_digest(page), compute_fields_digest(one), compute_fields_digest(two)}) == 3
    assert (
        compute_body_digest(b"x", attributes="a")
        != compute_body_digest(b"x")
        == compute_body_digest(b"x", attributes="")
    )


def test_body_digest_when_another_filter_refuses_the_document_then_is_another() -> None:
    digests = {compute_body_digest(b"x", refusal=refusal) for refusal in (None, "keep.a: b", "keep.a: c")}

    assert len(digests) == 3


def test_body_digest_when_a_page_names_itself_as_canonical_then_is_that_of_a_page_that_names_none() -> None:
    document = factories.document()
    pipeline = BodyDigestPipeline(None)

    itself, other = (
        pipeline.process_document(replace(document, canonical=url))
        for url in (document.claim.url, "http://a.test/other")
    )

    digests = [getattr(item, "body_digest", None) for item in (pipeline.process_document(document), itself, other)]
    assert digests[0] == digests[1] != digests[2]


HTML = "text/html"


@pytest.mark.parametrize(
    ("body", "content_type", "mimetype", "counts"),
    [
        ("plain", "text/html; charset=iso-8859-1", HTML, False),
        ("café", "text/html", HTML, False),
        ("café", "text/html; charset=utf-8", HTML, False),
        ("café", "text/html; charset=no-such-one", HTML, False),
        ("café", "text/html; charset=iso-8859-1", HTML, True),
        ("<meta charset=latin1>café", "text/html; charset=iso-8859-1", HTML, False),
        ("<meta charset=latin1>café", "text/html; charset=utf-8", HTML, True),
        ("plain", "text/plain", "text/plain", True),
        ("plain", "application/pdf", "application/pdf", False),
    ],
)
def test_body_digest_when_headers_say_what_the_bytes_say_too_then_is_that_of_before(
    body: str, content_type: str, mimetype: str, counts: bool
) -> None:
    headers = ((b"Content-Type", content_type.encode()),)
    document = replace(factories.document(), body=body.encode(), headers=headers, mimetype=mimetype)

    found = BodyDigestPipeline(None).process_document(document)

    assert (getattr(found, "body_digest", None) != compute_body_digest(body.encode())) is counts


def test_body_digest_when_the_header_names_another_language_then_is_another() -> None:
    document = factories.document()
    found = [
        BodyDigestPipeline(None).process_document(replace(document, headers=((b"Content-Language", value),)))
        for value in (b"de", b"fr", b"de, fr", b"")
    ]

    digests = [getattr(item, "body_digest", None) for item in found]
    assert (len(set(digests)), digests[2]) == (3, digests[3])


def digested(*items: Document, finds_copies: bool = True) -> list[Document]:
    """The documents with their digests."""
    return [*map(FieldsDigestPipeline(finds_copies=finds_copies).process_document, items)]


def test_fields_digest_when_a_document_was_not_read_then_is_left_out() -> None:
    unread = replace(factories.document(), page=None)

    assert digested(unread)[0] is unread


def test_copies_when_bytes_differ_and_fields_are_the_same_then_the_copy_digest_is_the_same_or_none() -> None:
    pages = [factories.document(f"<p>{number}", text="text") for number in range(2)]
    found = [[each.copy_digest for each in digested(*pages, finds_copies=finds)] for finds in (True, False)]

    assert (found[0][0], found[1]) == (found[0][1], [None, None])
    assert found[0][0] == compute_fields_digest(pages[0].page or Page())


def test_c8_copies_when_they_differ_in_what_is_not_indexed_then_are_copies_all_the_same() -> None:
    document = factories.document("<p>", text="text")
    assert document.page is not None
    pages = [replace(document, page=replace(document.page, whole_digest=digest)) for digest in ("", "a", "b")]
    found = digested(*pages)

    assert len({each.fields_digest for each in found}) == 3
    assert len({each.copy_digest for each in found}) == 1


def test_copies_when_a_file_has_another_name_then_are_copies_unless_it_says_its_title_itself() -> None:
    document = factories.document("%PDF", text="text")
    titles = [
        ("one.pdf", "one.pdf"),
        ("two.pdf", "two.pdf"),
        ("One", ""),
        ("Two", ""),
        ("Set by a component", "one.pdf"),
    ]
    assert document.page is not None
    pages = [replace(document, page=replace(document.page, title=title, name_title=name)) for title, name in titles]
    found = digested(*pages)
    one, two, *others = (each.copy_digest for each in found)

    assert one == two
    assert len({one, *others}) == 1 + len(others)
    # What is indexed of them differs.
    assert len({each.fields_digest for each in found}) == len(found)


def test_fields_digest_when_the_way_it_is_made_is_new_then_a_document_keeps_its_own_until_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page, other = Page(title="t", text="x"), Page(title="t", text="y")
    first = compute_fields_digest(page)
    monkeypatch.setitem(digests._WAYS, 2, lambda page: hashlib.sha256(page.text.encode()).digest())
    second = compute_fields_digest(other, known=first)

    assert compute_fields_digest(page, known=first) == first
    assert compute_fields_digest(page) == b"\2" + hashlib.sha256(b"x").digest()
    assert second == b"\2" + hashlib.sha256(b"y").digest()
    # What the new way leaves out is no change any more.
    assert compute_fields_digest(Page(title="another", text="y"), known=second) == second
    # A version of a newer release.
    assert compute_fields_digest(page, known=b"\3" + first) == compute_fields_digest(page)
    # What the pipeline compares with is the digest of the row.
    document = factories.document(claim=factories.claim(fields_digest=first), page=page)
    assert digested(document, finds_copies=False)[0].fields_digest == first


def test_copy_digest_when_changes_are_told_in_a_new_way_then_it_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [Page(title="t", text=f"Part {number}") for number in (10, 20)]
    before = [compute_copy_digest(page) for page in pages]
    digits = re.compile("[0-9]+")
    monkeypatch.setitem(digests._WAYS, 2, lambda page: hashlib.sha256(digits.sub("", page.text).encode()).digest())

    assert compute_fields_digest(pages[0]) == compute_fields_digest(pages[1])
    assert [compute_copy_digest(page) for page in pages] == before
    assert before[0] != before[1]


def test_fields_digest_when_only_the_date_of_a_file_or_its_guessed_language_counts_then_copies_stay_copies() -> None:
    document = factories.document(text="Words")
    assert document.page is not None
    page = replace(document.page, language="en")
    pages = [
        page,
        replace(page, modified="2024-03-05T10:00:00Z"),
        replace(page, modified="2024-03-06T10:00:00Z"),
        replace(page, guessed=("en", Guess.TEXT)),
        replace(page, guessed=("en", Guess.DEFAULT)),
        # A component of a user's own set another one.
        replace(page, guessed=("de", Guess.TEXT)),
    ]
    found = digested(*(replace(document, page=each) for each in pages))
    plain, dated, later, told, default, own = (each.fields_digest for each in found)

    assert len({each.copy_digest for each in found}) == 1
    # A file that is made for each request, with the time of it, is no other one.
    assert dated == later
    assert own == plain
    assert len({plain, dated, told, default}) == 4
