"""Files that are made here; those of office programs are in tests/integration/test_formats.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import xberg

from searchcrawl.codes import Code
from searchcrawl.convert import converter as build_page_module
from searchcrawl.convert.detection import ENCRYPTED
from searchcrawl.convert.document_converter import (
    Properties,
    convert_document,
    read_ole_properties,
    read_rtf_properties,
)
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import Page
from tests.office_files import make_docx, make_message, make_ole, make_zip, open_document

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def page_of(body: bytes, mimetype: str, *, content_type: str = "", robots: bytes = b"all") -> Page:
    headers = ((b"Content-Type", content_type.encode()), (b"X-Robots-Tag", robots))
    origins = frozenset({"meta:created", "meta:keywords"})
    return convert_document(
        body,
        ConversionContext(url="http://a.test/x/file", headers=headers, mimetype=mimetype, attribute_origins=origins),
    )


@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "shift_jis"])
def test_markdown_when_converted_then_has_its_text_without_marks(charset: str) -> None:
    body = "# 港の気圧計\n\nFalling *quicksilver* [announces](http://x.test/) a storm.\n\n- one\n".encode(charset)

    page = page_of(body, "text/markdown", content_type=f"text/markdown; charset={charset}")

    assert (page.title, page.links) == ("港の気圧計", ())
    assert page.text.split("\n") == ["港の気圧計", "Falling quicksilver announces a storm.", "one"]


def test_markdown_when_it_has_front_matter_then_that_is_about_it() -> None:
    page = page_of(b"---\ntitle: The title\nauthor: N. N.\n---\n\nA text of one line.\n", "text/markdown")

    assert (page.title, page.author) == ("The title", "N. N.")


def test_message_when_it_is_of_outlook_then_its_subject_is_the_title() -> None:
    page = page_of(make_message(subject="港の気圧計", sender="Ada", text="A barometer."), "application/vnd.ms-outlook")

    assert (page.title, page.author) == ("港の気圧計", "Ada")
    assert "A barometer." in page.text


def test_mail_when_it_has_parts_then_they_are_text() -> None:
    mail = (
        b"Subject: =?utf-8?b?R3LDvMOfZQ==?=\r\nFrom: Ada <a@b.test>\r\nDate: Tue, 05 Mar 2024 10:00:00 +0000\r\n"
        b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain;"
        b" charset=iso-2022-jp\r\n\r\n" + "気圧計".encode("iso2022_jp") + b"\r\n--b\r\nContent-Type: text/html\r\n\r\n"
        b"<p>no second time\r\n--b--\r\n"
    )

    page = page_of(mail, "message/rfc822")

    assert (page.title, page.author, page.subject) == ("Grüße", "Ada", "")
    assert "気圧計" in page.text
    assert page.found == (("meta:created", ("Tue, 05 Mar 2024 10:00:00 +0000",)),)


def test_document_when_its_header_forbids_indexing_then_page_says_so() -> None:
    assert page_of(b"# x", "text/markdown", robots=b"noindex").noindex


@pytest.mark.parametrize(
    ("body", "mimetype"),
    [
        (b"", DOCX),
        (b"PK\x03\x04 cut", DOCX),
        (make_zip({"a.txt": b"x"}), DOCX),
        (b"no file of that kind", "application/msword"),
        (make_ole({"Something": b"x"}), "application/msword"),
        (make_ole({"EncryptedPackage": b"x"}), ENCRYPTED),
        (make_zip({"mimetype": b"application/epub+zip"}), "application/epub+zip"),
    ],
)
def test_document_when_it_is_broken_then_fails_with_903(body: bytes, mimetype: str) -> None:
    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_FAILED):
        page_of(body, mimetype)


def test_document_when_it_is_a_bomb_then_fails_with_904() -> None:
    body = make_zip({"[Content_Types].xml": b"<Types/>", "word/document.xml": b"<w>" + b"x" * 300_000_000})

    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_LIMIT):
        page_of(body, DOCX)


def test_spreadsheet_when_it_has_a_hundred_thousand_cells_and_more_then_all_are_read() -> None:
    row = (
        "<table:table-row>"
        + '<table:table-cell office:value-type="string"><text:p>7</text:p></table:table-cell>' * 11
        + "</table:table-row>"
    )
    body = open_document("spreadsheet", f'<table:table table:name="a">{row * 10_000}</table:table>')

    assert page_of(body, "application/vnd.oasis.opendocument.spreadsheet").text.split().count("7") == 110_000


@pytest.mark.parametrize(
    ("mimetype", "build"),
    [
        (DOCX, lambda text: make_docx(b"<w:p><w:r><w:t>" + text + b"</w:t></w:r></w:p>")),
        (
            "application/x-fictionbook+xml",
            lambda text: (
                b'<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><body><section><p>'
                + text
                + b"</p></section></body></FictionBook>"
            ),
        ),
    ],
)
def test_document_when_one_of_its_paragraphs_is_long_then_it_is_read(
    mimetype: str, build: Callable[[bytes], bytes]
) -> None:
    text = b" ".join(b"w%d" % number for number in range(200_000))

    assert page_of(build(text), mimetype).text.count("w") == 200_000


@pytest.mark.parametrize(("message", "code"), [("IO error: out of memory", 904), ("IO error: it ends", 903)])
def test_document_when_the_library_has_no_memory_left_then_that_is_a_limit(
    message: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(xberg, "extract", fail)

    with pytest.raises(ConversionFailed, check=lambda error: error.code == code):
        page_of(make_docx(b""), DOCX)


def test_document_when_its_text_is_too_long_then_fails_with_904(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_page_module, "MAX_CHARACTERS", 10)

    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_LIMIT):
        page_of(b"more than ten characters", "text/markdown")


@pytest.mark.parametrize(
    ("head", "title"),
    [
        (rb"{\rtf1{\info{\title Plain}{\author A}", "Plain"),
        (rb"{\rtf1\ansicpg1251{\info{\title \'cf\'f0\'e8}{\author A}", "При"),
        (rb"{\rtf1{\info{\title \u28207\'3f\u12398?\u-10179\u-8704 }{\author A}", "港の😀"),
        (rb"{\rtf1{\info{\title J\u252\'fcrgen \b0 x}{\author A}", "Jürgen x"),
    ],
)
def test_rtf_when_it_says_what_it_is_then_any_script_is_read(head: bytes, title: str) -> None:
    assert read_rtf_properties(head) == Properties(title=title, author="A")


@pytest.mark.parametrize("body", [b"", b"\xd0\xcf\x11\xe0", make_ole({"Workbook": b"x"})])
def test_ole_file_when_it_has_no_summary_then_says_nothing(body: bytes) -> None:
    assert read_ole_properties(body) == Properties()
