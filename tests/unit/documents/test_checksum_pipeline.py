"""Digests of bodies and fields (D2)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

import pytest

from searchcrawl.documents import digests
from searchcrawl.documents.digests import compute_body_digest, compute_copy_digest, compute_fields_digest
from searchcrawl.documents.document_pipeline import BodyDigestPipeline, FieldsDigestPipeline
from searchcrawl.items import Guess, Page
from tests import factories


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


def test_fields_digest_when_a_document_was_not_read_then_is_left_out() -> None:
    unread = replace(factories.document(), page=None)

    assert FieldsDigestPipeline(finds_copies=True).process_document(unread) is unread


def test_copies_when_bytes_differ_and_fields_are_the_same_then_the_copy_digest_is_the_same_or_none() -> None:
    pages = [factories.document(f"<p>{number}", text="text") for number in range(2)]
    found = [
        [FieldsDigestPipeline(finds_copies=finds).process_document(page).copy_digest for page in pages]  # type: ignore[attr-defined]  # a document
        for finds in (True, False)
    ]

    assert (found[0][0], found[1]) == (found[0][1], [None, None])
    assert found[0][0] == compute_fields_digest(pages[0].page or Page())


def test_c8_copies_when_they_differ_in_what_is_not_indexed_then_are_copies_all_the_same() -> None:
    document = factories.document("<p>", text="text")
    assert document.page is not None
    pages = [replace(document, page=replace(document.page, whole_digest=digest)) for digest in ("", "a", "b")]
    found = [FieldsDigestPipeline(finds_copies=True).process_document(page) for page in pages]

    assert len({each.fields_digest for each in found}) == 3  # type: ignore[attr-defined]  # a document
    assert len({each.copy_digest for each in found}) == 1  # type: ignore[attr-defined]  # a document


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
    found = [FieldsDigestPipeline(finds_copies=True).process_document(page) for page in pages]
    one, two, *others = (each.copy_digest for each in found)  # type: ignore[attr-defined]  # a document

    assert one == two
    assert len({one, *others}) == 1 + len(others)
    # What is indexed of them differs.
    assert len({each.fields_digest for each in found}) == len(found)  # type: ignore[attr-defined]  # a document


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
    found = [FieldsDigestPipeline(finds_copies=True).process_document(replace(document, page=each)) for each in pages]
    plain, dated, later, told, default, own = (each.fields_digest for each in found)  # type: ignore[attr-defined]

    assert len({each.copy_digest for each in found}) == 1  # type: ignore[attr-defined]  # a document
    # A file that is made for each request, with the time of it, is no other one.
    assert dated == later
    assert own == plain
    assert len({plain, dated, told, default}) == 4
