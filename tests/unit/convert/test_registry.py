from __future__ import annotations

import io
import tarfile

import pytest

from searchcrawl.codes import Code
from searchcrawl.convert.archive_reader import ARCHIVE
from searchcrawl.convert.converter import Converter
from searchcrawl.convert.document_converter import DOCUMENTS, MARKUP
from searchcrawl.convert.html_converter import HTML
from searchcrawl.convert.pdf_converter import PDF
from searchcrawl.convert.registry import Registry, is_binary
from searchcrawl.convert.text_converter import CSV, JSON, TEXT
from searchcrawl.convert.xml_converter import XML
from searchcrawl.exceptions import DocumentError, NoConverter
from searchcrawl.items import Headers


def typed(content_type: str) -> Headers:
    return ((b"Content-Type", content_type.encode()),)


REGISTRY = Registry()
find_mimetype, choose_converter = REGISTRY.find_mimetype, REGISTRY.choose
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01"


def make_tar(name: str, form: int = tarfile.USTAR_FORMAT) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = 5
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        archive.addfile(member, io.BytesIO(b"words"))
    return packed.getvalue()


TAR = make_tar("words.txt")


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/html; charset=utf-8", HTML),
        ("Application/XHTML+XML", HTML),
        ("text/plain", TEXT),
        ("text/markdown", MARKUP),
        ("text/csv;header=present", CSV),
        ("application/pdf", PDF),
        ("application/json", JSON),
        ("application/vnd.api+json", JSON),
        ("application/rss+xml", XML),
        ("application/vnd.of.somebody+xml", XML),
        ("application/msword", DOCUMENTS),
        (DOCX, DOCUMENTS),
        ("message/rfc822", DOCUMENTS),
    ],
)
def test_converter_when_type_is_known_then_is_chosen(content_type: str, expected: Converter) -> None:
    mimetype = find_mimetype(b"text", typed(content_type))

    assert choose_converter(mimetype, b"text", typed(content_type)) is expected


@pytest.mark.parametrize("mimetype", ["image/png", "image/svg+xml", "text/css", "video/mp4"])
def test_converter_when_type_is_unknown_then_refuses_with_908(mimetype: str) -> None:
    with pytest.raises(NoConverter, check=lambda error: error.code == Code.NO_CONVERTER):
        choose_converter(mimetype, b"", ())


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"%PDF-1.7\n", "", "application/pdf"),
        (b"\n%PDF-1.7\n", "application/octet-stream", "application/pdf"),
        (b"\xef\xbb\xbf \n<!DOCTYPE HTML><p>", "", "text/html"),
        (b"<!-- a --><html lang=en>", "application/octet-stream", "text/html"),
        (b"<?xml version='1.0'?><html>", "nonsense", "text/html"),
        (b"<?xml version='1.0'?><rss>", "", "application/xml"),
        (b"just words", "", "text/plain"),
        (b"just words", "application/octet-stream", "application/octet-stream"),
        (PNG, "", "image/png"),
        (b"{\\rtf1 x}", "application/octet-stream", "application/rtf"),
        (b"%PDF-1.7\n", "text/plain", "text/plain"),
        (b"<htmlish>", "", "text/plain"),
        (b"", "", "text/plain"),
    ],
)
def test_mimetype_when_header_says_nothing_then_bytes_say_it(body: bytes, content_type: str, expected: str) -> None:
    assert find_mimetype(body, typed(content_type)) == expected


@pytest.mark.parametrize("content_type", ["text/html", "text/plain; charset=utf-8", "application/xhtml+xml"])
@pytest.mark.parametrize(
    "body",
    [
        PNG,
        b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n",
        b"%PDF-1.1\r\n1 0 obj << >> endobj",
        b"PK\x03\x04abc",
        b"GIF89a\x01\x00\x01\x00\x00\x00\x00;",
        TAR,
        bytes(range(256)) * 20,
        b"\x00\x01",
    ],
    ids=range(8),
)
def test_converter_when_binary_is_sent_as_text_then_refuses_with_1009(body: bytes, content_type: str) -> None:
    with pytest.raises(DocumentError, check=lambda error: error.code == Code.BINARY_AS_TEXT):
        choose_converter(find_mimetype(body, typed(content_type)), body, typed(content_type))


#: So begin files that are no text, and may begin sentences.
LETTERS = (
    *(
        "%PDF-1.7 is",
        "{\\rtf1 is",
        "GIF87a is",
        "GIF89a is",
        "BM is",
        "PK is",
        "MZ is",
        "II* is",
        "MM is",
        "ID3 is",
        "Rar! is",
    ),
    *(
        "OggS is",
        "wOFF is",
        "wOF2 is",
        "AT&TFORM is",
        "BZh91AY&SY is",
        "7z is",
        "ELF is",
        "From a@b.test is",
        "RIFF is",
    ),
    *("SQLite format 3 is", "8BPS is", "FLV is", "!<arch>\n is", "ustar is", "0707070 is", "%!PS-Adobe is", "xar! is"),
)


@pytest.mark.parametrize(
    "content_type", ["text/html", "text/plain", "application/xhtml+xml", "text/csv", "text/markdown"]
)
@pytest.mark.parametrize("letters", LETTERS)
def test_converter_when_a_text_begins_like_a_file_then_its_header_is_believed(letters: str, content_type: str) -> None:
    headers = typed(content_type)
    body = f"{letters} how such a file begins.".encode() + b" More words." * 100

    assert find_mimetype(body, headers) == content_type
    assert choose_converter(content_type, body, headers).is_text


@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "", "application/octet-stream"])
def test_converter_when_a_page_has_the_mark_of_a_tar_at_its_place_then_is_a_page(content_type: str) -> None:
    body = b"<html>" + b"a" * 250 + b"mustard" + b" words" * 100

    mimetype = find_mimetype(body, typed(content_type))

    assert body.startswith(b"ustar", 257)
    assert mimetype == (content_type if content_type.startswith("text") else "text/html")
    assert choose_converter(mimetype, body, typed(content_type)).is_text


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("name", ["words.txt", "größe.txt", "<html>.txt", "a" * 70 + "/" + "b" * 70])
def test_mimetype_when_a_tar_is_sent_without_a_type_then_is_known(name: str, form: int) -> None:
    assert find_mimetype(make_tar(name, form), typed("application/octet-stream")) == "application/x-tar"


def test_mimetype_when_the_checksum_of_a_tar_is_wrong_then_is_none() -> None:
    assert find_mimetype(b"x" + TAR[1:], typed("application/octet-stream")) == "application/octet-stream"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<p>text".encode("utf-16"), "text/html"),
        ("<p>text".encode("utf-16-le"), "text/html; charset=utf-16"),
        (b"<p>" + b"words " * 20 + b"\x00", "text/html"),
        ("<p>日本語".encode("iso2022_jp"), "text/html"),
        ("日本語".encode("euc_jp"), "text/plain"),
        (b"\x1b[1mbold\x1b[0m", "text/plain"),
        (b"", "text/html"),
    ],
)
def test_looks_binary_when_it_is_text_then_says_no(body: bytes, content_type: str) -> None:
    assert not is_binary(body, typed(content_type))


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"%PDF-1.7\n", "application/msword", "application/pdf"),
        (b"%PDF-1.7\n", "image/png", "application/pdf"),
        (b"{\\rtf1 x}", "application/msword", "application/rtf"),
        (b"{\\rtf1 x}", "text/plain", "application/rtf"),
        (b"{\\rtf1 x}", "text/rtf", "text/rtf"),
        (PNG, "application/pdf", "image/png"),
        (PNG, "image/jpeg", "image/jpeg"),
        (PNG, "application/x-of-somebody", "application/x-of-somebody"),
        (b"<html><table>", "application/vnd.ms-excel", "text/html"),
        (b"a table", "application/vnd.ms-excel", "application/vnd.ms-excel"),
        # A container whose parts cannot be read may be what its header says.
        (b"PK\x03\x04 cut", DOCX, DOCX),
        (b"PK\x03\x04 cut", "application/java-archive", "application/java-archive"),
        (b"PK\x03\x04 cut", "application/msword", "application/zip"),
        (b"\x1f\x8b cut", DOCX, "application/gzip"),
    ],
)
def test_mimetype_when_bytes_refute_the_header_then_they_are_believed(
    body: bytes, content_type: str, expected: str
) -> None:
    assert find_mimetype(body, typed(content_type)) == expected


@pytest.mark.parametrize("name", ["x-tgz", "x-gtar-compressed", "x-compressed", "x-gzip-compressed", "x-bzip"])
def test_archive_when_its_header_has_an_old_name_of_its_type_then_is_read(name: str) -> None:
    headers, body = typed(f"application/{name}"), b"\x1f\x8b packed"

    assert Registry().choose(find_mimetype(body, headers), body, headers) is ARCHIVE


@pytest.mark.parametrize(
    ("body", "name", "expected"),
    [
        (b"# words", "notes.rst", "text/prs.fallenstein.rst"),
        (b"a,b", "TABLE.CSV", "text/csv"),
        (b"{}", "x.json", "application/json"),
        (b"From: a@b.test", "old.eml", "message/rfc822"),
        (b"%PDF-1.7\n", "notes.rst", "application/pdf"),
        (b"<?xml version='1.0'?><FictionBook>", "book.fb2", "application/x-fictionbook+xml"),
        (b"words", "words", "application/octet-stream"),
    ],
)
def test_mimetype_when_neither_header_nor_bytes_say_it_then_the_name_does(
    body: bytes, name: str, expected: str
) -> None:
    octets = typed("application/octet-stream")
    sent = (*octets, (b"Content-Disposition", f'attachment; filename="{name}"'.encode()))

    assert find_mimetype(body, octets, f"http://a.test/x/{name}?q=1") == expected
    assert find_mimetype(body, sent, "http://a.test/get") == expected


def test_converter_when_xml_is_a_page_then_is_that_of_pages() -> None:
    body = b"<?xml version='1.0'?><!DOCTYPE html><html><a href=x>"

    assert choose_converter("application/xml", body, ()) is HTML


def test_registry_when_a_user_has_a_converter_then_it_goes_before_ours_and_its_type_is_believed() -> None:
    own = Converter(
        name="mine:Mine", mime_types=("image/vnd.djvu",), convert=TEXT.convert, choose_place=TEXT.choose_place
    )
    better = Converter(
        name="mine:Pdf", mime_types=("application/pdf",), convert=TEXT.convert, choose_place=TEXT.choose_place
    )
    registry = Registry([own, better])

    assert registry.find_mimetype(b"%PDF-", typed("image/vnd.djvu")) == "image/vnd.djvu"
    assert registry.find_mimetype(b"?", typed("application/octet-stream"), "http://a.test/a.djvu") == "image/vnd.djvu"
    assert registry.choose("image/vnd.djvu", b"AT&TFORM", ()) is own
    assert registry.choose("application/pdf", b"%PDF-", ()) is better


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (PNG, "image/png", True),
        (PNG, "", True),
        (b"p {}", "text/css", True),
        (b"?", "application/octet-stream", True),
        # Their bytes refute the header, or may do so later.
        (b"%PDF-1.7\n", "image/png", False),
        (b"<!doctype html><p>", "application/octet-stream", False),
        (b"PK\x03\x04 cut", "application/java-archive", False),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "application/vnd.visio", False),
        (b"words", "text/plain", False),
    ],
)
def test_beginning_when_nothing_reads_its_type_whatever_follows_then_is_told(
    body: bytes, content_type: str, expected: bool
) -> None:
    assert REGISTRY.reads_nothing(body, typed(content_type), "http://a.test/x") is expected
